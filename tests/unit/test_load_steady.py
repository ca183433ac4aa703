"""The end of warm-up, tested as a statistical rule."""

from __future__ import annotations

import random

import pytest

from assay.load.steady import is_steady

TOKENS_PER_REQUEST = 32.0


def clumped(rng: random.Random, mean: float, clump: int) -> int:
    """A count of tokens that come in clumps which begin at random (a Poisson number of them)."""
    number, elapsed = 0, rng.expovariate(1)
    while elapsed < mean / clump:
        number, elapsed = number + 1, elapsed + rng.expovariate(1)
    return number * clump


@pytest.mark.parametrize("mean", [320, 1_600, 16_000])
def test_a_steady_server_is_held_back_in_about_one_look_of_twenty(mean: int):
    rng = random.Random(f"noise {mean}")
    looks = [is_steady([clumped(rng, mean, 16), clumped(rng, mean, 16)], TOKENS_PER_REQUEST) for _ in range(2_000)]
    refused = 2_000 - sum(looks)
    assert 50 <= refused <= 160  # 5%, with room for five standard deviations and the skew of small counts


def test_a_ramp_to_double_the_pace_is_seen_in_most_looks():
    rng = random.Random("ramp")
    looks = [is_steady([clumped(rng, 800, 16), clumped(rng, 1_600, 16)], TOKENS_PER_REQUEST) for _ in range(500)]
    assert sum(looks) < 50


def test_a_server_that_has_hardly_begun_is_not_steady():
    assert not is_steady([0, 60], TOKENS_PER_REQUEST)
    assert not is_steady([60, 0], TOKENS_PER_REQUEST)
    assert not is_steady([0, 0], TOKENS_PER_REQUEST)
    assert not is_steady([1, 56], TOKENS_PER_REQUEST)


def test_one_stretch_is_no_evidence():
    assert not is_steady([], TOKENS_PER_REQUEST)
    assert not is_steady([500], TOKENS_PER_REQUEST)


def test_only_the_two_last_stretches_count():
    assert is_steady([0, 3, 900, 880], TOKENS_PER_REQUEST)
    assert not is_steady([880, 900, 3_000], TOKENS_PER_REQUEST)


def test_the_rule_does_not_care_about_the_direction_of_a_change():
    assert is_steady([400, 300], 8.0) == is_steady([300, 400], 8.0)
    assert is_steady([900, 300], 8.0) == is_steady([300, 900], 8.0) is False
