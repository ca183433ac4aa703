"""Prompts in a step of decode: what both share, and what adds up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.records.estimate import Layout, OperatingPoint, OpTime, StepEstimate
from assay.roofline import mixed, step
from tests.unit.shapes import box_of, glm5, llama_8b

ONE = Layout()


def decode(sequences: int, context: int = 600) -> OperatingPoint:
    return OperatingPoint(phase="decode", sequences=sequences, context_tokens=context)


def prompts(sequences: int, tokens: int) -> OperatingPoint:
    return OperatingPoint(phase="prefill", sequences=sequences, context_tokens=0, new_tokens=tokens)


def op(estimate: StepEstimate, name: str) -> OpTime:
    return next(one for one in estimate.ops if one.name == name)


def test_weights_are_read_once_and_arithmetic_adds_up() -> None:
    shape, box = llama_8b(), box_of(1)
    apart = [step.estimate(shape, box, ONE, point) for point in (decode(64), prompts(1, 512))]
    both = mixed.estimate(shape, box, ONE, decode(64), prompts(1, 512))
    name = "dense_ffn.gate_up"
    assert op(both, name).flops == pytest.approx(sum(op(each, name).flops for each in apart))
    assert op(both, name).read_bytes == pytest.approx(max(op(each, name).read_bytes for each in apart), rel=0.02)


def test_attention_is_computed_for_each_apart() -> None:
    shape, box = llama_8b(), box_of(1)
    apart = [step.estimate(shape, box, ONE, point) for point in (decode(64), prompts(2, 512))]
    both = op(mixed.estimate(shape, box, ONE, decode(64), prompts(2, 512)), "attention.core")
    assert both.flops == pytest.approx(sum(op(each, "attention.core").flops for each in apart))
    assert both.read_bytes == pytest.approx(sum(op(each, "attention.core").read_bytes for each in apart))


def test_logits_are_computed_once_for_each_sequence() -> None:
    both = mixed.estimate(llama_8b(), box_of(1), ONE, decode(64), prompts(2, 512))
    alone = step.estimate(llama_8b(), box_of(1), ONE, decode(66))
    assert op(both, "head").flops == pytest.approx(op(alone, "head").flops)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 256), st.integers(1, 16), st.sampled_from([16, 512]), st.sampled_from([ONE, Layout(tp=8)]))
def test_a_mixed_step_takes_no_less_than_either_and_no_more_than_both(
    running: int, count: int, tokens: int, layout: Layout
) -> None:
    shape, box = (glm5(), box_of(8)) if layout.tp > 1 else (llama_8b(), box_of(1))
    one, other = (step.estimate(shape, box, layout, point) for point in (decode(running), prompts(count, tokens)))
    both = mixed.estimate(shape, box, layout, decode(running), prompts(count, tokens))
    assert both.floor_s <= 1.001 * (one.floor_s + other.floor_s)
    assert both.floor_s >= 0.999 * max(one.floor_s, other.floor_s)
    assert both.time_s.mid <= 1.001 * (one.time_s.mid + other.time_s.mid)
    assert both.time_s.mid >= 0.999 * max(one.time_s.mid, other.time_s.mid)
