"""Flags under whatever spelling the baseline gives them."""

from __future__ import annotations

from typing import Any

from assay.records import sizes
from assay.records.base import Flags, FlagValue
from assay.records.machine import EngineBuild

SIZE = "SIZE"
"""How the placeholder of a flag begins whose number may be written `16k`."""
LEFT_TO_ENGINE = frozenset({"auto", "-1"})
NEGATED = ("--no-", "-n")
"""How the spellings of a switch begin that turn it off (`--no-repack`, `-nr`), where it has both sides."""


def value(build: EngineBuild, flags: Flags, name: str, default: FlagValue | None = None) -> Any:
    """The baseline's value of a flag, under any of its spellings; numbers as numbers."""
    for spelling in same_side(build, name):
        if spelling in flags:
            return _in_force(build, name, flags[spelling])
    for spelling in other_side(build, name):
        if spelling in flags:
            return not flags[spelling]
    return default


def same_side(build: EngineBuild, name: str) -> list[str]:
    """Every spelling that says what this one says."""
    info = build.flag(name)
    names = info.names if info else [name]
    if not _is_pair(build, name):
        return names
    return [other for other in names if other.startswith(NEGATED) == name.startswith(NEGATED)]


def other_side(build: EngineBuild, name: str) -> list[str]:
    """Every spelling that says the opposite (`--no-repack` for `--repack`)."""
    info = build.flag(name)
    if info is None or not _is_pair(build, name):
        return []
    return [other for other in info.names if other.startswith(NEGATED) != name.startswith(NEGATED)]


def as_in(baseline: Flags, build: EngineBuild, name: str) -> str:
    """The spelling that the baseline gives it; its own where the baseline does not give it."""
    return next((spelling for spelling in same_side(build, name) if spelling in baseline), name)


def as_number(given: FlagValue) -> FlagValue:
    """Numbers that a person quoted in assay.toml are numbers to a condition."""
    if isinstance(given, str):
        for kind in (int, float):
            try:
                return kind(given)
            except ValueError:
                continue
    return given


def number_of(build: EngineBuild, given: FlagValue) -> FlagValue:
    """A number as the engine reads it, `16k` too; any other value as it is."""
    number = sizes.whole(given, build.engine) if isinstance(given, str) else None
    return as_number(given) if number is None else number


def _in_force(build: EngineBuild, name: str, given: FlagValue) -> FlagValue | None:
    """What a value is to a condition: `16k` is a number; None where a size is left to the engine (`auto`, -1)."""
    info = build.flag(name)
    if info is not None and (info.value or "").startswith(SIZE) and str(given).lower() in LEFT_TO_ENGINE:
        return None
    return number_of(build, given)


def _is_pair(build: EngineBuild, name: str) -> bool:
    info = build.flag(name)
    return info is not None and info.value is None and any(other.startswith("--no-") for other in info.names)
