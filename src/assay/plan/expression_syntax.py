"""The syntax of the conditions of the catalogue: text to a tree, without any facts.

expression  :=  conjunction ("or" conjunction)*
conjunction :=  negation ("and" negation)*
negation    :=  "not" negation | comparison
comparison  :=  sum (("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not" "in") sum)*
sum         :=  product (("+" | "-") product)*
product     :=  sign (("*" | "/" | "//") sign)*
sign        :=  "-" sign | access
access      :=  atom ("." name | "[" expression "]" | "(" list ")")*
atom        :=  name | number | text | true | false | None | "(" list ")" | "[" list "]"
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from assay.errors import UsageError

MAX_CHARACTERS = 500
MAX_DEPTH = 32
"""Nesting; far above any condition that a person can read, far below what would exhaust the stack."""
TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z_0-9.]))"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<text>\"[^\"\n]*\"|'[^'\n]*')|(?P<sign>==|!=|<=|>=|//|[-+*/<>()\[\].,])"
)
LITERALS = {"true": True, "True": True, "false": False, "False": False, "None": None, "none": None}
WORDS = {"and", "or", "not", "in"}


class ExpressionError(UsageError):
    """An expression that cannot be read, or does not fit its facts; points at the column."""

    def __init__(self, problem: str, text: str, column: int, *, hint: str | None = None) -> None:
        shown = "".join(character if character.isprintable() else " " for character in text)
        super().__init__(f"{problem} (column {column + 1})\n    {shown}\n    {' ' * column}^", hint=hint)
        self.problem = problem
        self.column = column + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One construct of an expression, with its place in the text."""

    kind: str
    """literal, name, member, index, call, items, negative, arithmetic, comparison, not, and, or."""
    start: int
    end: int
    value: Any = None
    """literal: the value; name and member: the name; arithmetic and comparison: the operators."""
    parts: tuple[Node, ...] = ()
    depth: int = 1

    @property
    def is_fact(self) -> bool:
        """Whether it is read from the facts, not computed."""
        return self.kind in {"name", "member", "index", "call"}


@lru_cache(maxsize=1024)
def parse(text: str) -> Node:
    """Read an expression, without any facts.

    Raises:
        ExpressionError: it cannot be read.
    """
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        if len(text) > MAX_CHARACTERS:
            message = f"an expression of {len(text)} characters; at most {MAX_CHARACTERS} are read"
            raise ExpressionError(message, text[:60], 0, hint="split the entry into simpler ones")
        self._tokens = self._tokenized()

    def _tokenized(self) -> list[tuple[str, str, int]]:
        tokens, at = [], 0
        while at < len(self._text):
            found = TOKEN.match(self._text, at)
            if found is None:
                self._fail(f"{self._text[at]!r} does not belong here", at)
            if found.lastgroup != "space":
                kind = "sign" if found.group() in WORDS else str(found.lastgroup)
                tokens.append((kind, found.group(), at))
            at = found.end()
        return [*tokens, ("end", "", len(self._text))]

    def _fail(self, problem: str, column: int) -> NoReturn:
        hint = "names, literals, == != < <= > >=, and, or, not, in, + - * / //, parentheses"
        raise ExpressionError(problem, self._text, column, hint=hint)

    def _take(self, *signs: str) -> str | None:
        kind, word, _ = self._tokens[self._at]
        if kind != "sign" or word not in signs:
            return None
        self._at += 1
        return word

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            self._fail(f"expected {sign!r}{self._found()}", self._tokens[self._at][2])

    def _found(self) -> str:
        kind, word, _ = self._tokens[self._at]
        return " before the end" if kind == "end" else f", found {word!r}"

    def _node(self, kind: str, start: int, value: Any = None, parts: tuple[Node, ...] = ()) -> Node:
        _, word, at = self._tokens[self._at - 1]
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > MAX_DEPTH:
            self._fail(f"nested more than {MAX_DEPTH} deep", start)
        return Node(kind=kind, start=start, end=at + len(word), value=value, parts=parts, depth=depth)

    def whole(self) -> Node:
        node = self._expression()
        if self._tokens[self._at][0] != "end":
            self._fail(f"expected an operator{self._found()}", self._tokens[self._at][2])
        return node

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"nested more than {MAX_DEPTH} deep", self._tokens[self._at][2])
        node = self._joined("or", lambda: self._joined("and", self._negation))
        self._depth -= 1
        return node

    def _joined(self, word: str, part: Callable[[], Node]) -> Node:
        start, parts = self._tokens[self._at][2], [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else self._node(word, start, parts=tuple(parts))

    def _prefixed(self, word: str, kind: str, inner: Callable[[], Node]) -> Node:
        start, count = self._tokens[self._at][2], 0
        while self._take(word):
            count += 1
        node = inner()
        for _ in range(count):
            node = self._node(kind, start, parts=(node,))
        return node

    def _negation(self) -> Node:
        return self._prefixed("not", "not", self._comparison)

    def _comparison(self) -> Node:
        start, parts, signs = self._tokens[self._at][2], [self._sum()], []
        while sign := self._take("==", "!=", "<", "<=", ">", ">=", "in", "not"):
            if sign == "not":
                self._need("in")
                sign = "not in"
            signs.append(sign)
            parts.append(self._sum())
        return self._node("comparison", start, signs, tuple(parts)) if signs else parts[0]

    def _sum(self) -> Node:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/", "//"), self._sign))

    def _chain(self, signs: tuple[str, ...], part: Callable[[], Node]) -> Node:
        start, parts, found = self._tokens[self._at][2], [part()], []
        while sign := self._take(*signs):
            found.append(sign)
            parts.append(part())
        return self._node("arithmetic", start, found, tuple(parts)) if found else parts[0]

    def _sign(self) -> Node:
        return self._prefixed("-", "negative", self._access)

    def _access(self) -> Node:
        start, node = self._tokens[self._at][2], self._atom()
        while sign := self._take(".", "[", "("):
            if sign == ".":
                kind, word, at = self._tokens[self._at]
                if kind != "name":
                    self._fail(f"expected a name after '.'{self._found()}", at)
                self._at += 1
                node = self._node("member", start, word, (node,))
            elif sign == "[":
                inner = self._expression()
                self._need("]")
                node = self._node("index", start, parts=(node, inner))
            else:
                node = self._node("call", start, parts=(node, *self._list(")")))
        return node

    def _list(self, closing: str) -> list[Node]:
        items: list[Node] = []
        while not self._take(closing):
            if items:
                self._need(",")
            items.append(self._expression())
        return items

    def _atom(self) -> Node:
        kind, word, at = self._tokens[self._at]
        if kind == "end" or (kind == "sign" and word not in {"(", "["}):
            self._fail(f"expected a value{self._found()}", at)
        self._at += 1
        if kind == "number":
            return self._number(word, at)
        if kind == "text":
            return self._node("literal", at, word[1:-1])
        if kind == "name":
            is_literal = word in LITERALS
            return self._node("literal" if is_literal else "name", at, LITERALS[word] if is_literal else word)
        items = self._list(")" if word == "(" else "]")
        return items[0] if word == "(" and len(items) == 1 else self._node("items", at, parts=tuple(items))

    def _number(self, word: str, at: int) -> Node:
        number = float(word) if re.search(r"[.eE]", word) else int(word)
        if not math.isfinite(number):
            self._fail(f"{word} is too large a number", at)
        return self._node("literal", at, number)
