"""The answer checks: the paired one has Fisher's p-value, the floor is a share of what the baseline keeps."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.agreement import below_floor_p_value, more_disagreement_p_value


@given(data=st.data(), probes=st.integers(1, 200), natural_probes=st.integers(0, 400))
def test_the_p_value_is_that_of_fishers_exact_test(data: st.DataObject, probes: int, natural_probes: int) -> None:
    disagreed = data.draw(st.integers(0, probes))
    natural = data.draw(st.integers(0, natural_probes))

    p_value = more_disagreement_p_value(disagreed, probes, natural, natural_probes)

    tail = scipy.stats.hypergeom.sf(disagreed - 1, probes + natural_probes, disagreed + natural, probes)
    assert p_value == pytest.approx(tail, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("a", "b"), [(3, 0), (5, 2), (1, 4), (12, 30)])
def test_it_agrees_with_scipys_own_fisher_test(a: int, b: int) -> None:
    table = [[a, 32 - a], [b, 128 - b]]

    assert more_disagreement_p_value(a, 32, b, 128) == pytest.approx(
        scipy.stats.fisher_exact(table, alternative="greater").pvalue
    )


def test_no_disagreement_is_never_evidence_of_one() -> None:
    assert more_disagreement_p_value(0, 32, 0, 128) == 1.0


def test_without_any_natural_probe_nothing_can_be_said_against_a_candidate() -> None:
    assert more_disagreement_p_value(5, 32, 0, 0) == pytest.approx(1.0)


def test_a_candidate_as_unsteady_as_the_baseline_is_seldom_accused() -> None:
    """A conservative test at 5%: the share of false accusations stays below it, plus 3 binomial standard errors."""
    rng, n, alpha = np.random.default_rng(31), 2000, 0.05
    candidate, baseline = rng.binomial(32, 0.06, n), rng.binomial(128, 0.06, n)

    accused = np.mean(
        [more_disagreement_p_value(int(a), 32, int(b), 128) < alpha for a, b in zip(candidate, baseline, strict=True)]
    )

    assert accused <= alpha + 3 * (alpha * (1 - alpha) / n) ** 0.5


@pytest.mark.parametrize("own", [1.0, 0.97, 0.9])
def test_a_candidate_that_keeps_just_the_floor_of_what_the_baseline_keeps_is_seldom_accused(own: float) -> None:
    rng, n, alpha, floor = np.random.default_rng(7), 4000, 0.01, 0.9
    agreed, natural = rng.binomial(300, floor * own, n), rng.binomial(600, 1 - own, n)

    accused = np.mean(
        [below_floor_p_value(int(a), 300, floor, int(b), 600) < alpha for a, b in zip(agreed, natural, strict=True)]
    )

    assert accused <= alpha + 3 * (alpha * (1 - alpha) / n) ** 0.5


def test_a_candidate_far_below_the_floor_is_accused_though_the_baseline_is_unsteady() -> None:
    assert below_floor_p_value(225, 300, 0.9, 30, 600) < 0.001


def test_what_the_baseline_does_not_keep_itself_is_not_asked_of_a_candidate() -> None:
    assert below_floor_p_value(248, 294, 0.9) < 0.01
    assert below_floor_p_value(248, 294, 0.9, 59, 735) > 0.01


def test_without_any_natural_probe_the_floor_itself_is_asked() -> None:
    assert below_floor_p_value(40, 48, 0.9) == pytest.approx(scipy.stats.binom.cdf(40, 48, 0.9))
