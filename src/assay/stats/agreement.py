"""Whether a candidate gives the same answers: next greedy tokens at fixed positions.

Teacher forcing (one token after a fixed prefix) keeps one early difference from counting many times, as it would in
free-running greedy text.
"""

from __future__ import annotations

import math

OWN_AGREEMENTS = 64
"""Equally likely values of the baseline's own agreement that a chance is averaged over."""


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


def below_floor_p_value(
    agreed: int, probes: int, floor: float, natural_disagreed: int = 0, natural_probes: int = 0
) -> float:
    """One-sided p-value that a candidate keeps less than a declared share of what the baseline keeps of itself.

    The chance of so few agreements, or fewer, if the true share were exactly `floor` times the baseline's own agreement
    (binomial distribution). That own agreement is known from its probes only: the chance is averaged over what they
    allow (beta distribution with Jeffreys' prior). Without any, the baseline is taken to agree with itself always.
    """
    from scipy.special import bdtr, betaincinv

    if not natural_probes:
        return float(bdtr(agreed, probes, floor))
    quantiles = [(step + 0.5) / OWN_AGREEMENTS for step in range(OWN_AGREEMENTS)]
    own = betaincinv(natural_probes - natural_disagreed + 0.5, natural_disagreed + 0.5, quantiles)
    return float(bdtr(agreed, probes, floor * own).mean())


def _log_choose(n: int, k: int) -> float:
    from scipy.special import betaln

    return -float(betaln(n - k + 1, k + 1)) - math.log(n + 1)
