"""How many experts a batch touches, and how much falls on the busiest rank.

A token chooses `top_k` distinct experts of `num_experts`. Tokens are taken as independent of each other: prompts that
resemble each other touch fewer experts than this says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, pvariance

from assay.records.estimate import Routing

UNIFORM = Routing()
MOST_SKEWED = Routing(law="zipf", exponent=1.2)
"""The most uneven choice of experts that floors allow for.

Even and independent choices touch the most experts, so that a ceiling which takes them is none: batches of 8-32
sequences on gpt-oss and Qwen3 ran up to 1.5 times faster (ggml-org/llama.cpp, benches/dgx-spark.md). Exponents up to
1.1 explain them (docs/predicted_against_published.md), but whether routing is that skewed or the sequences too alike is
not known: a revision of that benchmark's source feeds every sequence the same token. The exponent was set with those
points in view, so that they do not test it. Identical prompts could touch fewer experts still.
"""
RANDOM_WEIGHTS = Routing(law="zipf", exponent=1.0)
"""The choice of experts by seeded random weights of the kind that `benchmarks/gpu/moe_model.py` writes.

They do not route evenly: contexts of one language resemble each other, and so do the hidden states that a router sees.
Source: own traces (examples/gpu/h200-step). The experts' gate-up kernels of a layer take 226 us at 64 sequences and 114
at 16; at 90 to 100% of the read ceiling that is 143 to 159 experts, and 72 to 80. This law touches 153 and 69, even
routing 222 and 102.
"""
_BISECTIONS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the experts of one layer have to do in a step, over the whole box and on one of its expert ranks."""

    distinct: float
    """Expected distinct experts touched, over all."""
    mean_rank_distinct: float
    """Of them on a rank, if they fell evenly."""
    busiest_rank_distinct: float
    """Of them on the rank with the most."""
    mean_rank_tokens: float
    """Token-expert pairs on a rank, if they fell evenly."""
    busiest_rank_tokens: float
    """Pairs on the rank with the most."""


def expected_distinct(num_experts: int, top_k: int, tokens: float, routing: Routing = UNIFORM) -> float:
    """Expected number of distinct experts that some token chooses.

    Uniform routing, exact: E * (1 - (1 - k/E)**n), because an expert is not among the k of one token with the chance
    C(E-1, k) / C(E, k) = 1 - k/E. Zipf: sum over experts of 1 - (1 - p_r)**n with the inclusion probabilities p_r of
    `inclusion`.
    """
    if num_experts <= 0 or tokens <= 0:
        return 0.0
    return _hits(num_experts, top_k, tokens, _exponent(routing))[0]


def fewest_distinct(num_experts: int, top_k: int, tokens: float, routing: Routing = UNIFORM) -> float:
    """Distinct experts that a floor counts: under the given routing or the most skewed one, whichever touches fewer."""
    given, skewed = (expected_distinct(num_experts, top_k, tokens, one) for one in (routing, MOST_SKEWED))
    return min(given, skewed)


@lru_cache(maxsize=64)
def inclusion(num_experts: int, top_k: int, exponent: float) -> tuple[float, ...]:
    """Chance that a token's `top_k` contain each expert, most popular first; the sum is `top_k`.

    Experts are drawn one after the other without replacement, in proportion to r**-exponent. That equals taking the
    first k of exponential clocks with these rates, so that p_r ~ 1 - exp(-t * w_r) with t such that the sum is k: the
    approximation is to hold t at one value instead of averaging over it. Exact for exponent 0; against simulation the
    expected distinct experts agree within 1% (tests/unit/test_roofline_experts.py).
    """
    if top_k >= num_experts:
        return (1.0,) * num_experts
    if exponent == 0:
        return (top_k / num_experts,) * num_experts
    weights = [rank**-exponent for rank in range(1, num_experts + 1)]

    def chosen(time: float) -> list[float]:
        return [-math.expm1(-time * weight) for weight in weights]

    low, high = 0.0, 1.0
    while sum(chosen(high)) < top_k:
        high *= 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(chosen(middle)) < top_k else (low, middle)
    return tuple(chosen(high))


@lru_cache(maxsize=4096)
def _hits(num_experts: int, top_k: int, tokens: float, exponent: float) -> tuple[float, float, float]:
    """Of the chances that some token chooses each expert: sum, sum of variances p * (1 - p), variance over experts."""
    chances = inclusion(num_experts, min(top_k, num_experts), exponent)
    if exponent == 0:
        hit = _hit(chances[0], tokens)
        return num_experts * hit, num_experts * hit * (1 - hit), 0.0
    hits = [_hit(chance, tokens) for chance in chances]
    return sum(hits), sum(hit * (1 - hit) for hit in hits), pvariance(hits)


@lru_cache(maxsize=64)
def _popularity_variance(num_experts: int, top_k: int, exponent: float) -> float:
    return 0.0 if exponent == 0 else pvariance(inclusion(num_experts, min(top_k, num_experts), exponent))


def load(num_experts: int, top_k: int, tokens: float, ranks: int, routing: Routing = UNIFORM) -> Load:
    """What falls on expert ranks that hold `num_experts / ranks` experts each, placed without regard to popularity.

    The busiest rank is the mean plus the expected largest of `ranks` normal deviates (Blom's approximation) times the
    standard deviation between ranks: of the tokens, which choose by chance, and of the popularity of the experts that
    a rank happens to hold.
    """
    exponent = _exponent(routing)
    distinct, hit_variance, between = _hits(num_experts, top_k, tokens, exponent)
    pairs = tokens * min(top_k, num_experts)
    spread = 1 - 1 / ranks
    distinct_sd = math.sqrt(spread / ranks * (hit_variance + num_experts * between))
    without_replacement = (num_experts - top_k) / max(1, num_experts - 1)
    popularity = num_experts * _popularity_variance(num_experts, top_k, exponent)
    pairs_sd = math.sqrt(spread / ranks * (pairs * max(0.0, without_replacement) + tokens**2 * popularity))
    deviates = largest_deviate(ranks)
    held = num_experts / ranks
    return Load(
        distinct=distinct,
        mean_rank_distinct=distinct / ranks,
        busiest_rank_distinct=min(held, distinct / ranks + deviates * distinct_sd),
        mean_rank_tokens=pairs / ranks,
        busiest_rank_tokens=min(tokens * min(top_k, held), pairs / ranks + deviates * pairs_sd),
    )


@lru_cache(maxsize=64)
def largest_deviate(count: int) -> float:
    """Expected largest of `count` standard normal deviates, by Blom's approximation; 0 for one.

    Source: G. Blom, Statistical Estimates and Transformed Beta-Variables (1958): the quantile (n - 3/8) / (n + 1/4).
    """
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0


def _exponent(routing: Routing) -> float:
    return routing.exponent if routing.law == "zipf" else 0.0


def _hit(chance: float, tokens: float) -> float:
    """Chance that at least one of the tokens chooses an expert that one token chooses with that chance."""
    return 1.0 if chance >= 1 else -math.expm1(tokens * math.log1p(-chance))
