"""Which of the matches counts: the strongest, and of equal ones the first."""

from __future__ import annotations

from assay.failures.found import Found
from assay.failures.rules import DEFAULT_LEVELS, STRENGTHS

STATING = frozenset({"root", "general", "broad"})


def root_of(causes: list[Found]) -> Found | None:
    """Of the first life in which a cause is stated, else of all."""
    stated = min((each.life for each in causes if each.strength in STATING), default=None)
    candidates = causes if stated is None else [each for each in causes if each.life == stated]
    raised = min((each.order for each in candidates if _is_exception(each)), default=None)
    return min(candidates, key=lambda each: (_rank(each, raised), each.order), default=None)


def _is_exception(found: Found) -> bool:
    """Whether it is an exception, of a kind that often follows from something else."""
    return found.rule.inferred and found.rule.strength == "frame" and not found.is_source


def _rank(found: Found, raised: tuple[int, int] | None) -> int:
    """What follows from nearly everything tells less than an exception before it, for which the process was ended.

    So does what is no more than a warning, or an answer to one request, wherever it stands.
    """
    is_error = found.line.level in DEFAULT_LEVELS
    if found.strength == "echo" and raised is not None and (raised < found.order or not is_error):
        return len(STRENGTHS)
    return STRENGTHS.index(found.strength)
