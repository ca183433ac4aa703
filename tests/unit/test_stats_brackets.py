"""Brackets: drift cancels, the mean's variance is what it says, and the noise estimate is unbiased."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.stats.brackets import Brackets, Noise, Point, Span, brackets, mean_effect, pool, residual_noise, spans

RUN_SD = 0.05


def series(*names: str | None, values: list[float] | None = None) -> list[Point]:
    return [Point(candidate=name, log_value=0.0 if values is None else values[i]) for i, name in enumerate(names)]


def simulated(names: list[str | None], rng: np.random.Generator, effects: dict[str, float]) -> Brackets:
    values = RUN_SD * rng.standard_normal(len(names)) + [effects.get(name or "", 0.0) for name in names]
    return brackets(series(*names, values=list(map(float, values))))


def rotating(candidates: list[str], rounds: int) -> list[str | None]:
    """R a R b R c R, again and again."""
    names: list[str | None] = [None]
    for _ in range(rounds):
        for candidate in candidates:
            names += [candidate, None]
    return names


def test_a_bracket_needs_a_reference_run_on_both_sides() -> None:
    found = brackets(series("a", None, "a", "b", None, "c", None, "d"))

    assert found.candidates == ["a", "b", "c"]


@pytest.mark.parametrize("names", [(), (None,), (None, "a"), (None, None, None)])
def test_too_few_runs_make_no_bracket(names: tuple[str | None, ...]) -> None:
    assert len(brackets(series(*names))) == 0


def test_linear_drift_cancels_exactly() -> None:
    names = rotating(["a", "b"], 3)
    drifting = [0.3 * i + {"a": 0.2, "b": -0.1}.get(name or "", 0.0) for i, name in enumerate(names)]

    found = brackets(series(*names, values=drifting))

    assert mean_effect(found.of("a"))[0] == pytest.approx(0.2)
    assert mean_effect(found.of("b"))[0] == pytest.approx(-0.1)


def test_brackets_that_are_kept_keep_their_effects_and_their_reference_runs() -> None:
    found = brackets(series(None, "a", None, "b", None, values=[0.0, 1.0, 0.0, 5.0, 2.0])).keep([1])

    assert found.candidates == ["b"]
    assert found.effects == pytest.approx([5.0 - (0.0 + 2.0) / 2])
    assert (found.before.tolist(), found.after.tolist()) == ([2], [4])


def contrast_of(names: list[str | None]) -> np.ndarray:
    """The effects as weighted sums of the runs, shape (num_brackets, num_runs): a slow reference."""
    found = spans(series(*names))
    contrast = np.zeros((len(found), len(names)))
    for row, one in enumerate(found):
        share = (one.at - one.before) / (one.after - one.before)
        contrast[row, [one.at, one.before, one.after]] = 1.0, share - 1, -share
    return contrast


DESIGNS: list[list[str | None]] = [
    [None, "a", None],
    [None, "a", None, "a", None, "a", None],
    [None, "a", "b", None, "c", "a", "b", None, "b", None, None, "c", "a", None],
    [None, "a", "b", "c", "d", None, "d", "c", "b", "a", None, "a", "b", "c", "d", None],
]


@pytest.mark.parametrize("names", DESIGNS)
@pytest.mark.parametrize("left_out", [None, "b"])
def test_the_band_of_the_covariance_is_that_of_the_whole_matrix(names: list[str | None], left_out: str | None) -> None:
    values = list(np.random.default_rng(3).standard_normal(len(names)))
    every = brackets(series(*names, values=values))
    rows = [row for row, name in enumerate(every.candidates) if name != left_out]
    contrast = contrast_of(names)[rows]
    columns = np.random.default_rng(4).standard_normal((len(rows), 3))

    found = every.without(left_out)

    assert found.effects == pytest.approx(contrast @ values)
    assert found.whitened(columns) == pytest.approx(np.linalg.solve(contrast @ contrast.T, columns))
    assert found.whitened(columns[:, 0]) == pytest.approx(np.linalg.solve(contrast @ contrast.T, columns[:, 0]))


def test_the_residual_noise_is_that_of_generalized_least_squares() -> None:
    names = DESIGNS[2]
    found = brackets(series(*names, values=list(np.random.default_rng(5).standard_normal(len(names)))))
    inverse = np.linalg.inv(contrast_of(names) @ contrast_of(names).T)
    design = np.array([[float(name == column) for column in "bc"] for name in found.candidates])
    beta = np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ found.effects)
    residual = found.effects - design @ beta

    noise = residual_noise(found, known_zero=["a"])

    assert noise is not None
    assert noise.degrees_of_freedom == len(found) - 2
    assert noise.variance == pytest.approx(residual @ inverse @ residual / noise.degrees_of_freedom)


@pytest.mark.parametrize("candidates", [["a"], ["a", "b", "c"]])
def test_the_variance_of_a_mean_effect_is_the_one_that_it_states(candidates: list[str]) -> None:
    """The sample variance of n normal values has relative standard error sqrt(2 / (n - 1)); 4 of them are allowed."""
    rng, n = np.random.default_rng(11), 3000
    names = rotating(candidates, 4)
    estimates, stated = [], 0.0
    for _ in range(n):
        estimate, stated = mean_effect(simulated(names, rng, {"a": 0.3}).of("a"))
        estimates.append(estimate)

    ratio = float(np.var(estimates, ddof=1)) / (stated * RUN_SD**2)

    assert ratio == pytest.approx(1.0, abs=4 * math.sqrt(2 / (n - 1)))
    assert np.mean(estimates) == pytest.approx(0.3, abs=4 * RUN_SD * math.sqrt(stated / n))


def test_alternating_brackets_share_reference_runs_and_are_worth_less_than_separate_ones() -> None:
    alternating = brackets(series(*rotating(["a"], 4)))
    spread = brackets(series(*rotating(["a", "b", "c"], 4))).of("a")

    assert mean_effect(spread)[1] == pytest.approx(1.5 / 4)
    assert mean_effect(spread)[1] < mean_effect(alternating)[1] < (2 * 4 - 0.5) / 4**2 + 1e-12


@pytest.mark.parametrize(
    ("candidates", "known_zero", "degrees"), [(["A/A"], ["A/A"], 4), (["a"], [], 3), (["A/A", "a", "b"], ["A/A"], 10)]
)
def test_residual_noise_is_unbiased(candidates: list[str], known_zero: list[str], degrees: int) -> None:
    """A variance with d degrees of freedom has relative standard deviation sqrt(2/d); 4 standard errors are allowed."""
    rng, n = np.random.default_rng(12), 2000
    names = rotating(candidates, 4)

    noises = [residual_noise(simulated(names, rng, {"a": 0.5, "b": -1.0}), known_zero=known_zero) for _ in range(n)]

    assert {noise.degrees_of_freedom for noise in noises if noise} == {degrees}
    mean = np.mean([noise.variance for noise in noises if noise])
    assert mean == pytest.approx(RUN_SD**2, rel=4 * math.sqrt(2 / degrees / n))


def test_one_bracket_of_an_unknown_candidate_says_nothing_about_noise() -> None:
    assert residual_noise(brackets(series(None, "a", None))) is None
    assert residual_noise(brackets([])) is None


def test_pooling_weighs_by_degrees_of_freedom_and_skips_what_is_unknown() -> None:
    pooled = pool(Noise(variance=1.0, degrees_of_freedom=3), None, Noise(variance=5.0, degrees_of_freedom=1))

    assert pooled == Noise(variance=2.0, degrees_of_freedom=4)
    assert pool(None) is None


def test_the_noise_of_one_bracket_is_what_single_brackets_scatter_by() -> None:
    rng, n = np.random.default_rng(13), 4000

    effects = [float(simulated([None, "a", None], rng, {}).effects[0]) for _ in range(n)]

    stated = Noise(variance=RUN_SD**2, degrees_of_freedom=1).bracket_sd
    assert np.std(effects) == pytest.approx(stated, rel=4 * math.sqrt(1 / (2 * n)))


def test_brackets_are_counted_as_they_are_made() -> None:
    order = ["r", "a", "r", "b", "r", "r", "a", "b", "r", "a"]
    points = [Point(candidate=None if name == "r" else name, log_value=0.0) for name in order]

    assert spans(points) == [Span(1, 0, 2), Span(3, 2, 4), Span(6, 5, 8), Span(7, 5, 8)]
    assert [points[span.at].candidate for span in spans(points)] == brackets(points).candidates


def test_a_straight_drift_cancels_wherever_in_its_block_a_candidate_stands() -> None:
    names = [None, "a", "b", "c", None, "b", "a", None]
    truth = {"a": 0.1, "b": -0.2, "c": 0.0}
    points = [Point(candidate=n, log_value=truth.get(n or "", 0.0) + 0.03 * i) for i, n in enumerate(names)]

    found = brackets(points)
    assert found.effects == pytest.approx([truth[name] for name in found.candidates])


def test_candidates_of_one_block_are_correlated_by_the_reference_runs_they_share() -> None:
    found = brackets([Point(candidate=n, log_value=0.0) for n in (None, "a", "b", None)])
    band = found.covariance_band()
    # a: 1 + (2/3)^2 + (1/3)^2; a with b: 2 (2/3) (1/3).
    assert band[0, 0] == pytest.approx(1 + 5 / 9)
    assert band[1, 0] == pytest.approx(4 / 9)
