"""Whether an installed build takes some flags, by what its own help says of them."""

from __future__ import annotations

import difflib

from assay.records.base import Flags, FlagValue
from assay.records.machine import EngineBuild, FlagInfo


def problem(build: EngineBuild, flags: Flags) -> str | None:
    """Why this build cannot take these flags: unknown, removed, a value missing, superfluous or not a choice."""
    for name, value in flags.items():
        info = build.flag(name)
        reason = (
            f"{build.version} has no flag {name}{_nearest(build, name)}" if info is None else _misuse(info, name, value)
        )
        if reason is not None:
            return reason
    return None


def _misuse(info: FlagInfo, name: str, value: FlagValue) -> str | None:
    if info.removed:
        return f"{name} was removed in this build{f': {info.help}' if info.help else ''}"
    if value is False:
        return None
    if info.value is None:
        return None if value is True else f"{name} is a switch and takes no value, not {value}"
    if value is True:
        return f"{name} needs a value: {', '.join(info.choices) or info.value}"
    given = [word.strip() for word in str(value).split(",")] if _is_list(info) else [str(value)]
    if info.choices and not set(given) <= set(info.choices):
        return f"{name} takes one of {', '.join(info.choices)}, not {value}"
    return None


def _is_list(info: FlagInfo) -> bool:
    """Whether several choices may be given at once."""
    return "comma-separated" in info.help


def _nearest(build: EngineBuild, name: str) -> str:
    known = [spelling for info in build.flags if not info.removed for spelling in info.names]
    close = difflib.get_close_matches(name, known, n=2)
    return f" (nearest: {', '.join(close)})" if close else ""
