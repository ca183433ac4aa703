"""How well a predicted range or chance did: proper scores, in log ratio.

A catalogue's range is read as a central prediction interval of the *true* log ratio that holds
`assay.records.scoring.NOMINAL_COVERAGE` of truths, and where a whole distribution is needed, as the normal one with
these quantiles. What is observed is an estimate with noise, so "inside" is also told with how often it was to be
expected. The noise adds to everybody's interval score: scores of two forecasts of the *same* estimates can be compared.

Sources: interval score, Gneiting & Raftery 2007, equation 43 (after Winkler 1972); quadratic score, Brier 1950, here
for one event: (p - y)^2, a half of his sum over both outcomes.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from assay.records.scoring import NOMINAL_COVERAGE, Z_NOMINAL, EffectScore

LOWEST = -0.99
"""A range that reaches -100% is read as ending here: the log ratio of nothing left is minus infinity."""
MIN_SD = 0.002
"""Smallest standard deviation that a range is read with: [0, 0] is "within a few tenths of a percent"."""
STANDARD = NormalDist()


def log_range(predicted: tuple[float, float]) -> tuple[float, float]:
    """A range of relative change as log ratios."""
    low, high = (math.log1p(max(bound, LOWEST)) for bound in predicted)
    return low, high


def middle(low: float, high: float) -> float:
    """The point forecast that a range stands for."""
    return (low + high) / 2


def spread(low: float, high: float) -> float:
    """Standard deviation of the normal distribution whose central `NOMINAL_COVERAGE` the range is."""
    return max((high - low) / (2 * Z_NOMINAL), MIN_SD)


def interval_score(low: float, high: float, value: float, *, coverage: float = NOMINAL_COVERAGE) -> float:
    """Score of a central prediction interval; less is better, and telling what one believes is best on average.

    (u - l) + 2/a (l - x) [x < l] + 2/a (x - u) [x > u] with a = 1 - coverage. Source: Gneiting & Raftery 2007, eq. 43.
    """
    penalty = 2 / (1 - coverage)
    return (high - low) + penalty * max(low - value, 0.0) + penalty * max(value - high, 0.0)


def brier_score(forecast: float, happened: bool) -> float:
    """(p - y)^2; 0 is best, a forecast of one half always gets 0.25. Source: Brier 1950."""
    return (forecast - happened) ** 2


def expected_inside(low: float, high: float, standard_error: float) -> float:
    """Chance that a noisy estimate lies in a range that is right about the truth.

    The estimate is normal around the range's middle with variance sd^2 + se^2; without noise this is the nominal
    coverage, and with much it goes to 0.
    """
    sd = math.hypot(spread(low, high), standard_error)
    return 2 * STANDARD.cdf((high - low) / 2 / sd) - 1


def effect_score(
    predicted: tuple[float, float], estimate: float, interval: tuple[float, float], standard_error: float
) -> EffectScore:
    """Everything that is said of a range and the effect that was measured.

    Args:
        predicted: the range, as relative change.
        estimate: measured log ratio.
        interval: of the estimate, as log ratios.
        standard_error: of the estimate.
    """
    low, high = log_range(predicted)
    return EffectScore(
        low=low,
        high=high,
        estimate=estimate,
        standard_error=standard_error,
        interval_low=interval[0],
        interval_high=interval[1],
        meets=interval[0] <= high and interval[1] >= low,
        inside=low <= estimate <= high,
        expected_inside=expected_inside(low, high, standard_error),
        signed_error=estimate - middle(low, high),
        interval_score=interval_score(low, high, estimate),
    )
