"""How the error rate is spent over the looks at a growing series, so that it is as declared and none is wasted.

Looks at the same growing data are correlated, so sharing the error rate out in equal parts (Bonferroni) wastes some of
it. Here the joint distribution of the looks is integrated: the statistic after n brackets is Gaussian with independent
increments in its information, and a symmetric boundary is chosen at each look so that the chance of a first crossing
there is what the spending function allows. The variance being estimated, and by the same few runs at every look, the
rates are then scaled by the factor that makes simulated series of this very design cross as often as declared.

Sources: recursive integration, Armitage, McPherson & Rowe 1969; spending function that resembles Pocock's boundary,
alpha(t) = alpha ln(1 + (e - 1) t), Lan & DeMets 1983; recursive residuals, Brown, Durbin & Evans 1975.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

GRID = 401
"""Points of the density between the boundaries; the crossing probabilities are then right to about 1e-5."""
BISECTIONS = 50
SERIES = 100_000
"""Simulated: at a rate of 1% the factor is right to about 3%."""
SEED = 1983
DEGREES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16)
"""Prior degrees of freedom are rounded down to these."""
WIDEST = 12.0
"""Boundaries are sought below this many standard deviations."""


@dataclass(frozen=True, slots=True)
class Looks:
    """When a series is looked at: after each bracket from the first to the last."""

    first: int
    last: int


ONE_LOOK = Looks(1, 1)


def information(num_brackets: int) -> float:
    """Of the mean of consecutive alternating brackets R C R C ... R, in units of one run's precision.

    The mean's variance is (2 n - 1/2) / n^2 run variances (`assay.stats.brackets.mean_effect` gives it for any design).
    """
    return num_brackets**2 / (2 * num_brackets - 0.5)


def nominal_alpha(num_brackets: int, looks: Looks, alpha: float, prior_degrees: float) -> float:
    """Two-sided error rate of one look, as if it were the only one.

    Args:
        num_brackets: at this look; before the first, where nothing is decided, the first one's rate is told.
        looks: all that may be taken.
        alpha: chance that any of them is wrong.
        prior_degrees: degrees of freedom of the noise that other runs lend.
    """
    if looks.first >= looks.last:
        return alpha
    rates = gaussian_rates(looks, alpha)
    rate = rates[min(max(num_brackets - looks.first, 0), len(rates) - 1)]
    return rate * _factor(looks, alpha, max(step for step in DEGREES if step <= max(prior_degrees, 0)))


@lru_cache(maxsize=256)
def gaussian_rates(looks: Looks, alpha: float) -> tuple[float, ...]:
    """The rate of each look, first to last, were the variance known."""
    import numpy as np

    shares = [information(n) / information(looks.last) for n in range(looks.first, looks.last + 1)]
    spent = [alpha * math.log1p((math.e - 1) * share) for share in shares]
    rates: list[float] = []
    grid, density = np.zeros(1), np.ones(1)
    before, gone = 0.0, 0.0
    for share, total in zip(shares, spent, strict=True):
        step_sd = math.sqrt(share - before)
        bound = _bound(grid, density, step_sd, total - gone)
        rates.append(2 * _upper_tail(bound / math.sqrt(share)))
        grid, density = _advance(grid, density, step_sd, bound)
        before, gone = share, total
    return tuple(rates)


@lru_cache(maxsize=256)
def _factor(looks: Looks, alpha: float, prior_degrees: int) -> float:
    """By how much the rates must be scaled where the variance is estimated.

    Every simulated series has its smallest ratio of p-value to rate over all looks; the factor is the alpha quantile.
    """
    import numpy as np
    from scipy.special import stdtr

    rng = np.random.default_rng(SEED)
    prior_squares = rng.chisquare(prior_degrees, SERIES) if prior_degrees else np.zeros(SERIES)
    total, squares, known = np.zeros(SERIES), prior_squares, 0.0
    smallest = np.full(SERIES, np.inf)
    for n in range(1, looks.last + 1):
        weight = math.sqrt(information(n) - known)
        fresh = rng.standard_normal(SERIES)
        if known:
            squares = squares + (fresh - weight * total / known) ** 2 / (1 + weight**2 / known)
        total, known = total + weight * fresh, information(n)
        degrees = prior_degrees + n - 1
        if n < looks.first or not degrees:
            continue
        student = np.abs(total) / np.sqrt(known * squares / degrees)
        rate = gaussian_rates(looks, alpha)[n - looks.first]
        smallest = np.minimum(smallest, 2 * stdtr(degrees, -student) / rate)
    return min(1.0, float(np.quantile(smallest, alpha)))


def _bound(grid: Floats, density: Floats, step_sd: float, wanted: float) -> float:
    """Where the chance to land outside of plus or minus it is what may be spent at this look."""
    low, high = 0.0, WIDEST
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _outside(grid, density, step_sd, middle) > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _outside(grid: Floats, density: Floats, step_sd: float, bound: float) -> float:
    from scipy.special import ndtr

    tails = ndtr((-bound - grid) / step_sd) + ndtr((grid - bound) / step_sd)
    return float(_integral(grid, density * tails))


def _advance(grid: Floats, density: Floats, step_sd: float, bound: float) -> tuple[Floats, Floats]:
    """Density of the paths that have not crossed, one look later."""
    import numpy as np

    finer = np.linspace(-bound, bound, GRID)
    kernel = np.exp(-0.5 * ((finer[:, None] - grid[None, :]) / step_sd) ** 2) / (step_sd * math.sqrt(2 * math.pi))
    return finer, np.array([_integral(grid, row * density) for row in kernel])


def _integral(grid: Floats, values: Floats) -> float:
    """Simpson's rule; a single point carries its whole mass."""
    if len(grid) == 1:
        return float(values[0])
    width = float(grid[1] - grid[0])
    return width / 3 * float(values[0] + values[-1] + 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum())


def _upper_tail(z: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(-z))
