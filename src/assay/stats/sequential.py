"""Intervals that hold at every look, and the decision they allow.

The analyst looks after each bracket. The error rate is spent over these looks (`assay.stats.spending`), so the chance
that any of the intervals misses is at most alpha, whatever the rule that stops the trial. The variance is moderated:
the box's known noise enters as prior degrees of freedom, so a candidate can be judged from its first bracket on.

Source: moderated variance as in Smyth 2004 (limma), equation for the posterior variance
s~^2 = (d0 s0^2 + d s^2) / (d0 + d), here with d0 capped instead of estimated.
"""

from __future__ import annotations

import math
from typing import Literal

from assay.records.verdict import Effect
from assay.stats.brackets import Brackets, Noise, mean_effect, pool, residual_noise
from assay.stats.spending import ONE_LOOK, Looks, information, nominal_alpha

PRIOR_DEGREES_CAP = 16.0
"""Most degrees of freedom that the box's noise may lend: arms may differ in noise, so their own data must count."""

MAX_LOG_RATIO = 20.0
"""Bounds end here, at a factor of 5e8: it stands for "anything", and percentages stay finite numbers."""

Decision = Literal["better", "worse", "no-effect", "futile", "continue"]


def student_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Quantile of Student's t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, probability))


def lent(box: Noise | None) -> Noise | None:
    """What the box's noise may lend to a candidate's own, its degrees of freedom capped."""
    return box and Noise(variance=box.variance, degrees_of_freedom=min(box.degrees_of_freedom, PRIOR_DEGREES_CAP))


def effect(found: Brackets, box: Noise | None, *, alpha: float, looks: Looks = ONE_LOOK) -> Effect | None:
    """Estimate a candidate's effect with an interval that holds at every look.

    Args:
        found: the candidate's brackets so far, at least one.
        box: run-to-run noise known from other runs (A/A, other candidates).
        alpha: two-sided error rate over all looks.
        looks: after which brackets it may be looked at.

    Returns:
        None when there is no bracket, or neither own nor borrowed degrees of freedom.
    """
    if not len(found):
        return None
    capped = lent(box)
    noise = pool(capped, residual_noise(found))
    if noise is None:
        return None
    estimate, relative_variance = mean_effect(found)
    standard_error = math.sqrt(noise.variance * relative_variance)
    # The lower tail is exact where 1 - alpha would round to 1.
    nominal = nominal_alpha(len(found), looks, alpha, capped.degrees_of_freedom if capped else 0.0)
    half = -student_quantile(nominal / 2, noise.degrees_of_freedom) * standard_error
    return Effect(
        log_ratio=estimate,
        low=max(estimate - half, -MAX_LOG_RATIO),
        high=min(estimate + half, MAX_LOG_RATIO),
        num_brackets=len(found),
        standard_error=standard_error,
        degrees_of_freedom=noise.degrees_of_freedom,
        confidence=1 - alpha,
    )


def decide(found: Effect, min_effect: float) -> Decision:
    """Say what an interval allows to be said.

    better: above 0, and the estimate is worth having. worse: below 0. no-effect: inside plus or minus `min_effect`.
    futile: cannot be worth having any more, though it may still be a loss. continue: none of these yet.
    """
    worth = math.log1p(min_effect)
    if found.low > 0 and found.log_ratio >= worth:
        return "better"
    if found.high < 0:
        return "worse"
    if found.low > -worth and found.high < worth:
        return "no-effect"
    return "futile" if found.high < worth else "continue"


def chance_of_gain(found: Effect, min_effect: float, *, alpha: float, looks: Looks) -> float:
    """Chance that the last look will show a gain, as predicted from the brackets so far (predictive power).

    The truth is taken to be what was measured, give or take its error (flat prior). Then the estimate at the last look
    is Student's t around today's, with variance se^2 (1 - r), where r is the share of the last look's information that
    is there. It has to reach what is worth having and to leave its interval above zero. That an earlier look may show
    the gain is left out, so the chance is told a little too small.

    Stopping where it is small adopts nothing: error rates and coverage stay as they are, only power is spent.

    Sources: predictive power, Spiegelhalter, Freedman & Blackburn 1986; non-binding stops for futility, Jennison &
    Turnbull, Group Sequential Methods (2000), section 10.

    Args:
        found: what is known so far.
        min_effect: smallest relative effect that counts as a gain.
        alpha: two-sided error rate over all looks.
        looks: all that may be taken.
    """
    from scipy.special import stdtr

    share = information(found.num_brackets) / information(looks.last)
    if share >= 1 or found.standard_error <= 0:
        return float(decide(found, min_effect) == "better")
    lent_degrees = found.degrees_of_freedom - (found.num_brackets - 1)
    rate = nominal_alpha(looks.last, looks, alpha, lent_degrees)
    last_half = -student_quantile(rate / 2, found.degrees_of_freedom) * found.standard_error * math.sqrt(share)
    missing = max(math.log1p(min_effect), last_half) - found.log_ratio
    return float(stdtr(found.degrees_of_freedom, -missing / (found.standard_error * math.sqrt(1 - share))))


def min_detectable_effect(box: Noise, num_brackets: int, *, alpha: float, power: float = 0.8) -> float:
    """Relative effect that `num_brackets` consecutive brackets find with the given power.

    (t_{1-alpha/2} + t_{power}) times the standard error of the mean of alternating brackets R C R C ... R, whose
    variance is (2k - 1/2) / k^2 run variances.
    """
    k = num_brackets
    standard_error = math.sqrt(box.variance * (2 * k - 0.5) / k**2)
    degrees = box.degrees_of_freedom
    multiple = student_quantile(power, degrees) - student_quantile(alpha / 2, degrees)
    return math.expm1(min(multiple * standard_error, MAX_LOG_RATIO))
