"""What would show that a hypothesis is wrong: said before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator

from assay.catalogue.about import About
from assay.records.hypothesis import Hypothesis, MechanismId

SEEN: dict[MechanismId, str] = {
    "weight-bytes": "the memory that the server reports for its weights is no smaller",
    "kv-bytes": "the server's cache holds no more tokens, or attention takes no less of a profile",
    "batch": "no more sequences run at once, by the server's own metrics, than under the baseline",
    "launch": "a profile shows the same gaps between kernels",
    "communication": "a profile shows collectives that take as long as before",
    "overlap": "a profile shows no communication beside computation that was not there before",
    "host": "a profile shows the same gaps between steps",
    "speculation": "the server reports an accepted length of one token",
    "parallelism": "the ranks (or threads) of the server are as many, and do the same, as before",
    "kernel": "a profile shows the same kernels as before",
    "placement": "memory and threads lie where they lay before",
    "reuse": "the server's hit counters did not move",
}
"""What of the mechanism must be seen besides a gain; without it the gain comes from somewhere else."""
SHOWN = 0.00005
"""Shares below this are shown as 0."""


def refutation(hypothesis: Hypothesis, about: About) -> str:
    """One line for each way of being wrong."""
    return "\n".join(f"- {line}" for line in _lines(hypothesis, about))


def _lines(hypothesis: Hypothesis, about: About) -> Iterator[str]:
    low, high = hypothesis.predicted
    least = f"{100 * about.min_effect:g}%"
    yield f"It is not worth having if the interval of its effect lies within ±{least} (no-effect) or below 0 (worse)."
    yield f"The prediction is wrong if that interval lies wholly outside of {percent(low)} to {percent(high)}."
    ceiling = about.reasoning.ceiling if about.reasoning else None
    bounds = about.reasoning is not None and not about.reasoning.no_ceiling
    if ceiling is not None and bounds and ceiling.applies:
        yield (
            f"A gain shown to be above {percent(ceiling.gain.high)} would refute the estimate, not the optimization: "
            f"by it the mechanism touches {ceiling.touched_share:.0%} of a decode step. Look for another cause first "
            "(load, cache hits, fewer tokens)."
        )
    elif ceiling is not None and bounds:
        yield "Any gain beyond noise would refute the estimate, by which the mechanism cannot act here."
    mechanism = hypothesis.optimization.mechanism_id
    if mechanism is not None:
        yield f"A gain is not this mechanism's if {SEEN[mechanism]}."
    if hypothesis.optimization.numerics == "exact":
        yield "It is wrong, however fast, if its answers differ from the baseline's more than the baseline from itself."
    else:
        yield "It is wrong, however fast, if fewer next tokens agree with the baseline's than the spec demands."
    if not hypothesis.optimization.needs_work:
        yield (
            "It was not tried at all if the server reports something else than what was asked for, or its log names a "
            "fallback. What the server does not report proves nothing."
        )


def percent(share: float) -> str:
    """`+2.4%`, `-33%`, `0%`."""
    return "0%" if abs(share) < SHOWN else f"{100 * share:+.3g}%"
