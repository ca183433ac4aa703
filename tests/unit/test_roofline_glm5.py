"""The founding box: GLM-5 in NVFP4 on eight RTX PRO 6000, against what was worked out and measured for it elsewhere.

Sources: voipmonitor/rtx6kpro, models/glm5.md and hardware/pcie-bandwidth.md (March 2026). The efficiencies were set
with its decode table in view (`assay.roofline.efficiency`): that the order of its points comes out is a check of the
code, no evidence for the model. Ceilings, floors and sizes do not depend on efficiencies.
"""

from __future__ import annotations

import pytest

from assay.probes.devices import box
from assay.records.estimate import Layout, OperatingPoint, StepEstimate
from assay.roofline import mechanisms, memory, step
from tests.unit.shapes import glm5

BOX = box("8xRTX-PRO-6000")
TP8 = Layout(tp=8)
MEASURED_POOL_TOKENS = 314_304
TABLE = {
    0: {1: 51.6, 2: 99.5, 4: 180.2, 8: 301.9, 16: 427.4, 32: 659.7, 64: 1010.6},
    16_000: {1: 44.3, 2: 84.3, 4: 143.1, 8: 228.3},
    64_000: {1: 36.2, 2: 64.2},
    128_000: {1: 31.1},
}
"""Best output tokens/s of both back ends, MTP off, by context and concurrency; MLA ran without its indexer."""


def decode(sequences: int, context: int) -> StepEstimate:
    point = OperatingPoint(phase="decode", sequences=sequences, context_tokens=context)
    return step.estimate(glm5(sparse=False), BOX, TP8, point)


def floor_of(estimate: StepEstimate, *names: str) -> float:
    return sum(op.floor_s for op in estimate.ops if op.part in names or op.name in names)


FULL = decode(2048, 150)


def test_parameters_are_those_of_the_model_card():
    assert glm5(sparse=False).parameters == pytest.approx(744e9, rel=0.005)
    assert glm5().cache_bytes_per_token() == 100_152


def test_reading_all_experts_takes_at_least_28_ms():
    # 408 GB / 8 over 1.792 TB/s is 28.4 ms; 0.1% of the traffic could stay in the L2.
    assert floor_of(FULL, "routed_experts") == pytest.approx(28.4e-3, rel=0.01)


def test_reading_the_cache_of_2048_requests_takes_at_least_16_ms():
    # 2048 * 150 tokens * 89,856 bytes = 27.6 GB over 1.792 TB/s: 15.4 ms.
    assert floor_of(FULL, "attention.mla") == pytest.approx(15.5e-3, rel=0.01)


def test_arithmetic_of_2048_tokens_takes_11_ms_if_everything_were_fp4_and_more_as_stored():
    shape = glm5(sparse=False)
    fp4 = BOX.device.fact("fp4_flop_per_s")
    assert fp4 is not None
    assert 2 * shape.active_parameters * 2048 / 8 / fp4.value == pytest.approx(11.2e-3, rel=0.01)
    # As stored, attention, shared and dense layers multiply in BF16: four times slower than that figure takes them.
    stored_fp4 = sum(op.flops for op in FULL.ops if op.compute == "fp4") / fp4.value
    assert stored_fp4 == pytest.approx(6.4e-3, rel=0.05)


def test_all_reduces_of_2048_tokens_are_bracketed_by_the_wire_and_by_what_nccl_reaches():
    reduces = [op for op in FULL.ops if op.name in {"all_reduce.attention", "all_reduce.experts", "all_reduce.ffn"}]
    assert sum(op.calls for op in reduces) == 156
    assert {op.message_bytes for op in reduces} == {2048 * 12_288}
    # 137 ms stands for 50 GB/s. The floor takes the 63 GB/s of the data sheet, the expectation the 40 GB/s of NCCL.
    assert sum(op.floor_s for op in reduces) == pytest.approx(137e-3 * 50 / 63, rel=0.01)
    assert sum(op.time_s.mid for op in reduces) == pytest.approx(137e-3 * 50 / 40, rel=0.07)


def test_the_pool_of_cache_tokens_comes_out_near_the_measured_one():
    budget = memory.budget(glm5(), BOX, TP8, memory_fraction=0.92)
    assert budget.cache_tokens == pytest.approx(MEASURED_POOL_TOKENS, rel=0.05)
    # The engine reported 57.06 GiB of weights; some of what it loads beside matrices is not counted here.
    assert budget.weight_bytes / 2**30 == pytest.approx(57.06, rel=0.05)
    assert budget.sequences(2048) == pytest.approx(153, rel=0.05), "max_running_requests=2048 is never reached"


def test_2048_requests_leave_about_150_tokens_each():
    budget = memory.budget(glm5(), BOX, TP8, memory_fraction=0.92)
    assert budget.cache_tokens / 2048 == pytest.approx(153, rel=0.05)


@pytest.mark.parametrize("context", TABLE)
def test_no_measurement_is_above_the_ceiling(context: int):
    for sequences, tokens_per_s in TABLE[context].items():
        assert tokens_per_s <= decode(sequences, context).ceiling_tokens_per_s


def test_the_order_of_measured_points_is_predicted():
    points = [
        (decode(n, context).tokens_per_s.mid, value) for context, row in TABLE.items() for n, value in row.items()
    ]
    pairs = [(a, b) for a in points for b in points if a[1] > 1.06 * b[1]]  # runs differ by up to 6%
    assert sum(a[0] > b[0] for a, b in pairs) / len(pairs) > 0.97


def test_communication_binds_at_2048_requests():
    assert FULL.bound == "communication"
    shares = {
        part: sum(FULL.share(op) for op in FULL.ops if op.part == part) for part in ("communication", "routed_experts")
    }
    assert shares["communication"] > 2 * shares["routed_experts"]
    assert FULL.tokens_per_expert == pytest.approx(64)


def test_what_the_founding_flags_could_be_worth_at_2048_requests():
    found = {one.id: one for one in mechanisms.ceilings(FULL, glm5(sparse=False), BOX, TP8)}
    assert not found["mscclpp"].applies
    assert "85 tokens" in found["mscclpp"].reason
    assert not found["single-batch-overlap"].applies
    assert not found["two-batch-overlap"].applies
    assert found["l2-persistence"].gain.high < 0.005
    assert 0 < found["expert-parallel"].gain.high < 0.35
    assert found["persistent-kernel"].gain.high < 0.15


def test_mscclpp_can_act_when_few_requests_run():
    found = {one.id: one for one in mechanisms.ceilings(decode(64, 150), glm5(sparse=False), BOX, TP8)}
    assert found["mscclpp"].applies
    assert found["mscclpp"].gain.high > 0.02
