"""One flag of one version of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["switch", "int", "float", "str", "json", "size"]
"""`size`: a whole number that may be written `16k` (`assay.records.sizes`)."""
Scalar = bool | int | float | str
KINDS: frozenset[Kind] = frozenset({"switch", "int", "float", "str", "json", "size"})
_MANY = "list:"
_BARE = "bool|"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagSpec:
    """What a version takes under a name."""

    names: tuple[str, ...]
    """Every spelling, the main one first."""
    kind: Kind = "str"
    many: bool = False
    """Takes several words."""
    optional: bool = False
    """May stand without a value."""
    choices: tuple[str, ...] = ()
    loose: bool = False
    """Choices are taken in any case of letters, and with `-` for `_`."""
    words: tuple[str, ...] = ()
    """Taken in place of a number, in any case of letters: `auto`."""
    default: Scalar | None = None
    default_known: bool = False
    negatable: bool = False
    """Has a `--no-` spelling."""
    deprecated: bool = False
    new: str | None = None
    """What the engine itself names in its place."""
    dead: bool = False
    """No file of the engine outside argument handling reads it."""
    removed: bool = False
    """Still parsed, only to say that it is gone."""

    @property
    def name(self) -> str:
        """The main spelling: the first long one."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every spelling, the negative ones last."""
        long = [name for name in self.names if name.startswith("--")] if self.negatable else []
        return (*self.names, *(f"--no-{name[2:]}" for name in long))

    @property
    def is_switch(self) -> bool:
        """Takes no value."""
        return self.kind == "switch"

    @property
    def field(self) -> str:
        """The name that the engine's source knows it by."""
        return self.name.lstrip("-").replace("-", "_")


def read_spec(name: str, fields: Mapping[str, Any]) -> FlagSpec:
    """A flag out of a recorded history: `{"kind": "list:int", "choices": [...], "default": null, ...}`."""
    kind = str(fields.get("kind", "str"))
    optional = kind.startswith(_BARE)
    plain = kind.removeprefix(_BARE)
    many = plain.startswith(_MANY)
    plain = {"hint": "size"}.get(plain.removeprefix(_MANY), plain.removeprefix(_MANY))
    is_switch = plain in {"switch", "bool"}
    return FlagSpec(
        names=tuple(fields.get("names", (name,))),
        kind="switch" if is_switch else plain if plain in KINDS else "str",
        many=many,
        optional=optional,
        choices=tuple(str(choice) for choice in fields.get("choices", ())),
        loose=bool(fields.get("loose")),
        words=tuple(fields.get("words", ())),
        default=_default(fields, is_switch=is_switch),
        default_known=_default_known(fields, is_switch=is_switch),
        negatable=bool(fields.get("negatable")),
        deprecated=bool(fields.get("deprecated")),
        new=fields.get("new"),
        dead=bool(fields.get("dead")),
        removed=bool(fields.get("removed")),
    )


def _default_known(fields: Mapping[str, Any], *, is_switch: bool) -> bool:
    """A switch is off by default, unless it can be negated: then nothing recorded means that the engine decides."""
    if is_switch and fields.get("negatable"):
        return fields.get("default") is not None
    return is_switch or "default" in fields


def _default(fields: Mapping[str, Any], *, is_switch: bool) -> Scalar | None:
    value = fields.get("default")
    if is_switch:
        return bool(value)
    return " ".join(map(str, value)) if isinstance(value, list) else value
