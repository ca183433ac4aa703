"""The conditions of the catalogue: a small, safe expression language over facts.

Nothing is evaluated as Python: the facts handed in are all that can be read, and only functions among them be called.
A fact that nobody knows is None. What is computed or compared with it is unknown, as in Kleene's logic: `unknown and
false` is false, `unknown or true` is true. Comparing with a literal `None` asks whether a fact is known, and has an
answer. A fact that there is not (`ABSENT`: the compute capability of an AMD GPU) is known: no comparison with it holds,
but that it is another thing (`!=`, `not in`), and it is not `None`.
`assay.plan.expression_syntax` holds the grammar.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from assay.plan.expression_syntax import ExpressionError, Node, parse

UNDECIDED = "cannot be decided: "
"""How the reason begins of what hangs on a fact that is unknown."""

__all__ = ["ABSENT", "Decided", "ExpressionError", "Facts", "Outcome", "check", "decided", "evaluate", "parse"]

Facts = Mapping[str, Any]


class Absent:
    """The value of a fact that there is not."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "none"


ABSENT = Absent()
DIFFERS = frozenset({"!=", "not in"})
"""Comparisons that hold of what there is not."""
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda item, items: item in items,
    "not in": lambda item, items: item not in items,
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Whether a condition holds, and if not, the part of it that decided so."""

    holds: bool
    reason: str
    """Empty when it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One part of a condition."""

    text: str
    truth: bool | None
    """None: a fact is unknown."""
    values: dict[str, str]
    """The facts in it, as written, with their values; `unknown` for those that nobody knows."""


def evaluate(text: str, facts: Facts) -> Any:
    """Evaluate an expression.

    Args:
        text: at most 500 characters.
        facts: top-level names: mappings (read with dots or brackets), plain values, or functions.

    Returns:
        The value; None when it hangs on a fact that is not known.

    Raises:
        ExpressionError: it cannot be read, names something that does not exist, or mixes kinds.
    """
    return _Evaluation(text, facts).value(parse(text))


def check(text: str, facts: Facts) -> Outcome:
    """Decide a condition, and say why when it does not hold.

    Raises:
        ExpressionError: as `evaluate`; also when the expression is no condition (a number, a text).
    """
    node, evaluation = parse(text), _Evaluation(text, facts)
    truth = evaluation.truth(node)
    if truth is None:
        unknown = sorted(evaluation.unknown(node))
        verb = "is" if len(unknown) == 1 else "are"
        return Outcome(holds=False, reason=f"{UNDECIDED}{', '.join(unknown)} {verb} unknown")
    return Outcome(holds=truth, reason="" if truth else evaluation.why(node, wanted=True))


def decided(text: str, facts: Facts) -> list[Decided]:
    """The parts of a condition that `and` joins, each with its truth and the facts that it hangs on.

    Raises:
        ExpressionError: as `evaluate`.
    """
    node, evaluation = parse(text), _Evaluation(text, facts)
    parts = node.parts if node.kind == "and" else (node,)
    return [
        Decided(text=text[one.start : one.end], truth=evaluation.truth(one), values=evaluation.values(one))
        for one in parts
    ]


class _Evaluation:
    """One walk over a parsed expression."""

    def __init__(self, text: str, facts: Facts) -> None:
        self._text, self._facts = text, facts

    def _source(self, node: Node) -> str:
        return self._text[node.start : node.end]

    def _fail(self, problem: str, node: Node, hint: str = "docs/catalogue-entry.md lists the names") -> NoReturn:
        raise ExpressionError(problem, self._text, node.start, hint=hint)

    def value(self, node: Node) -> Any:
        match node.kind:
            case "literal":
                return node.value
            case "items":
                return tuple(self.value(part) for part in node.parts)
            case "name":
                return self._member(self._facts, node.value, node)
            case "member":
                return self._member(self.value(node.parts[0]), node.value, node)
            case "index":
                return self._index(node)
            case "call":
                return self._call(node)
            case "negative":
                return self._computed(node, ["-"], [0, self.value(node.parts[0])])
            case "arithmetic":
                return self._computed(node, node.value, [self.value(part) for part in node.parts])
        return self._decided(node)

    def _decided(self, node: Node) -> bool | None:
        if node.kind == "comparison":
            results = [self._compared(*pair) for pair in _pairs(node)]
            return False if False in results else None if None in results else True
        truths = [self.truth(part) for part in node.parts]
        if node.kind == "not":
            return None if truths[0] is None else not truths[0]
        decisive = node.kind == "or"
        return decisive if decisive in truths else None if None in truths else not decisive

    def truth(self, node: Node) -> bool | None:
        """The value of a condition.

        Raises:
            ExpressionError: it is neither true nor false nor unknown.
        """
        value = self.value(node)
        if isinstance(value, Absent):
            return False
        if value is not None and not isinstance(value, bool):
            self._fail(f"{self._source(node)} is {value!r}, which is no condition", node, "compare it with something")
        return value

    def _member(self, facts: Any, name: str, node: Node) -> Any:
        if facts is None:
            return None
        if not isinstance(facts, Mapping):
            self._fail(f"{self._source(node.parts[0])} has no parts", node)
        if name not in facts:
            self._fail(f"{name!r} is not known", node, f"known here: {', '.join(sorted(map(str, facts)))}")
        return facts[name]

    def _index(self, node: Node) -> Any:
        facts, key = (self.value(part) for part in node.parts)
        if facts is None or key is None:
            return None
        if not isinstance(facts, Mapping) or not isinstance(key, str):
            self._fail(
                f"{self._source(node)}: only named parts can be looked up", node, 'as in target.flags["--parallel"]'
            )
        return facts.get(key)

    def _call(self, node: Node) -> Any:
        function, *arguments = (self.value(part) for part in node.parts)
        if not callable(function):
            self._fail(f"{self._source(node.parts[0])} is not a function", node, "functions: flag, has, build.has")
        try:
            return function(*arguments)
        except TypeError as error:
            self._fail(f"{self._source(node)}: {error}", node, 'as in flag("--threads", 1)')

    def _computed(self, node: Node, signs: list[str], values: list[Any]) -> Any:
        if None in values:
            return None
        if ABSENT in values:
            return ABSENT
        if wrong := [value for value in values if isinstance(value, bool) or not isinstance(value, int | float)]:
            self._fail(f"{self._source(node)}: {wrong[0]!r} is not a number", node)
        result = values[0]
        try:
            for sign, value in zip(signs, values[1:], strict=True):
                result = ARITHMETIC[sign](result, value)
        except ArithmeticError as error:
            self._fail(
                f"{self._source(node)}: {error}", node, "keep what can be 0 out of the divisor: all parts are evaluated"
            )
        if isinstance(result, float) and not math.isfinite(result):
            self._fail(f"{self._source(node)} is not a finite number", node)
        return result

    def _compared(self, left: Node, sign: str, right: Node) -> bool | None:
        a, b = self.value(left), self.value(right)
        asks_whether_known = sign in {"==", "!="} and any(_is_none(node) for node in (left, right))
        if (a is None or b is None) and not asks_whether_known:
            return None
        if ABSENT in (a, b):
            return sign in DIFFERS
        try:
            return bool(COMPARISONS[sign](a, b))
        except TypeError:
            self._fail(
                f"{a!r} {sign} {b!r} compares unlike things", left, "compare numbers with numbers, text with text"
            )

    def unknown(self, node: Node) -> set[str]:
        """The facts, as written, whose absence leaves the expression undecided."""
        if node.kind == "literal" or (node.kind != "items" and self.value(node) is not None):
            return set()
        if node.is_fact:
            return {self._source(node)}
        return {name for part in node.parts for name in self.unknown(part)}

    def values(self, node: Node) -> dict[str, str]:
        """The facts of a part with their values, as they are shown."""
        found = {self._source(fact): self.value(fact) for fact in _facts_in(node)}
        return {name: _shown(value) for name, value in found.items()}

    def why(self, node: Node, *, wanted: bool) -> str:
        """The part that made the condition false (or, under a `not`, true), with the values it was decided on."""
        if node.kind == "not":
            return self.why(node.parts[0], wanted=not wanted)
        if node.kind in {"and", "or"}:
            guilty = [part for part in node.parts if self.truth(part) is not wanted]
            guilty = guilty[:1] if (node.kind == "and") is wanted else guilty
            return " and ".join(self.why(part, wanted=wanted) for part in guilty)
        values = sorted({f"{self._source(fact)} = {_shown(self.value(fact))}" for fact in _facts_in(node)})
        is_itself = node.is_fact or node.kind == "literal"
        told = "" if is_itself or not values else f": {', '.join(values)}"
        return f"{self._source(node)} is {'false' if wanted else 'true'}{told}"


def _pairs(node: Node) -> list[tuple[Node, str, Node]]:
    return list(zip(node.parts, node.value, node.parts[1:], strict=False))


def _is_none(node: Node) -> bool:
    return node.kind == "literal" and node.value is None


def _facts_in(node: Node) -> list[Node]:
    if node.is_fact:
        return [node]
    return [fact for part in node.parts for fact in _facts_in(part)]


def _shown(value: Any) -> str:
    """`308,958`, `0.146`, `true`, `'sglang'`."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - digits that matter
    return repr(value)
