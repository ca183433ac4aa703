"""Flags against the installed build: which are Assay's own, which it does not take, how they are written."""

from __future__ import annotations

import difflib

from assay.errors import UsageError
from assay.records.base import Flags, FlagValue
from assay.records.machine import EngineBuild, FlagInfo

OWNED = frozenset(
    {
        "-m", "--model", "-mu", "--model-url", "-hf", "-hfr", "--hf-repo", "--host", "--port", "--metrics",
        "--api-key", "--api-key-file", "--api-prefix", "--ssl-key-file", "--ssl-cert-file", "--log-file",
        "--log-disable", "--log-jsonl", "-h", "--help", "--version",
    }
)  # fmt: skip
"""Flags that Assay sets itself, or that would keep it from talking to the server or reading its log."""


def refuse_owned(build: EngineBuild, flags: Flags) -> None:
    """Raise `UsageError` when a flag, in any of its spellings, is one of Assay's own."""
    owned = [name for name in flags if not OWNED.isdisjoint(_spellings(build, name))]
    if owned:
        raise UsageError(f"{', '.join(sorted(owned))}: Assay sets this itself", hint="remove it from target.flags")


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


def canonical(build: EngineBuild, flags: Flags) -> Flags:
    """The flags under their first long spelling, a negative switch as its positive one set to False."""
    found: Flags = {}
    for name, value in flags.items():
        positive, negative = _polarity(build, name)
        long = next((word for word in positive if _is_positive(word)), name)
        found[long] = not value if name in negative and long != name and isinstance(value, bool) else value
    return found


def rendered(build: EngineBuild, flags: Flags) -> list[str]:
    """The flags as words of the command line."""
    return [word for name, value in flags.items() for word in _words(build, name, value)]


def _misuse(info: FlagInfo, name: str, value: FlagValue) -> str | None:
    if info.removed:
        return f"{name} was removed in this build: {info.help}"
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


def _words(build: EngineBuild, name: str, value: FlagValue) -> list[str]:
    if value is True:
        return [name]
    if value is False:
        return _opposite(build, name)
    return [name, str(value)]


def _opposite(build: EngineBuild, name: str) -> list[str]:
    """The spelling that says the opposite; nothing when the build has none: leaving a switch out is its absence."""
    positive, negative = _polarity(build, name)
    return [word for word in positive if _is_positive(word)][:1] if name in negative else negative[-1:]


def _polarity(build: EngineBuild, name: str) -> tuple[list[str], list[str]]:
    """A flag's positive and negative spellings.

    The help lists the positive ones first, so `-nr` in `--repack, -nr, --no-repack` is known for a negative one by its
    place. A flag without a long positive spelling has only negative ones.
    """
    spellings = _spellings(build, name)
    num_positive = max((i + 1 for i, word in enumerate(spellings) if _is_positive(word)), default=0)
    return spellings[:num_positive], spellings[num_positive:]


def _is_positive(spelling: str) -> bool:
    return spelling.startswith("--") and not spelling.startswith("--no-")


def _spellings(build: EngineBuild, name: str) -> list[str]:
    info = build.flag(name)
    return [name] if info is None else info.names


def _nearest(build: EngineBuild, name: str) -> str:
    known = [spelling for info in build.flags if not info.removed for spelling in info.names]
    close = difflib.get_close_matches(name, known, n=2)
    return f" (nearest: {', '.join(close)})" if close else ""
