"""One flag as a version declares it, and as a recorded history keeps it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from benchmarks.flag_histories.constants import UNKNOWN

Fields = dict[str, Any]
"""What a history keeps of a flag: see `assay.flags.spec.read_spec`."""
LONGEST_DEFAULT = 8
SUCCESSOR = re.compile(r"[`' ](--[a-z0-9][a-z0-9-]*)`?(?: to '([a-z0-9_]+)'|(=[a-z_]+))?")
"""The flag that a help text names in place of a deprecated one, perhaps with its value."""


@dataclass(slots=True, kw_only=True)
class Declared:
    """A flag of one version."""

    names: list[str]
    kind: str = "str"
    dest: str = ""
    """The field that holds it."""
    choices: list[Any] | None = None
    default: Any = UNKNOWN
    negatable: bool = False
    deprecated: bool = False
    new: str | None = None
    help: str = field(default="", repr=False)
    loose: bool = False
    """Choices are taken in any case of letters, and with `-` for `_`."""
    words: list[str] = field(default_factory=list)
    """Taken in place of a number: `auto`."""
    dead: bool = False
    """No file outside argument handling reads the field."""

    @property
    def says_deprecated(self) -> bool:
        """Whether its help begins with that."""
        return bool(re.search(r"(?i)deprecated", self.help[:60])) and "Replaces the deprecated" not in self.help

    @property
    def successor(self) -> str | None:
        """What stands in its place, by its declaration or its help."""
        if self.new or not self.says_deprecated:
            return self.new
        found = SUCCESSOR.search(re.sub(r"(?is)^.*?deprecated", "", self.help[:200]))
        if found is None or found[1] in self.names:
            return None
        return found[1] + (f" {found[2]}" if found[2] else "") + (found[3] or "")

    def fields(self) -> Fields:
        """As a history keeps it: what is not there says nothing or goes without saying."""
        kept: Fields = {"names": self.names} if len(self.names) > 1 else {}
        kept["kind"] = self.kind
        if self.choices:
            kept["choices"] = list(dict.fromkeys(choice for choice in self.choices if choice is not None))
            if self.loose:
                kept["loose"] = True
        if self.words:
            kept["words"] = self.words
        if self.default is not UNKNOWN and not self._is_off():
            kept["default"] = self.default
        if self.negatable:
            kept["negatable"] = True
        if self.deprecated or self.says_deprecated:
            kept["deprecated"] = True
            if self.successor:
                kept["new"] = self.successor
        if self.dead:
            kept["dead"] = True
        return kept

    def _is_off(self) -> bool:
        """A switch that is off unless it is given: its absence says so."""
        return self.kind == "switch" and not self.negatable and self.default in (None, False)


def plain_default(value: Any) -> Any:
    """A default that can be written down; `UNKNOWN` for every other."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    short = isinstance(value, list) and len(value) <= LONGEST_DEFAULT
    return value if short and all(isinstance(one, str | int | float | bool) for one in value) else UNKNOWN
