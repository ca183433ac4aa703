"""From a prior and a ceiling to a predicted range.

The rule: the range is the prior, cut off at the ceiling.

- high = min(prior high, ceiling): what a mechanism touches bounds what it can give (Amdahl), whoever claims more.
- low = min(prior low, high): a ceiling says nothing of losses, so the prior's loss stands.
- Where the ceiling is 0 (the mechanism cannot act here) nothing can be gained: high = 0.
- Where the whole prior lies above the ceiling, the range is [0, ceiling]: the claim comes from somewhere else.
- No ceiling (no shape, no box, no term of the estimate, or an objective that is no throughput): the prior as it is.

The ceilings are gains in tokens/s of a step of decode and of the prompts between steps; with a share p of the time in
prompts, the whole gains 1 / ((1 - p) / (1 + decode) + p / (1 + prompts)) - 1. Source: Amdahl 1967, own derivation.

>>> predicted((0.0, 0.10), 0.03, "the estimate", "the claims").high
0.03
>>> predicted((-0.05, 0.10), 0.0, "the estimate", "the claims").high
0.0
"""

from __future__ import annotations

from assay.records.estimate import MechanismCeiling, Range
from assay.records.reasoning import CeilingHere, RangeBasis


def predicted(prior: tuple[float, float], ceiling: float | None, ceiling_from: str, prior_from: str) -> RangeBasis:
    """The range that is scored after the verdict.

    Args:
        prior: of the catalogue entry: relative effect on the objective.
        ceiling: most that can be gained here; None: not known.
        ceiling_from: where the ceiling comes from, in words.
        prior_from: where the prior comes from.
    """
    low, high = prior
    if ceiling is None or high <= ceiling:
        return RangeBasis(low=low, high=high, low_from=prior_from, high_from=prior_from)
    if low <= ceiling:
        return RangeBasis(low=low, high=ceiling, low_from=prior_from, high_from=ceiling_from)
    least = min(0.0, ceiling)
    whole = f"{ceiling_from}; the prior lies above it"
    return RangeBasis(low=least, high=ceiling, low_from="nothing: the prior lies above the ceiling", high_from=whole)


def together(decode: MechanismCeiling, prompts: MechanismCeiling | None, prompt_share: float | None) -> CeilingHere:
    """A mechanism's ceiling over decode and the prompts between its steps."""
    share = prompt_share if prompts is not None and prompt_share is not None else None
    ends = [
        _whole(before, after, share or 0.0)
        for before, after in zip(_ends(decode), _ends(prompts) if prompts else (0.0, 0.0, 0.0), strict=True)
    ]
    low, mid, high = sorted(ends)
    return CeilingHere(
        mechanism=decode.id,
        title=decode.title,
        gain=Range(low=low, mid=mid, high=high),
        touched_share=decode.touched_share,
        applies=decode.applies or (prompts is not None and prompts.applies and bool(share)),
        reason=decode.reason,
        prompt_share=share,
        prompt_reason=prompts.reason if prompts is not None and prompts.applies and share else "",
    )


def _ends(ceiling: MechanismCeiling) -> tuple[float, float, float]:
    return (ceiling.gain.low, ceiling.gain.mid, ceiling.gain.high)


def _whole(decode: float, prompts: float, prompt_share: float) -> float:
    parts = ((1 - prompt_share, decode), (prompt_share, prompts))
    return 1 / sum(share / max(1 + gain, 1e-9) for share, gain in parts) - 1
