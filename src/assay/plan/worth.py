"""What trying a candidate promises, and what it costs: where a short budget is spent first.

What is expected of a candidate is the catalogue's predicted range, read as the middle 80% of a normal distribution of
the log ratio. How such predictions fared on machines of this class corrects it (`assay.plan.credibility`), and what was
measured of it sharpens it (the product of the two normals). What it promises is the mean of the gain's positive part: a
loss is not adopted. Nothing of this touches a verdict: it only says who comes first.

Sources: posterior of a normal mean with known variances, Gelman et al., Bayesian Data Analysis (2013), section 2.5;
E[max(0, X)] = m Phi(m/s) + s phi(m/s) for a normal X.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from assay.plan.credibility import corrected_range, learn, score, usable_chance
from assay.plan.evidence import MAIN, bracket_counts, screen_effect
from assay.plan.runs import EXPECTED_BRACKETS, median_run_s
from assay.records.hypothesis import Hypothesis
from assay.records.scoring import Credibility, MachineClass
from assay.records.state import CampaignState
from assay.records.views import Worth

LEAST_SD = 0.005
"""A range of no width is not believed to half a percent."""
STANDARD = NormalDist()


def worth(state: CampaignState, hypothesis: Hypothesis, credibility: Credibility, num_candidates: int) -> Worth:
    """Of one candidate of the screen.

    Args:
        state: the campaign.
        hypothesis: the candidate.
        credibility: what earlier predictions teach.
        num_candidates: how many share baseline runs with it.
    """
    budget = state.spec.budget
    mean, sd = _expected(state, hypothesis, credibility)
    done = bracket_counts(state, MAIN)[hypothesis.id]
    chance = 1.0 if done else usable_chance(hypothesis, credibility)
    left = max(1.0, EXPECTED_BRACKETS * budget.max_brackets - done)
    per_bracket_s = _own_run_s(state, hypothesis.id) + median_run_s(state) / max(1, min(budget.block, num_candidates))
    return Worth(
        candidate=hypothesis.id,
        brackets=done,
        expected_gain=chance * math.expm1(mean * STANDARD.cdf(mean / sd) + sd * STANDARD.pdf(mean / sd)),
        chance_worth_having=chance * STANDARD.cdf((mean - math.log1p(state.spec.objective.min_effect)) / sd),
        cost_s=left * per_bracket_s,
    )


def ranked(state: CampaignState, candidates: list[Hypothesis]) -> list[Worth]:
    """All candidates, most gain for its time first."""
    own = MachineClass.of(state.machine, state.build, state.model)
    credibility = learn([*state.earlier_scores, *score(state)], own)
    found = [worth(state, hypothesis, credibility, len(candidates)) for hypothesis in candidates]
    return sorted(found, key=lambda one: -one.gain_per_s)


def affordable(state: CampaignState, candidates: list[Hypothesis], free_s: float) -> list[Hypothesis]:
    """Those that the free time can give their fewest brackets, most gain for its time first; at least one."""
    by_id = {hypothesis.id: hypothesis for hypothesis in candidates}
    least = max(1, min(state.spec.budget.min_brackets, state.spec.budget.max_brackets))
    done = bracket_counts(state, MAIN)
    if sum(max(0, least - done[name]) for name in by_id) * 2 * median_run_s(state) <= free_s:
        return candidates  # it reaches for all, block or no block: no need to weigh them
    chosen: list[Hypothesis] = []
    for one in ranked(state, candidates):
        expected = max(1.0, EXPECTED_BRACKETS * state.spec.budget.max_brackets - one.brackets)
        free_s -= one.cost_s / expected * max(0, least - one.brackets)
        if chosen and free_s < 0:
            break
        chosen.append(by_id[one.candidate])
    return chosen


def _expected(state: CampaignState, hypothesis: Hypothesis, credibility: Credibility) -> tuple[float, float]:
    """Mean and standard deviation of what is known of its log ratio."""
    predicted = corrected_range(hypothesis, credibility)
    mean, sd = predicted.middle, max(predicted.sd, LEAST_SD)
    found = screen_effect(state, hypothesis.id)
    if found is None or found.standard_error <= 0:
        return mean, sd
    precision, own = 1 / sd**2, 1 / found.standard_error**2
    return (mean * precision + found.log_ratio * own) / (precision + own), (precision + own) ** -0.5


def _own_run_s(state: CampaignState, candidate: str) -> float:
    """A candidate's own runs may take longer to start than others (an artifact, a compilation)."""
    runs = [r.outcome.duration_s for r in state.runs if r.intent.candidate == candidate and r.outcome]
    return sorted(runs)[len(runs) // 2] if runs else median_run_s(state)
