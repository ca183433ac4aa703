"""Scores of predictions: the formulas, and that telling what one believes is best."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from assay.records.machine import Machine
from assay.records.scoring import NOMINAL_COVERAGE, Z_NOMINAL, MachineClass, cpu_family
from assay.stats.scoring import (
    MIN_SD,
    brier_score,
    effect_score,
    expected_inside,
    interval_score,
    log_range,
    middle,
    spread,
)
from tests.unit.simulated_world import BUILD, MACHINE, MODEL


def test_the_quantile_is_that_of_the_nominal_coverage() -> None:
    assert pytest.approx(scipy.stats.norm.ppf((1 + NOMINAL_COVERAGE) / 2)) == Z_NOMINAL


@pytest.mark.parametrize(
    ("value", "score"),
    [(0.1, 0.3), (0.0, 0.3), (0.3, 0.3), (-0.05, 0.3 + 10 * 0.05), (0.5, 0.3 + 10 * 0.2)],
    ids=["inside", "lower end", "upper end", "below", "above"],
)
def test_an_interval_pays_for_its_width_and_ten_times_for_what_it_misses(value: float, score: float) -> None:
    assert interval_score(0.0, 0.3, value) == pytest.approx(score)


def test_the_interval_score_is_best_on_average_for_the_range_that_holds_its_coverage() -> None:
    truths = np.random.default_rng(1).normal(0.2, 0.1, 4000)
    widths = [0.4, 0.7, 1.0, 1.4, 2.0]
    means = [
        np.mean([interval_score(0.2 - Z_NOMINAL * 0.1 * k, 0.2 + Z_NOMINAL * 0.1 * k, x) for x in truths])
        for k in widths
    ]

    assert widths[int(np.argmin(means))] == 1.0


def test_the_brier_score_is_best_on_average_for_the_true_chance() -> None:
    def mean(forecast: float) -> float:
        return 0.7 * brier_score(forecast, happened=True) + 0.3 * brier_score(forecast, happened=False)

    forecasts = [0.1, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert min(forecasts, key=mean) == 0.7
    assert brier_score(0.5, happened=True) == brier_score(0.5, happened=False) == 0.25


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1, 0.5])
def test_how_often_an_estimate_is_inside_a_right_range_is_told_with_its_noise(noise: float) -> None:
    rng = np.random.default_rng(2)
    low, high = log_range((0.05, 0.4))
    estimates = (
        middle(low, high) + spread(low, high) * rng.standard_normal(40_000) + noise * rng.standard_normal(40_000)
    )
    seen = np.mean((low <= estimates) & (estimates <= high))

    assert expected_inside(low, high, noise) == pytest.approx(seen, abs=4 * 0.5 / math.sqrt(40_000))


def test_a_range_is_scored_in_log_ratio_against_estimate_and_interval() -> None:
    score = effect_score((0.1, 0.8), math.log(1.05), (math.log(0.95), math.log(1.16)), 0.05)

    assert (score.meets, score.inside) == (True, False)
    assert score.signed_error == pytest.approx(math.log(1.05) - (math.log(1.1) + math.log(1.8)) / 2)
    assert score.interval_score == pytest.approx(math.log(1.8 / 1.1) + 10 * math.log(1.1 / 1.05))


def test_a_range_and_an_interval_that_only_touch_meet() -> None:
    touching = effect_score((0.0, 0.1), -0.1, (-0.2, 0.0), 0.05)
    apart = effect_score((0.0, 0.1), -0.1, (-0.2, -0.001), 0.05)

    assert (touching.meets, apart.meets) == (True, False)


def test_a_range_without_width_and_one_that_loses_everything_can_be_scored() -> None:
    nothing, everything = log_range((0.0, 0.0)), log_range((-1.0, 0.0))

    assert spread(*nothing) == MIN_SD
    assert math.isfinite(everything[0])
    assert math.isfinite(interval_score(*everything, -0.5))


@pytest.mark.parametrize(
    ("cpu", "family"),
    [
        ("AMD EPYC", "AMD EPYC"),
        ("AMD EPYC 9654 96-Core Processor", "AMD EPYC"),
        ("Intel(R) Xeon(R) Platinum 8480+", "Intel Xeon Platinum"),
        ("Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz", "Intel Core"),
        ("AMD Ryzen 9 7950X 16-Core Processor", "AMD Ryzen 9"),
        ("Apple M2 Max", "Apple M2 Max"),
        ("Neoverse-N1", "Neoverse-N1"),
        ("", "unknown CPU"),
        ("8480", "8480"),
    ],
)
def test_a_cpu_family_is_its_name_without_model_numbers(cpu: str, family: str) -> None:
    assert cpu_family(cpu) == family


def test_a_machine_class_is_the_gpu_where_there_is_one_and_the_kind_of_model() -> None:
    gpus = [{"name": "NVIDIA H200"}] * 8
    machine = Machine.model_validate({**MACHINE.model_dump(), "gpus": gpus})
    experts = MODEL.model_copy(update={"num_experts": 256})

    assert MachineClass.of(machine, BUILD, experts).words == "NVIDIA H200, llamacpp, mixture-of-experts models"
    assert MachineClass.of(MACHINE, BUILD, MODEL).words == "simulated, llamacpp, dense models"
