"""A campaign rehearsed in memory: what the outlook says, and that it says it of this very plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from assay.records.rehearsal import Outlook
from assay.records.spec import Budget, Objective
from assay.rehearsal.outlook import Known, chance, rehearse
from assay.rehearsal.prior import FAILING, draw
from tests.unit.simulated_world import hypothesis, small_spec

QUIET = Known(run_sd=0.005, run_sd_source="given", run_s=60.0, launch_s=30.0, run_s_source="given")
PLAN = [
    hypothesis("good", 1, predicted=(0.10, 0.20)),
    hypothesis("bad", 2, predicted=(-0.30, -0.20)),
    hypothesis("gone", 3, status="blocked", blocked_reason="no such flag"),
]


def outlook(known: Known = QUIET, **changes: Any) -> Outlook:
    return rehearse(small_spec(**changes), PLAN, known, campaigns=12, seed=3, say=lambda _text: None)


@pytest.fixture(scope="module")
def quiet() -> Outlook:
    return outlook(objective=Objective(min_effect=0.02))


def shares(found: Outlook, name: str) -> dict[str, float]:
    return next(one.verdicts for one in found.candidates if one.id == name)


def test_a_hypothesis_that_is_predicted_to_help_is_mostly_adopted(quiet: Outlook) -> None:
    # It fails in 10% of the worlds; of 12 campaigns 5 or more do so with a probability of 0.4%.
    assert shares(quiet, "good")["adopted"] >= 7 / 12


def test_a_hypothesis_that_is_predicted_to_hurt_is_never_adopted(quiet: Outlook) -> None:
    assert shares(quiet, "bad").get("adopted", 0.0) == 0.0
    assert shares(quiet, "bad")["worse"] >= 7 / 12


def test_what_is_blocked_in_the_plan_stays_blocked(quiet: Outlook) -> None:
    assert shares(quiet, "gone") == {"blocked": 1.0}


def test_nothing_useless_is_adopted_and_power_grows_with_the_effect(quiet: Outlook) -> None:
    found = [point.adopted.share for point in quiet.power]

    assert quiet.false_adoption.share <= 0.2
    assert found == sorted(found)
    assert quiet.detectable is not None
    assert 0.005 <= quiet.detectable <= 0.06


def test_hours_are_runs_times_their_cost(quiet: Outlook) -> None:
    soaks_s = 2 * small_spec().budget.soak_s  # of "good", once it is promising, and of the baseline
    runs_s = quiet.runs_median * QUIET.run_s  # the median campaign adopts it, and none of its runs ends early
    assert quiet.hours_median == pytest.approx((runs_s + soaks_s) / 3600)
    assert quiet.hours_p90 >= quiet.hours_median


@pytest.mark.slow
def test_a_budget_too_small_is_answered_with_a_larger_one() -> None:
    noisy = Known(run_sd=0.01, run_sd_source="given", run_s=60.0, launch_s=30.0, run_s_source="given")
    budget = Budget(total_s=1800, calibration_brackets=2, min_brackets=2, max_brackets=2, composition_brackets=2,
                    confirmation_brackets=2)  # fmt: skip

    found = outlook(noisy, budget=budget, objective=Objective(min_effect=0.01))

    assert found.detectable is None or found.detectable > 0.02
    assert "mostly end undecided" in found.advice[0]
    assert "raise" in found.advice[0]


def test_a_budget_that_the_screen_may_not_use_up_is_counted_as_its_end_and_a_soak_that_never_fits_is_told() -> None:
    found = outlook(
        budget=Budget(total_s=1000, calibration_brackets=2, soak_s=7200), objective=Objective(min_effect=0.02)
    )

    assert found.ended_by_budget == 1.0
    assert "budget.soak_s" in found.advice[-1]


def test_the_same_seed_draws_the_same_worlds() -> None:
    one, again = (draw(PLAN, np.random.default_rng([3, 7])) for _ in range(2))

    assert one == again


def test_effects_are_drawn_so_that_the_predicted_range_holds_four_fifths_of_them() -> None:
    rng = np.random.default_rng(1)
    plan = [hypothesis("one", predicted=(0.05, 0.15))]

    drawn = [draw(plan, rng) for _ in range(4000)]
    inside = [np.log(1.05) <= one.effects["one"] <= np.log(1.15) for one in drawn]
    failing = [bool(one.failing) for one in drawn]

    # Binomial: four standard errors.
    assert np.mean(inside) == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / 4000))
    assert np.mean(failing) == pytest.approx(FAILING[1], abs=4 * np.sqrt(0.09 / 4000))


def test_a_share_comes_with_the_interval_that_its_number_leaves() -> None:
    found = chance([True] * 8 + [False] * 2)

    # Wilson's interval of 8 in 10, as in his paper's formula: 0.490 to 0.943.
    assert (found.low, found.high) == pytest.approx((0.490, 0.943), abs=0.001)
    assert chance([False] * 20).low == 0.0
