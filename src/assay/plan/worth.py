"""What trying a candidate promises, and what it costs: where a short budget is spent first.

What is expected of a candidate is the catalogue's predicted range, read as the middle 80% of a normal distribution of
the log ratio. How such predictions fared on machines of this class corrects it (`assay.plan.credibility`), and what was
measured of it sharpens it (the product of the two normals). What it promises is what it is expected to add to the
stack, for the time until its screen decides. `assay next`, the report and the planner all take this order. Nothing of
it touches a verdict: it only says who comes first.

Source: posterior of a normal mean with known variances, Gelman et al., Bayesian Data Analysis (2013), section 2.5.
"""

from __future__ import annotations

import math

from assay.plan.cost import EXPECTED_BRACKETS
from assay.plan.credibility import outlooks
from assay.plan.credibility_outlook import Cost
from assay.plan.evidence import screen_effect
from assay.plan.runs import median_run_s
from assay.plan.series import MAIN, bracket_counts
from assay.records.hypothesis import Hypothesis
from assay.records.scoring import Outlook
from assay.records.state import CampaignState
from assay.records.views import Worth
from assay.stats.scoring import STANDARD


def open_outlooks(state: CampaignState) -> list[Outlook]:
    """Of everything that the screen has not decided, most gain for its time first."""
    num_open = sum(1 for h in state.hypotheses if h.status == "planned" and h.id not in _decided(state))
    seen = {h.id: found for h in state.hypotheses if (found := screen_effect(state, h.id)) is not None}
    return outlooks(state, state.earlier_scores, costs=lambda h: _cost(state, h.id, num_open), seen=seen)


def ranked(state: CampaignState, candidates: list[Hypothesis]) -> list[Worth]:
    """Those of `open_outlooks` that are candidates of the screen, in its order."""
    names, done = {hypothesis.id for hypothesis in candidates}, bracket_counts(state, MAIN)
    worth_having = math.log1p(state.spec.objective.min_effect)
    return [
        Worth(
            candidate=one.hypothesis,
            brackets=done[one.hypothesis],
            expected_gain=math.expm1(one.expected_gain),
            chance_worth_having=one.usable * STANDARD.cdf((one.corrected.middle - worth_having) / one.corrected.sd),
            cost_s=one.expected_s,
        )
        for one in open_outlooks(state)
        if one.hypothesis in names
    ]


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


def _decided(state: CampaignState) -> set[str]:
    return {*state.verdicts, *state.screened}


def _cost(state: CampaignState, candidate: str, num_candidates: int) -> Cost:
    """Until the screen has decided it: its own runs, and its share of the baseline's."""
    budget = state.spec.budget
    left = max(1.0, EXPECTED_BRACKETS * budget.max_brackets - bracket_counts(state, MAIN)[candidate])
    share = 1 / max(1, min(budget.block, num_candidates))
    return Cost(left * (1 + share), left * (_own_run_s(state, candidate) + share * median_run_s(state)))


def _own_run_s(state: CampaignState, candidate: str) -> float:
    """A candidate's own runs may take longer to start than others (an artifact, a compilation)."""
    runs = [r.outcome.duration_s for r in state.runs if r.intent.candidate == candidate and r.outcome]
    return sorted(runs)[len(runs) // 2] if runs else median_run_s(state)
