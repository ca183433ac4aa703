"""The harness of the verdict benchmarks gives known answers in known worlds."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from benchmarks.verdicts import fixed
from benchmarks.verdicts.__main__ import publish, simulate
from benchmarks.verdicts.box import Box, shuffled
from benchmarks.verdicts.figures import binomial_interval, clustered_share, share
from benchmarks.verdicts.guards import guarded
from benchmarks.verdicts.kept import Kept
from benchmarks.verdicts.leaks import LAWS, alarms
from benchmarks.verdicts.looks import runs_of_screen, screen
from benchmarks.verdicts.ours import Cell, play
from benchmarks.verdicts.rivals import best_of_sweep, keep_and_confirm
from benchmarks.verdicts.studies import POWER_BOXES, power_cell, savings_cell
from benchmarks.verdicts.tables import TABLES

from assay.records.spec import Budget

GAIN = math.log1p(0.08)
CLEAR = Cell(study="test", sd=1e-4, min_effect=0.02, effects=(0.0, GAIN, -0.05))


def test_keep_and_confirm_crowns_noise_in_56_percent_of_null_campaigns_at_one_percent_noise() -> None:
    """The integral over the one measured baseline b: 1 - E[(1 - P(keep | b) P(confirm | b))^20]."""
    n = 1500
    adopted = fmean(bool(keep_and_confirm([0.0] * 20, Box(sd=0.01, seed=seed)).adopted) for seed in range(n))
    assert adopted == pytest.approx(0.56, abs=3 * math.sqrt(0.56 * 0.44 / n))


def test_a_sweep_of_20_null_flags_reports_the_mean_of_the_largest_of_20() -> None:
    """1.867 standard deviations."""
    claims = [best_of_sweep([0.0] * 20, Box(sd=0.01, seed=seed)).claimed for seed in range(2000)]
    assert fmean(claims) == pytest.approx(0.01867, abs=3 * 0.012 / math.sqrt(2000))


def test_without_noise_the_rivals_find_the_truth() -> None:
    still = Box(sd=0.0)
    decided = keep_and_confirm([0.004, 0.03, -0.02, 0.02], still)
    assert (decided.adopted, decided.claimed) == ([1, 3], pytest.approx(0.05))
    assert decided.runs == 1 + 4 + 2
    assert best_of_sweep([0.004, 0.03, -0.02], still).adopted == [1]
    assert best_of_sweep([-0.1, -0.2], still).claimed == 0.0


def test_without_noise_to_speak_of_a_campaign_adopts_what_gains_and_claims_what_it_gains() -> None:
    played = play(CLEAR, 7)
    assert played.adopted == [GAIN]
    assert played.confirmed
    assert played.claimed == pytest.approx(GAIN, abs=5e-4)
    assert dict(played.kinds) == {0.0: "no-effect", GAIN: "adopted", -0.05: "worse"}
    assert {told.stage for told in played.told} == {"screen", "composition", "confirmation"}
    assert all(abs(told.estimate - told.true) < 1e-3 for told in played.told)


def test_the_same_seed_plays_the_same_campaign_and_kept_ones_are_not_played_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    simulate([CLEAR], Kept(path), 2, math.inf)
    lines = path.read_text().splitlines()
    again = Kept(path)
    assert again.of(CLEAR) == {0: play(CLEAR, 0), 1: play(CLEAR, 1)}
    simulate([CLEAR], again, 2, math.inf)
    assert path.read_text().splitlines() == lines


def test_a_line_that_was_cut_off_by_a_kill_is_played_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    simulate([CLEAR], Kept(path), 2, math.inf)
    whole = path.read_text()
    path.write_text(whole[:-20])
    simulate([CLEAR], Kept(path), 2, math.inf)
    assert path.read_text() == whole


@pytest.mark.parametrize("law", ["normal", "t4"])
def test_both_noise_laws_have_the_standard_deviation_asked_for(law: str) -> None:
    logs = Box(sd=0.02, law=law, seed=3).logs(200_000)
    assert np.std(logs) == pytest.approx(0.02, rel=0.03)
    assert np.std(logs[1:] - logs[:-1]) == pytest.approx(0.02 * math.sqrt(2), rel=0.03)


def test_a_linear_drift_ends_at_two_percent_and_a_walk_scatters_by_two_percent_there() -> None:
    assert Box(sd=0.0, drift="linear", length=80).logs(81)[80] == pytest.approx(0.02)
    ends = [Box(sd=0.0, drift="walk", length=50, seed=seed).logs(50)[-1] for seed in range(800)]
    assert np.std(ends) == pytest.approx(0.02, rel=0.1)


def test_a_longer_look_at_a_box_does_not_change_its_beginning() -> None:
    box = Box(sd=0.01, law="t4", drift="walk", seed=5)
    assert list(box.logs(300)[:40]) == list(box.logs(40))
    assert sorted(shuffled((0.0, 0.1, 0.2), 4)) == [0.0, 0.1, 0.2]


def test_the_fixed_design_has_the_power_asked_for_and_no_more_pairs_than_it_takes() -> None:
    effects = (0.03, 0.0, 0.0, 0.0)
    design = fixed.cheapest(effects, sd=0.01, min_effect=0.01, power=0.9)
    assert design is not None
    assert design.power >= 0.9
    strong = fixed.cheapest((1.0, 0.0, 0.0, 0.0), sd=0.01, min_effect=0.01, power=0.9)
    assert strong is not None
    assert (strong.screen_pairs, strong.again_pairs) == (2, 2)
    assert design.screen_pairs > 2
    assert fixed.cheapest((0.001, 0.0), sd=0.05, min_effect=0.01, power=0.9) is None


def test_the_cost_of_the_fixed_design_is_what_it_measures() -> None:
    trials, campaign = fixed.mean_runs((1.0, 0.0), sd=0.001, min_effect=0.05, pairs=(3, 4))
    assert trials == 2 * 2 * 3 + 2 * 4
    assert campaign == 9 + trials + 12


def test_the_screen_that_is_looked_at_every_time_gives_every_candidate_its_brackets() -> None:
    budget = Budget()
    order = runs_of_screen(5, budget)
    assert all(order.count(f"c{i}") == budget.max_brackets for i in range(5))
    assert order[0] is order[-1] is None


def test_intervals_that_are_stopped_at_the_worst_moment_still_cover() -> None:
    """Ten screens are a check of the harness; the document has the figures."""
    missed = [screen(4, Box(sd=0.01, seed=seed)) for seed in range(10)]
    assert sum(one.at_some_look for one in missed) <= 0.1 * 40 + 3 * math.sqrt(0.09 * 40)
    assert all(one.at_last_look <= one.at_some_look for one in missed)


@pytest.mark.parametrize("rule", ["estimate", "interval"])
def test_without_noise_to_speak_of_both_guards_let_pass_what_may_be_lost_and_nothing_else(rule: str) -> None:
    ended = {loss: guarded(rule, math.log1p(-loss), 1e-5, 0.05, seed=3) for loss in (0.0, 0.04, 0.06)}
    assert {loss: one.ended for loss, one in ended.items()} == {0.0: "adopted", 0.04: "adopted", 0.06: "worse"}
    assert ended[0.0].brackets == Budget().min_brackets


def test_a_cell_that_changes_nothing_is_kept_under_the_name_it_had() -> None:
    assert savings_cell(None, None, 1) == power_cell(*POWER_BOXES[0], 1)
    assert savings_cell(3, 0.0, 1).key == f"{power_cell(*POWER_BOXES[0], 1).key} block=3 give_up_below=0"
    assert savings_cell(3, 0.0, 1).spec().statistics.give_up_below == 0.0


def test_what_leaks_is_called_growing_and_what_jumps_is_not() -> None:
    assert alarms(LAWS["walks, and leaks 2 MiB a sample"], 60, 20) == 20
    assert alarms(LAWS["makes up to three jumps of 64 MiB"], 60, 20) == 0


def test_shares_carry_the_exact_binomial_interval() -> None:
    assert binomial_interval(0, 100)[1] == pytest.approx(0.0362, abs=1e-4)
    assert binomial_interval(5, 100) == pytest.approx((0.0164, 0.1128), abs=1e-4)
    assert share(0, 0) == "-"
    assert share(1, 2) == "50.0 [1.3, 98.7]"
    assert clustered_share([2, 2], [2, 2]) == "100.0 ± 0.0"


def test_a_table_takes_its_place_in_the_document(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("before\n<!-- table: nulls -->\nold\n<!-- end -->\nafter\n")
    publish("nulls", "| new |", document)
    assert document.read_text() == "before\n<!-- table: nulls -->\n| new |\n<!-- end -->\nafter\n"
    with pytest.raises(SystemExit, match="no place for the table power"):
        publish("power", "| new |", document)


def test_the_document_has_a_place_for_every_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert all(f"<!-- table: {name} -->\n" in page for name in TABLES)
