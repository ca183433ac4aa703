"""The settings a dial may take: knobs resolved to values, conditions checked, coordinates for the search.

Every knob becomes a short list of values, so a space of a few knobs can be listed. What cannot be listed is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from assay.errors import UsageError
from assay.plan.expression import ExpressionError, check, evaluate
from assay.records.base import Flags, FlagValue
from assay.records.dials import Dial, Knob

MAX_LISTED = 4096
"""Settings of a space that is searched whole; of a larger one every n-th is taken."""
MAX_VALUES = 64
"""Of one knob."""
DIGITS = 9
"""Behind the point: 0.96, not 0.9600000000000001."""

Levels = tuple[int, ...]
"""A setting as the place of each knob's value in its list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A knob with its values."""

    knob: Knob
    values: tuple[FlagValue, ...]
    baseline: float | None
    """Where the baseline stands, in places of `values` (3.5: between the fourth and the fifth); None: unknown."""
    holds_baseline: bool
    """The baseline's value is one of `values`."""

    @property
    def memory(self) -> int:
        """+1: later values take more memory; -1: less; 0: they do not matter."""
        return {"more": 1, "less": -1, "none": 0}[self.knob.memory]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Every setting that may be tried."""

    axes: tuple[Axis, ...]
    points: tuple[Levels, ...]
    """The settings that meet every condition, in lexical order."""

    def settings(self, point: Levels) -> Flags:
        """By knob name."""
        return {axis.knob.name: axis.values[level] for axis, level in zip(self.axes, point, strict=True)}

    def find(self, flags: Mapping[str, Any]) -> Levels | None:
        """The point that an arm's flags are at; None when they are at none."""
        found = [_place_of(axis.values, flags.get(axis.knob.flag)) for axis in self.axes]
        return None if None in found else tuple(level for level in found if level is not None)

    @property
    def baseline(self) -> tuple[float, ...] | None:
        """Where the baseline stands; None where that is unknown of any knob."""
        places = [axis.baseline for axis in self.axes]
        return None if None in places else tuple(place for place in places if place is not None)

    @property
    def baseline_point(self) -> Levels | None:
        """The point that the baseline is at: its runs are runs of that setting; None where it is at none."""
        if self.baseline is None or not all(axis.holds_baseline for axis in self.axes):
            return None
        point = tuple(int(place) for place in self.baseline)
        return point if point in self.points else None


def resolve(dial: Dial, facts: Mapping[str, Any], baseline: Flags) -> Space:
    """List what may be tried.

    Args:
        dial: as the catalogue has it.
        facts: of the campaign (`assay.plan.hypotheses.facts_of`).
        baseline: today's flags.

    Raises:
        UsageError: an expression does not fit, a fact is unknown, a range is empty, or no setting meets the conditions.
    """
    axes = tuple(_axis(knob, facts, baseline) for knob in dial.knobs)
    points = tuple(_points(axes, dial, facts))
    if not points:
        raise UsageError(
            f"no setting of {', '.join(knob.flag for knob in dial.knobs)} meets: {'; '.join(dial.constraints)}",
            hint="widen the ranges of the dial, or loosen its constraints",
        )
    return Space(axes=axes, points=points)


def arm_flags(dial: Dial, settings: Flags, facts: Mapping[str, Any]) -> Flags:
    """The flags of a setting: each knob's own, and those that follow from them.

    Raises:
        UsageError: an expression does not fit, or hangs on a fact that is unknown.
    """
    scope = scope_of(facts, settings)
    own = {knob.flag: settings[knob.name] for knob in dial.knobs}
    return own | {name: _known(value, scope, name) for name, value in dial.flags.items()}


def predictor(dial: Dial, facts: Mapping[str, Any]) -> Callable[[Flags], float | None]:
    """What is predicted of a setting, as a natural log up to a constant; None where nothing is."""
    single = {tuple(one.settings[k.name] for k in dial.knobs): math.log(one.value) for one in dial.estimates}

    def predicted(settings: Flags) -> float | None:
        key = tuple(settings[knob.name] for knob in dial.knobs)
        if key in single or dial.estimate is None:
            return single.get(key)
        value = _evaluated(dial.estimate, scope_of(facts, settings), "estimate")
        return math.log(value) if isinstance(value, int | float) and value > 0 else None

    return predicted


def _axis(knob: Knob, facts: Mapping[str, Any], baseline: Flags) -> Axis:
    values = tuple(knob.choices) or tuple(_range(knob, facts))
    stands = baseline.get(knob.flag, knob.baseline)
    if isinstance(stands, str) and stands.startswith("="):
        stands = evaluate(stands[1:], facts)
    return Axis(
        knob=knob,
        values=values,
        baseline=_place_between(values, stands, is_ordered=knob.is_ordered),
        holds_baseline=_place_of(values, stands) is not None,
    )


def _range(knob: Knob, facts: Mapping[str, Any]) -> Iterator[FlagValue]:
    low, high = (_number(end, facts, f"{knob.name}.{which}") for end, which in ((knob.low, "low"), (knob.high, "high")))
    if low > high or (knob.factor is not None and low <= 0):
        raise UsageError(f"{knob.flag}: the range {low:g} to {high:g} is empty here", hint="mend low and high")
    whole = all(float(part).is_integer() for part in (low, high, knob.step or 1, knob.factor or 1))
    value, count = low, 0
    while value < high * (1 - 1e-9) or count == 0:
        yield int(value) if whole else round(value, DIGITS)
        count += 1
        value = low * knob.factor**count if knob.factor is not None else low + count * (knob.step or 1)
        if count == MAX_VALUES:
            raise UsageError(f"{knob.flag}: more than {MAX_VALUES} values", hint="take a larger step or a factor")
    if high > low:
        yield int(high) if whole else round(high, DIGITS)


def _points(axes: Sequence[Axis], dial: Dial, facts: Mapping[str, Any]) -> Iterator[Levels]:
    sizes = [len(axis.values) for axis in axes]
    total = math.prod(sizes)
    every = 1 if total <= MAX_LISTED else _coprime(total // MAX_LISTED + 1, sizes)
    for number, point in enumerate(product(*(range(size) for size in sizes))):
        if number % every:
            continue
        scope = scope_of(facts, {axis.knob.name: axis.values[level] for axis, level in zip(axes, point, strict=True)})
        if all(_holds(text, scope) for text in dial.constraints):
            yield point


def _coprime(start: int, sizes: Sequence[int]) -> int:
    """The next stride that does not keep any knob at the same few values."""
    return next(
        stride for stride in range(start, 2 * start + 2 * MAX_VALUES) if math.gcd(stride, math.prod(sizes)) == 1
    )


def scope_of(facts: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the expressions of a dial may name: the facts, the setting, and the least and the most of some values."""
    return {**facts, "dial": dict(settings), "min": _known_only(min), "max": _known_only(max)}


def _known_only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Unknown where one of the values is."""
    return lambda *values: None if None in values else function(*values)


def _holds(text: str, scope: Mapping[str, Any]) -> bool:
    try:
        return check(text, scope).holds
    except ExpressionError as error:
        raise UsageError(f"dial constraint: {error.message}", hint=error.hint) from error


def _evaluated(text: str, scope: Mapping[str, Any], what: str) -> Any:
    try:
        return evaluate(text, scope)
    except ExpressionError as error:
        raise UsageError(f"dial {what}: {error.message}", hint=error.hint) from error


def _known(value: FlagValue, scope: Mapping[str, Any], what: str) -> FlagValue:
    found = _evaluated(value[1:], scope, what) if isinstance(value, str) and value.startswith("=") else value
    if not isinstance(found, bool | int | float | str):
        raise UsageError(f"dial {what}: {value} hangs on a fact that is unknown", hint="give a literal value")
    return found


def _number(value: float | str | None, facts: Mapping[str, Any], what: str) -> float:
    found = _known(value if value is not None else "", scope_of(facts, {}), what)
    if isinstance(found, bool | str):
        raise UsageError(f"dial {what}: {found!r} is not a number", hint='a number, or "= expression"')
    return found


def _place_of(values: Sequence[FlagValue], wanted: Any) -> int | None:
    return next((place for place, value in enumerate(values) if str(value) == str(wanted)), None)


def _place_between(values: Sequence[FlagValue], wanted: Any, *, is_ordered: bool) -> float | None:
    """Where a value stands in a list, between two of its values where it is none of them."""
    exact = _place_of(values, wanted)
    if exact is not None or not is_ordered:
        return exact
    try:
        number = float(wanted)
    except (TypeError, ValueError):
        return None
    numbers = [float(value) for value in values]
    if number <= numbers[0] or number >= numbers[-1]:
        return 0.0 if number <= numbers[0] else float(len(numbers) - 1)
    below = max(place for place, value in enumerate(numbers) if value <= number)
    return below + (number - numbers[below]) / (numbers[below + 1] - numbers[below])
