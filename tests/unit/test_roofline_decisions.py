"""What estimates are used for: ceilings of mechanisms, ranking of layouts, calibration, utilization."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.records.estimate import Layout, MechanismCeiling, OperatingPoint, StepEstimate
from assay.records.model_shape import ModelShape
from assay.roofline import calibration, fitting, mechanisms, memory, search, step, utilization
from assay.roofline.calibration import Calibration, Components
from assay.roofline.fitting import Measured
from tests.unit.shapes import FP8, box_of, curve, glm5, gpt_oss_like, hybrid_like, llama_8b

FABRIC = box_of(8, link="NVLink 4", l2_bytes=50e6, fp8_flop_per_s=200e12)
WIRE = box_of(8, [curve()], l2_bytes=50e6)
TP8 = Layout(tp=8)


def decode(shape: ModelShape, box=WIRE, layout: Layout = TP8, sequences: int = 64, context: int = 200) -> StepEstimate:
    return step.estimate(
        shape, box, layout, OperatingPoint(phase="decode", sequences=sequences, context_tokens=context)
    )


def ceilings(shape: ModelShape, box=WIRE, layout: Layout = TP8, **point: int) -> dict[str, MechanismCeiling]:
    found = mechanisms.ceilings(decode(shape, box, layout, **point), shape, box, layout)
    return {one.id: one for one in found}


@settings(max_examples=25, deadline=None)
@given(
    shape=st.sampled_from([llama_8b(), llama_8b(FP8), glm5(), gpt_oss_like(), hybrid_like()]),
    box=st.sampled_from([WIRE, FABRIC]),
    layout=st.sampled_from([Layout(tp=8), Layout(tp=8, ep=8), Layout(tp=2, pp=4), Layout(tp=2, dp=4, ep=8)]),
    phase=st.sampled_from(["prefill", "decode"]),
    sequences=st.integers(1, 600),
)
def test_every_mechanism_says_something_sound(shape, box, layout, phase, sequences):
    point = OperatingPoint(
        phase=phase, sequences=sequences, context_tokens=500, new_tokens=1 if phase == "decode" else 64
    )
    baseline = step.estimate(shape, box, layout, point)
    found = mechanisms.ceilings(baseline, shape, box, layout)
    assert len({one.id for one in found}) == len(mechanisms.MECHANISMS)
    for one in found:
        assert one.gain.low <= one.gain.mid <= one.gain.high
        assert 0 <= one.touched_share <= 1
        assert one.reason
        if not one.applies:
            assert one.gain.high == 0


def test_those_that_act_come_first_by_their_ceiling():
    found = mechanisms.ceilings(decode(glm5()), glm5(), WIRE, Layout(tp=8))
    keys = [(not one.applies, -one.gain.high) for one in found]
    assert keys == sorted(keys)


def test_amdahl_bounds_what_a_kernel_can_bring():
    baseline = decode(llama_8b())
    found = {one.id: one for one in mechanisms.ceilings(baseline, llama_8b(), WIRE, Layout(tp=8))}
    attention = found["attention-backend"]
    assert attention.gain.high <= 1 / (1 - attention.touched_share) - 1 + 1e-9


def test_an_algorithm_with_a_limit_is_inert_above_it_and_acts_below():
    fast = curve(algorithm="mscclpp", latency_s=5e-6, bus_bytes_per_s=60e9, max_message_bytes=2**20)
    box = box_of(8, [curve(), fast])
    large = ceilings(llama_8b(), box, sequences=512)["mscclpp"]
    assert not large.applies
    assert "128 tokens" in large.reason  # 1 MiB / (4096 * 2)
    small = ceilings(llama_8b(), box, sequences=16)["mscclpp"]
    assert small.applies
    assert small.gain.mid > 0


def test_single_batch_overlap_needs_an_exchange_to_hide():
    assert not ceilings(glm5(), WIRE)["single-batch-overlap"].applies
    assert not ceilings(glm5(), FABRIC)["single-batch-overlap"].applies
    assert ceilings(glm5(), FABRIC, Layout(tp=8, ep=8))["single-batch-overlap"].applies
    assert "no experts" in ceilings(llama_8b(), FABRIC)["single-batch-overlap"].reason


def test_two_batch_overlap_needs_an_exchange_and_two_sequences():
    assert not ceilings(glm5(), WIRE, sequences=512)["two-batch-overlap"].applies
    assert not ceilings(glm5(), FABRIC, Layout(tp=8, ep=8), sequences=1)["two-batch-overlap"].applies


def test_expert_parallelism_in_use_or_without_experts_is_no_mechanism():
    assert "in use" in ceilings(glm5(), WIRE, Layout(tp=8, ep=8))["expert-parallel"].reason
    assert "no experts" in ceilings(llama_8b())["expert-parallel"].reason


def test_formats_help_a_memory_bound_step_and_not_what_is_small_already():
    found = ceilings(llama_8b(), box_of(fp8_flop_per_s=200e12), Layout(), sequences=1)
    # At one sequence nearly everything is reading weights: half of the bytes, about twice the speed at best.
    assert 0.5 < found["weights-fp8"].gain.mid < 1
    assert not ceilings(llama_8b(FP8), box_of(), Layout())["weights-fp8"].applies


def test_a_larger_batch_is_refused_where_the_cache_is_full():
    assert not ceilings(glm5(), WIRE, sequences=600, context=2000)["max-concurrency"].applies
    assert ceilings(llama_8b(), WIRE, sequences=8)["max-concurrency"].applies


@settings(max_examples=30, deadline=None)
@given(
    shape=st.sampled_from([llama_8b(), llama_8b(FP8), glm5(), gpt_oss_like()]),
    box=st.sampled_from([WIRE, FABRIC]),
    sequences=st.integers(1, 400),
    context=st.integers(10, 2000),
)
def test_no_gain_passes_what_its_tokens_allow(shape, box, sequences: int, context: int):
    baseline = decode(shape, box, sequences=sequences, context=context)
    found = {one.id: one for one in mechanisms.ceilings(baseline, shape, box, TP8)}
    assert found["spec-decoding"].gain.high <= 3 + 1e-9, "four tokens a step are three more"
    assert found["spec-decoding"].gain.low > -1
    larger = found["max-concurrency"]
    if larger.applies:
        most = memory.budget(shape, box, TP8).sequences(context + 1)
        assert larger.gain.high <= most / sequences - 1 + 1e-9


def test_a_batch_that_grows_by_four_percent_gains_at_most_four_percent():
    budget = memory.budget(glm5(), WIRE, TP8, memory_fraction=0.92)
    running = round(budget.sequences(1280) / 1.04)
    found = {
        one.id: one
        for one in mechanisms.ceilings(
            decode(glm5(), sequences=running, context=1152),
            glm5(),
            WIRE,
            TP8,
            memory_fraction=0.92,
            reserved_tokens=1280,
        )
    }["max-concurrency"]
    assert found.applies
    assert 0 < found.gain.low <= found.gain.mid <= found.gain.high <= 0.045


def test_what_the_cache_holds_follows_the_memory_fraction():
    baseline = decode(glm5(), sequences=16, context=2000)
    told = [
        next(
            one.reason
            for one in mechanisms.ceilings(baseline, glm5(), WIRE, TP8, memory_fraction=fraction)
            if one.id == "kv-fp8"
        )
        for fraction in (0.85, 0.92)
    ]
    for fraction, reason in zip((0.85, 0.92), told, strict=True):
        assert f"{memory.budget(glm5(), WIRE, TP8, memory_fraction=fraction).cache_tokens:,} " in reason


def test_a_layout_without_room_is_refused_with_what_is_missing():
    small = box_of(8, [curve()], memory_bytes=72e9)
    reason = ceilings(glm5(), small, sequences=8)["dp-attention"].reason
    assert re.fullmatch(r"dp8 ep8 does not fit: [\d.]+ GB are missing on each device", reason)


def test_pinning_is_measured_against_what_passes_between_two_uses():
    pinned = ceilings(llama_8b(), box_of(l2_bytes=50e6), Layout(), sequences=1)["l2-persistence"]
    # 37.5 MB of about 15 GB.
    assert pinned.gain.high == pytest.approx(37.5e6 / 15e9, rel=0.1)


def test_ranking_keeps_the_service_level_and_puts_the_most_tokens_first():
    loose = search.rank(llama_8b(), box_of(8), input_tokens=1000, output_tokens=200).candidates
    tight = search.rank(
        llama_8b(), box_of(8), input_tokens=1000, output_tokens=200, ttft_s=0.5, tpot_s=0.030
    ).candidates
    assert [one.output_tokens_per_s.mid for one in tight] == sorted(
        (one.output_tokens_per_s.mid for one in tight), reverse=True
    )
    assert all(one.tpot_s.mid <= 0.030 and one.ttft_s.mid <= 0.5 for one in tight)
    assert loose[0].output_tokens_per_s.mid >= tight[0].output_tokens_per_s.mid
    assert all(one.devices <= 8 for one in loose)


def test_without_a_service_level_as_many_requests_run_as_the_cache_holds():
    for one in search.rank(llama_8b(), box_of(2), input_tokens=1000, output_tokens=200, limit=99).candidates:
        room = min(one.memory.sequences(1200), search.MAX_CONCURRENCY)
        assert one.concurrency == one.replicas * room


def test_a_service_level_is_used_up_to_the_next_power_of_two():
    load = {"input_tokens": 1000, "output_tokens": 200}
    found = search.rank(llama_8b(), box_of(), **load, tpot_s=0.060, formats=[]).candidates[0]
    alone = step.estimate(
        llama_8b(),
        box_of(),
        Layout(),
        OperatingPoint(phase="decode", sequences=2 * found.concurrency, context_tokens=1100),
    )
    prompt = step.estimate(
        llama_8b(), box_of(), Layout(), OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=1000)
    )
    assert found.tpot_s.mid <= 0.060 < alone.time_s.mid + 2 * found.concurrency / 200 * prompt.time_s.mid


def test_ranking_finds_that_a_small_model_wants_replicas_over_a_slow_link():
    best = search.rank(llama_8b(), box_of(8), input_tokens=500, output_tokens=500, formats=[]).candidates[0]
    assert best.replicas > 1
    assert best.layout.tp < 8


def test_ranking_a_model_that_fits_nowhere_returns_nothing():
    assert search.rank(glm5(), box_of(2), input_tokens=100, output_tokens=100).candidates == []


def test_ranking_refuses_what_it_cannot_use():
    with pytest.raises(UsageError, match="no known format"):
        search.rank(llama_8b(), box_of(), input_tokens=10, output_tokens=10, formats=["fp7"])
    with pytest.raises(UsageError, match="0 tokens"):
        search.rank(llama_8b(), box_of(), input_tokens=0, output_tokens=10)


def test_ranking_considers_formats_that_the_device_computes_in():
    with_fp8 = search.rank(
        llama_8b(), box_of(2, fp8_flop_per_s=200e12), input_tokens=100, output_tokens=100, limit=99
    ).candidates
    assert {one.storage for one in with_fp8} == {"as stored", "fp8-block128", "int4-g128"}


def test_where_nothing_keeps_the_bounds_the_nearest_say_by_how_much_they_miss():
    found = search.rank(llama_8b(), box_of(8), input_tokens=1000, output_tokens=200, tpot_s=0.0001)
    assert found.candidates == []
    assert [one.over for one in found.misses] == sorted(one.over for one in found.misses)
    nearest = found.misses[0]
    assert nearest.over == pytest.approx(nearest.tpot_s.mid / 0.0001)
    assert nearest.over > 1


def test_a_search_counts_what_stages_wait_for():
    one = search.rank(llama_8b(), box_of(4), input_tokens=8000, output_tokens=200, formats=[], limit=99).candidates
    by_layout = {each.layout: each for each in one}
    staged, whole = by_layout[Layout(pp=4)], by_layout[Layout()]
    # A prompt that comes alone takes as long through four stages as on one device.
    assert staged.ttft_s.mid > 0.9 * whole.ttft_s.mid
    assert whole.replicas == 4


TRUTH = Calibration(memory=1.4, compute=1.2, communication=0.8, overhead=2.0)


def made_up(count: int, noise: float, seed: int) -> list[Measured]:
    """Points whose times follow TRUTH, of steps from one sequence to many."""
    rng = np.random.default_rng(seed)
    found = []
    for sequences in np.geomspace(1, 2048, count).round().astype(int):
        expected = calibration.components(decode(glm5(), sequences=int(sequences)))
        found.append(
            Measured(expected=expected, time_s=expected.calibrated_s(TRUTH) * float(np.exp(rng.normal(0, noise))))
        )
    return found


def test_components_of_a_step_add_up_to_its_time():
    estimate = decode(glm5())
    assert calibration.components(estimate).time_s == pytest.approx(estimate.time_s.mid)


def test_a_calibration_predicts_the_points_it_was_fitted_on():
    points = made_up(6, noise=0.0, seed=1)
    fitted = fitting.fit(points, source="test")
    for point in points:
        assert point.expected.calibrated_s(fitted) == pytest.approx(point.time_s, rel=0.03)
    assert fitted.points == 6


def test_points_left_out_are_predicted_better_than_without_calibration():
    points = made_up(8, noise=0.03, seed=2)
    after = np.median([abs(one.relative_error) for one in fitting.leave_one_out(points)])
    before = np.median([abs(point.expected.time_s / point.time_s - 1) for point in points])
    assert after < 0.06
    assert after < before / 2


def test_two_points_leave_alone_what_they_cannot_see():
    points = [Measured(expected=Components(memory=one), time_s=1.5 * one) for one in (0.01, 0.02)]
    fitted = fitting.fit(points)
    assert fitted.memory == pytest.approx(1.5, rel=0.02)
    assert (fitted.compute, fitted.communication) == pytest.approx((1, 1))


def test_a_noisy_measurement_is_believed_half_when_it_is_as_uncertain_as_the_prior():
    point = Measured(expected=Components(memory=0.01), time_s=0.0225)
    # Prior and noise of 0.5 each: the log factor is half of log 2.25.
    assert fitting.fit([point], noise=0.5).memory == pytest.approx(1.5, rel=1e-6)


def test_a_calibration_scales_expected_times_and_never_floors():
    plain = decode(glm5())
    corrected = calibration.apply(plain, Calibration(memory=0.01, communication=2.0, overhead=1.0))
    assert corrected.floor_s == plain.floor_s
    assert all(op.time_s.mid >= op.floor_s for op in corrected.ops)
    for before in plain.ops:
        after = next(op for op in corrected.ops if op.name == before.name)
        if before.collective:
            assert after.time_s.mid == pytest.approx(2 * before.time_s.mid)


def test_a_calibration_narrows_the_range():
    fitted = fitting.fit(made_up(6, noise=0.02, seed=3))
    plain, corrected = decode(glm5()), calibration.apply(decode(glm5()), fitted)
    assert corrected.time_s.high / corrected.time_s.low < plain.time_s.high / plain.time_s.low


def test_a_calibration_without_points_is_refused():
    with pytest.raises(UsageError, match="at least one"):
        fitting.fit([])


def test_one_point_leaves_nothing_to_predict_it_from():
    assert fitting.leave_one_out(made_up(1, 0.0, 4)) == []


def test_bandwidth_utilization_by_hand():
    # 10 GB a step in 20 ms: 500 GB/s of 1 TB/s.
    estimate = decode(llama_8b(), box_of(), Layout(), sequences=1)
    moved = sum(op.read_bytes for op in estimate.ops)
    tokens_per_s = 1 / (moved / 0.5e12)
    assert utilization.mbu(estimate, box_of(), tokens_per_s) == pytest.approx(0.5)


def test_flops_utilization_by_hand():
    # 7.5 B parameters without the embedding: 15 Gflop a token; 1000 tokens/s of 100 TFLOP/s on one device: 15%.
    matmuls = llama_8b().parameters - 128256 * 4096
    assert utilization.mfu(llama_8b(), box_of(), 1000) == pytest.approx(1000 * 2 * matmuls / 100e12)
    assert utilization.mfu(llama_8b(), box_of(8), 1000) == pytest.approx(1000 * 2 * matmuls / 100e12 / 8)


@pytest.mark.parametrize("shape", [llama_8b(), glm5(), glm5(sparse=False), gpt_oss_like(), hybrid_like()])
@pytest.mark.parametrize("sequences", [1, 8, 64, 512])
def test_a_floor_uses_no_more_than_all_of_the_bandwidth(shape: ModelShape, sequences: int):
    box = box_of(8, l2_bytes=50e6)
    estimate = decode(shape, box, sequences=sequences)
    assert 0 < utilization.mbu_at_floor(estimate, box) <= 1
    assert utilization.mbu(estimate, box, estimate.tokens_per_s.high) <= 1


def test_a_floor_of_reading_alone_uses_all_of_it():
    estimate = decode(llama_8b(), box_of(), Layout(), sequences=1)
    assert utilization.mbu_at_floor(estimate, box_of()) == pytest.approx(1)
