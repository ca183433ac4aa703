"""What one more trial is expected to bring and to cost: for the order of work, never for a decision.

Everything here is approximate on purpose: normal quantiles in place of Student's and of the spending function's, one
decision in place of screen and re-test. It errs the same way for every candidate, which an order forgives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from assay.plan.runs import median_run_s
from assay.records.hypothesis import Hypothesis
from assay.records.scoring import CorrectedRange, Outlook
from assay.records.state import CampaignState
from assay.stats.scoring import STANDARD

QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Truths of equal weight at which the length of a screen is looked up."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a whole trial."""

    runs: float
    seconds: float


Costs = Callable[[Hypothesis], Cost | None]
"""What the planner knows of a hypothesis's cost; None: nothing better than this module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """What decides a candidate's fate here: thresholds, noise, looks, and who is in the stack."""

    worth: float
    """Smallest log ratio that is adopted."""
    bracket_sd: float
    """0 before the calibration."""
    screen_z: float
    adopt_z: float
    min_brackets: int
    max_brackets: int
    composition_brackets: int
    run_s: float
    stack: tuple[Hypothesis, ...]

    @classmethod
    def of(cls, state: CampaignState) -> Self:
        """As the campaign declared and calibrated it."""
        budget, rates = state.spec.budget, state.spec.statistics
        return cls(
            worth=math.log1p(state.spec.objective.min_effect),
            bracket_sd=state.calibration.bracket_sd if state.calibration else 0.0,
            screen_z=STANDARD.inv_cdf(1 - rates.screen_alpha / 2),
            adopt_z=STANDARD.inv_cdf(1 - rates.adopt_alpha / 2),
            min_brackets=min(budget.min_brackets, budget.max_brackets),
            max_brackets=budget.max_brackets,
            composition_brackets=budget.composition_brackets,
            run_s=median_run_s(state),
            stack=tuple(h for h in state.hypotheses if h.id in state.stack),
        )

    def standard_error(self, brackets: int) -> float:
        """Of the mean of consecutive brackets, (2n - 1/2) / n^2 run variances; one bracket has 3/2 of them."""
        return self.bracket_sd * math.sqrt((2 * brackets - 0.5) / (1.5 * brackets**2))

    def screen_brackets(self, truth: float) -> int:
        """After how many brackets a candidate of this log ratio is decided, were its estimate right."""
        away = truth if truth >= self.worth else self.worth - truth
        for brackets in range(self.min_brackets, self.max_brackets):
            if self.screen_z * self.standard_error(brackets) < away:
                return brackets
        return self.max_brackets

    def has_rival(self, hypothesis: Hypothesis) -> bool:
        """Whether something of the same family stands in the stack already."""
        return any(member.rivals(hypothesis) for member in self.stack)


def outlook(
    hypothesis: Hypothesis, corrected: CorrectedRange, usable: float, judge: Judge, costs: Costs | None
) -> Outlook:
    """Chance of adoption, expected gain, expected cost."""
    chance, gain = _adoption(corrected, judge)
    if judge.has_rival(hypothesis):
        chance, gain = 0.0, 0.0
    cost = (costs(hypothesis) if costs else None) or _cost(corrected, usable, chance, judge)
    return Outlook(
        hypothesis=hypothesis.id,
        predicted=hypothesis.predicted,
        corrected=corrected,
        usable=usable,
        adoption=usable * chance,
        expected_gain=usable * gain,
        expected_runs=cost.runs,
        expected_s=cost.seconds,
    )


def _adoption(corrected: CorrectedRange, judge: Judge) -> tuple[float, float]:
    """Chance that the estimate passes, and the expected true log ratio of what passes (0 for what does not).

    The truth is N(m, s^2), the estimate the truth plus N(0, se^2), and it passes above c. With v = s^2 + se^2:
    P = Phi((m - c) / sqrt v), and E[truth; passes] = m P + s^2 / sqrt v phi((c - m) / sqrt v) (bivariate normal).
    """
    error = judge.standard_error(judge.composition_brackets)
    threshold = max(judge.worth, judge.adopt_z * error)
    sd = math.hypot(corrected.sd, error)
    z = (corrected.middle - threshold) / sd
    chance = STANDARD.cdf(z)
    return chance, max(0.0, corrected.middle * chance + corrected.sd**2 / sd * STANDARD.pdf(z))


def _cost(corrected: CorrectedRange, usable: float, adoption: float, judge: Judge) -> Cost:
    """Two runs a bracket in the screen, and the re-test of those that pass; what cannot be used shows in one run."""
    truths = [corrected.middle + corrected.sd * STANDARD.inv_cdf(share) for share in QUANTILES]
    screen = 2 * sum(map(judge.screen_brackets, truths)) / len(truths)
    retest = adoption * (2 * judge.composition_brackets + 1)
    runs = (1 - usable) + usable * (screen + retest)
    return Cost(runs, runs * judge.run_s)
