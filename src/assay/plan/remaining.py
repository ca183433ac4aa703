"""How much is left: `assay status` asks for it, so it loads nothing that only the next step needs."""

from __future__ import annotations

from assay.plan.composing import promising
from assay.plan.cost import EXPECTED_BRACKETS, LEAST_CONFIRMED
from assay.plan.reading import Reading
from assay.plan.runs import median_run_s
from assay.plan.screening import open_candidates
from assay.plan.series import A_A, CONFIRMATION, MAIN, bracket_counts, composition
from assay.plan.soaking import also_needed_s, due_s
from assay.records.state import CampaignState

ABLATED_SHARE = 0.5
"""Of the members of a stack, how many are expected to be asked about: what waits may not be adopted."""


def remaining_s(state: CampaignState) -> float:
    """Expected measuring time until the campaign ends.

    Never more than the budget has left, but for the runs that are made whatever it has: calibration and confirmation.
    """
    if state.headline is not None:
        return 0.0
    state = Reading.of(state)
    budget, run_s = state.spec.budget, median_run_s(state)
    main = bracket_counts(state, MAIN)
    due = 0.0
    if state.calibration is None:
        due += 2 * max(0, budget.calibration_brackets - main[A_A]) + 1
    runs = due
    expected = max(1.0, EXPECTED_BRACKETS * budget.max_brackets)
    candidates = open_candidates(state)
    per_bracket = 1 + 1 / max(1, min(budget.block, len(candidates)))
    runs += sum(per_bracket * max(0.5, expected - main[h.id]) for h in candidates)
    waiting = [h for h in promising(state) if h.id not in state.verdicts and h.status == "planned"]
    runs += sum(max(1.0, 5 - 2 * bracket_counts(state, composition(h.id)).total()) for h in waiting)
    runs += 5 * max(0, len(state.stack) + len(waiting) - 1 - len(state.ablations)) * ABLATED_SHARE
    confirmed = bracket_counts(state, CONFIRMATION).total()
    if state.stack or candidates or waiting:
        runs += 2 * max(0, budget.confirmation_brackets - confirmed) + 1
    if state.stack and confirmed < LEAST_CONFIRMED:
        due += 2 * (LEAST_CONFIRMED - confirmed) + 1
    soaks = [due_s(state, [*state.stack, h.id], state.stack) for h in waiting]
    soaks += [due_s(state, state.stack, [])] if state.stack else []
    soaks_s = sum(soaks) + (also_needed_s(state, state.stack) if any(soaks) else 0.0)
    return max(due * run_s, min(runs * run_s + soaks_s, state.left_s))
