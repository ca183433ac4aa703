"""Flags against the installed build: which are Assay's own, which it does not take, how they are written."""

from __future__ import annotations

from assay.errors import UsageError
from assay.records.base import Flags, FlagValue
from assay.records.machine import EngineBuild

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
