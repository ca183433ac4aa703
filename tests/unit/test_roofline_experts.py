"""Expected distinct experts and the load of the busiest rank, against simulated routing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.records.estimate import Routing
from assay.roofline import experts

ZIPF = Routing(law="zipf", exponent=0.8)
ROUNDS = 300


def simulated(num_experts: int, top_k: int, tokens: int, routing: Routing, seed: int) -> list[np.ndarray]:
    """Counts by expert of so many batches: k of E drawn in turn, by the Gumbel-top-k construction."""
    rng = np.random.default_rng(seed)
    weights = np.arange(1, num_experts + 1, dtype=float) ** -routing.exponent
    found = []
    for _ in range(ROUNDS):
        keys = np.log(weights) + rng.gumbel(size=(tokens, num_experts))
        chosen = np.argpartition(-keys, top_k, axis=1)[:, :top_k]
        found.append(np.bincount(chosen.ravel(), minlength=num_experts))
    return found


@pytest.mark.parametrize("routing", [Routing(), ZIPF, Routing(law="zipf", exponent=1.2)])
@pytest.mark.parametrize("tokens", [1, 7, 64])
def test_expected_distinct_experts_agree_with_simulated_routing(routing: Routing, tokens: int):
    hit = [np.count_nonzero(counts) for counts in simulated(64, 6, tokens, routing, seed=tokens)]
    error = np.std(hit) / np.sqrt(ROUNDS)
    # 1% is what the approximation for Zipf is allowed; four standard errors what the simulation is.
    assert experts.expected_distinct(64, 6, tokens, routing) == pytest.approx(np.mean(hit), rel=0.01, abs=4 * error)


def test_uniform_routing_is_exact():
    # 256 experts, top-8, 64 tokens: 256 * (1 - (248/256)**64).
    assert experts.expected_distinct(256, 8, 64) == pytest.approx(256 * (1 - (248 / 256) ** 64), rel=1e-9)


def test_one_token_touches_as_many_experts_as_it_chooses():
    assert experts.expected_distinct(256, 8, 1) == pytest.approx(8)
    assert experts.expected_distinct(128, 4, 1, ZIPF) == pytest.approx(4, rel=1e-6)


@given(tokens=st.integers(1, 4096), more=st.integers(1, 512), exponent=st.floats(0, 2))
def test_more_tokens_never_touch_fewer_experts(tokens: int, more: int, exponent: float):
    routing = Routing(law="zipf", exponent=exponent)
    few = experts.expected_distinct(128, 8, tokens, routing)
    assert few <= experts.expected_distinct(128, 8, tokens + more, routing) + 1e-9
    assert few <= 128 + 1e-9


@given(tokens=st.integers(1, 2048))
def test_skewed_routing_touches_no_more_experts_than_uniform(tokens: int):
    assert experts.expected_distinct(128, 8, tokens, ZIPF) <= experts.expected_distinct(128, 8, tokens) + 1e-6


@pytest.mark.parametrize("routing", [Routing(), ZIPF])
def test_the_busiest_rank_is_as_busy_as_in_simulation(routing: Routing):
    rng = np.random.default_rng(7)
    pairs, distinct = [], []
    for counts in simulated(64, 6, 48, routing, seed=11):
        ranks = rng.permutation(counts).reshape(8, 8)
        pairs.append(ranks.sum(axis=1).max())
        distinct.append(np.count_nonzero(ranks, axis=1).max())
    load = experts.load(64, 6, 48, ranks=8, routing=routing)
    # The largest of eight is taken as normal; counts are skewed and distinct experts bounded, hence 15%.
    assert load.busiest_rank_tokens == pytest.approx(np.mean(pairs), rel=0.15)
    assert load.busiest_rank_distinct == pytest.approx(np.mean(distinct), rel=0.15)
    assert load.mean_rank_tokens == pytest.approx(48 * 6 / 8)


def test_one_rank_has_everything():
    load = experts.load(64, 6, 10, ranks=1)
    assert load.busiest_rank_tokens == load.mean_rank_tokens == pytest.approx(60)
    assert load.busiest_rank_distinct == load.mean_rank_distinct == pytest.approx(load.distinct)


@given(tokens=st.integers(1, 2048), exponent=st.floats(0, 2))
def test_a_floor_never_counts_more_experts_than_the_routing_touches(tokens: int, exponent: float):
    routing = Routing(law="zipf", exponent=exponent)
    fewest = experts.fewest_distinct(128, 8, tokens, routing)
    assert fewest <= experts.expected_distinct(128, 8, tokens, routing) + 1e-9
    assert fewest <= experts.expected_distinct(128, 8, tokens) + 1e-9
