"""The answer of `assay compare` as a statistical procedure: how often it errs, and how soon it sees what is there."""

from __future__ import annotations

import math
import random

import pytest

from assay.stats.brackets import Point
from assay.stats.comparison import Answered, Rules, judge

RULES = Rules(alpha=0.05, min_effect=0.05, num_sides=1, min_rounds=2, max_rounds=10)
SIMULATIONS = 600


def played(effect: float, noise: float, seed: int, rules: Rules = RULES, drift: float = 0.0) -> tuple[Answered, int]:
    """A B A B ... A until there is an answer; log values with the given noise. Also the number of rounds."""
    rng = random.Random(seed)
    points = [Point(candidate=None, log_value=rng.gauss(0, noise))]
    told = Answered(effect=None, answer="undecided")
    for number in range(1, rules.max_rounds + 1):
        for candidate, mean in (("B", effect), (None, 0.0)):
            points.append(Point(candidate=candidate, log_value=mean + drift * len(points) + rng.gauss(0, noise)))
        told = judge(points, "B", rules)
        if told.answer != "undecided":
            return told, number
    return told, rules.max_rounds


def share(answers: list[str], *wanted: str) -> float:
    return sum(answer in wanted for answer in answers) / len(answers)


def test_a_comparison_spends_no_more_than_its_error_rate():
    """Sharp: with a side's own brackets counted twice in the noise, 8% of these comparisons called a difference."""
    rules, count = Rules(alpha=0.05, min_effect=1e-9, num_sides=1, min_rounds=2, max_rounds=4), 2500
    answers = [played(0.0, 0.1, seed, rules)[0].answer for seed in range(count)]
    wrong = share(answers, "better", "worse")
    assert wrong <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / count)  # 6.3%
    assert wrong >= 0.05 - 6 * math.sqrt(0.05 * 0.95 / count)  # and it is spent, not hoarded


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_two_equal_servers_are_called_different_in_at_most_one_of_twenty_comparisons(noise: float):
    answers = [played(0.0, noise, seed)[0].answer for seed in range(SIMULATIONS)]
    # 5% is declared; three standard errors of the simulation above it are 2.7 points.
    assert share(answers, "better", "worse") <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / SIMULATIONS)


def test_a_steady_drift_makes_no_difference():
    answers = [played(0.0, 0.02, seed, drift=0.01)[0].answer for seed in range(SIMULATIONS)]
    assert share(answers, "better", "worse") <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / SIMULATIONS)


def test_half_the_speed_is_seen_within_three_rounds_and_never_as_a_gain():
    told = [played(math.log(0.6), 0.05, seed) for seed in range(SIMULATIONS)]
    assert share([answer.answer for answer, _ in told], "worse") > 0.99
    assert sorted(rounds for _, rounds in told)[int(0.9 * SIMULATIONS)] <= 3


def test_equal_servers_on_a_quiet_machine_are_the_same_within_the_declared_effect():
    answers = [played(0.0, 0.01, seed)[0].answer for seed in range(SIMULATIONS)]
    assert share(answers, "same") > 0.9


def test_the_interval_holds_the_truth_as_often_as_declared():
    hits = 0
    for seed in range(SIMULATIONS):
        told, _ = played(0.1, 0.04, seed)
        hits += told.effect is not None and told.effect.low <= 0.1 <= told.effect.high
    assert hits / SIMULATIONS >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / SIMULATIONS)


def test_a_sides_own_brackets_count_once_towards_its_noise():
    values = (0.0, 0.1, 0.01, 0.12, -0.01, 0.09, 0.0)
    points = [Point(candidate="B" if i % 2 else None, log_value=value) for i, value in enumerate(values)]
    told = judge(points, "B", RULES).effect
    assert told is not None
    # Three brackets about their mean leave 2 degrees of freedom; three differences of four runs of A are worth 2.
    assert told.degrees_of_freedom == pytest.approx(2 + 2)


def test_nothing_is_said_before_the_fewest_rounds():
    points = [
        Point(candidate=None, log_value=0.0),
        Point(candidate="B", log_value=9.0),
        Point(candidate=None, log_value=0.0),
    ]
    assert judge(points, "B", RULES).effect is None
