"""Whether a candidate gives the same answers: next greedy tokens at fixed positions.

Teacher forcing (one token after a fixed prefix) keeps one early difference from counting many times, as it would in
free-running greedy text.
"""

from __future__ import annotations

import math


def more_disagreement_p_value(disagreed: int, probes: int, natural_disagreed: int, natural_probes: int) -> float:
    """One-sided p-value that a candidate disagrees more often than the baseline does with itself.

    Fisher's exact test on the two-by-two table, tail of the hypergeometric distribution.

    Returns:
        1.0 when the candidate never disagreed.
    """
    if disagreed == 0:
        return 1.0
    from scipy.special import logsumexp

    total, marked = probes + natural_probes, disagreed + natural_disagreed
    log_all = _log_choose(total, marked)
    tail = [
        _log_choose(probes, k) + _log_choose(natural_probes, marked - k) - log_all
        for k in range(disagreed, min(probes, marked) + 1)
        if marked - k <= natural_probes
    ]
    return min(1.0, math.exp(float(logsumexp(tail))))


def below_floor_p_value(agreed: int, probes: int, floor: float) -> float:
    """One-sided p-value that the share of tokens that stay is below a declared floor.

    The chance of so few agreements, or fewer, if the true share were exactly the floor (binomial distribution).
    """
    from scipy.special import bdtr

    return float(bdtr(agreed, probes, floor))


def _log_choose(n: int, k: int) -> float:
    from scipy.special import betaln

    return -float(betaln(n - k + 1, k + 1)) - math.log(n + 1)
