"""The estimate of a run's operating point beside what was measured there."""

from __future__ import annotations

import pytest

from assay.records.device import Box
from assay.records.estimate import Layout, OperatingPoint, StepEstimate
from assay.records.held_load import HeldLoad, MeasuredLoad
from assay.roofline import mixed, step
from assay.roofline.held_load import held_load
from tests.unit.shapes import box_of, llama_8b

STEP_TOKENS = 8192


def held(*, sequences: int = 64, shares: bool = False, **load: object) -> HeldLoad:
    """Llama 3.1 8B on one device, 512 tokens in and 128 out where nothing else is said."""
    shape, box, layout = llama_8b(), box_of(1), Layout()

    def alone(point: OperatingPoint) -> StepEstimate:
        return step.estimate(shape, box, layout, point)

    def both(decode: OperatingPoint, prompts: OperatingPoint) -> StepEstimate:
        return mixed.estimate(shape, box, layout, decode, prompts)

    told = {"name": "main", "sequences": sequences, "input_tokens": 512, "output_tokens": 128, "tpot_s": 0.01, **load}
    measured = MeasuredLoad.model_validate(told)
    used: Box = box
    return held_load(measured, sequences, alone, both if shares else None, used, STEP_TOKENS)


def test_a_lone_request_meets_no_other_prompt() -> None:
    for shares in (False, True):
        found = held(sequences=1, shares=shares)

        assert found.expected_s == found.step
        assert not found.shared_steps


def test_a_request_meets_the_prompt_of_each_other_once_while_it_is_answered() -> None:
    found = held(sequences=16)
    prompt = step.estimate(
        llama_8b(), box_of(1), Layout(), OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=512)
    )

    assert found.expected_s.mid == pytest.approx(found.step.mid + 15 / 128 * prompt.time_s.mid)


def test_prompts_cost_less_in_steps_of_decode_than_in_their_own_and_more_than_nothing() -> None:
    apart, shared = held(), held(shares=True)

    assert shared.shared_steps
    assert shared.step.mid < shared.expected_s.mid < apart.expected_s.mid
    assert shared.expected_s.high >= apart.expected_s.high  # a scheduler need not find room for them


def test_what_the_cache_holds_of_a_prompt_lengthens_the_step_and_is_not_computed_again() -> None:
    plain, prefixed = held(), held(cached_tokens=4096)
    whole = held(input_tokens=4608)

    assert prefixed.step.mid == pytest.approx(whole.step.mid)
    assert plain.step.mid < prefixed.step.mid
    assert prefixed.expected_s.mid - prefixed.step.mid < 0.5 * (whole.expected_s.mid - whole.step.mid)


def test_requests_of_one_length_end_together_and_meet_fewer_prompts() -> None:
    assert held(one_length=True).expected_s.mid < held().expected_s.mid


def test_a_measurement_below_the_floor_refutes_the_estimate() -> None:
    found = held(tpot_s=1e-4)

    assert found.below_floor
    assert not found.inside
    assert found.floor_s <= found.step.low
