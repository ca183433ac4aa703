"""The roofline of llama.cpp on a CPU, from ceilings that are given."""

from __future__ import annotations

import pytest

from assay.errors import UsageError
from assay.records.ceilings import CeilingName, Ceilings
from assay.records.estimate import OperatingPoint
from assay.records.model_shape import Attention, LayerGroup, Matrix, ModelShape, Part, Storage
from assay.roofline import cpu
from tests.unit.test_ceilings import ceilings_of, measured

READ = 30e9
STREAMED = {"F16": 29e9, "Q4_1": 8e9}
CACHED = {"F16": 60e9, "Q4_1": 40e9}
WIDE = {"F16": 80e9, "Q4_1": 90e9}
BITS = {"F16": 16.0, "Q4_1": 5.0}


def flat(name: CeilingName, value: float, **changes: object) -> object:
    unit = "s" if name in {"product_start", "graph_node", "graph_start"} else "flop/s"
    unit = "bytes/s" if name in {"memory_read", "matvec_streamed"} else unit
    return measured(name=name, samples=[value] * 5, unit=unit, **changes)


def machine(threads: int = 2) -> Ceilings:
    found = [
        flat("memory_read", READ, threads=threads),
        flat("product_start", 1e-6, threads=threads),
        flat("graph_node", 1e-7, threads=threads),
        flat("graph_start", 1e-6, threads=threads),
    ]
    for storage, rate in STREAMED.items():
        found.append(flat("matvec_streamed", rate, threads=threads, storage=storage))
        found.append(flat("matvec_cached", CACHED[storage], threads=threads, storage=storage))
        found.append(flat("matmul", WIDE[storage], threads=threads, storage=storage, columns=128))
    return ceilings_of(*found)


def model(storage: str, *, experts: int = 0, top_k: int = 0, layers: int = 4) -> ModelShape:
    kind = Storage(name=storage, bits_per_weight=BITS[storage])

    def matrix(name: str, part: Part, rows: int, cols: int, copies: int = 1, active: float = 1.0) -> Matrix:
        return Matrix(name=name, part=part, rows=rows, cols=cols, copies=copies, active_copies=active, storage=kind)

    mixer = Attention(kind="full", heads=8, kv_heads=2, qk_head_dim=64, v_head_dim=64)
    matrices = [matrix("qkv", "attention", 768, 512), matrix("out", "attention", 512, 512)]
    if experts:
        matrices.append(matrix("experts", "routed_experts", 1536, 512, experts, top_k))
    else:
        matrices.append(matrix("ffn", "dense_ffn", 6144, 512))
    return ModelShape(
        name="m", architecture="a", source="here", hidden=512, vocab=32000, num_experts=experts, top_k=top_k,
        outer=[matrix("embedding", "embedding", 32000, 512), matrix("head", "head", 32000, 512)],
        layers=[LayerGroup(name="all", count=layers, attention=mixer, matrices=matrices)],
    )  # fmt: skip


def decode(sequences: int = 1, context: int = 100) -> OperatingPoint:
    return OperatingPoint(phase="decode", sequences=sequences, context_tokens=context)


def test_one_sequence_reads_every_weight_but_the_embedding_at_the_rate_of_its_type() -> None:
    shape = model("Q4_1")
    step = cpu.estimate(shape, machine(), 2, decode())

    products = [op for op in step.ops if op.compute == "Q4_1"]
    read = shape.weight_bytes - 32000 * 512 * BITS["Q4_1"] / 8
    assert sum(op.read_bytes for op in products) == pytest.approx(read)
    calls = sum(op.calls for op in products)
    assert calls == 3 * 4 + 1
    assert sum(op.time_s.mid for op in products) == pytest.approx(read / STREAMED["Q4_1"] + calls * 1e-6)


def test_a_type_with_slow_arithmetic_is_compute_bound_and_one_that_streams_is_memory_bound() -> None:
    slow, fast = (cpu.estimate(model(name), machine(), 2, decode()) for name in ("Q4_1", "F16"))

    assert (slow.bound, fast.bound) == ("compute", "memory")
    assert slow.tokens_per_s.mid < slow.ceiling_tokens_per_s
    assert cpu.memory_floor_s(slow, machine(), 2) < slow.floor_s
    assert cpu.memory_floor_s(fast, machine(), 2) == pytest.approx(fast.floor_s, rel=0.05)


def test_the_step_is_the_sum_of_its_operations_and_what_is_outside_of_them() -> None:
    step = cpu.estimate(model("F16"), machine(), 2, decode())

    for part in ("low", "mid", "high"):
        total = sum(getattr(op.time_s, part) for op in step.ops) + getattr(step.overhead_s, part)
        assert getattr(step.time_s, part) == pytest.approx(total)
    assert all(op.floor_s <= op.time_s.mid + 1e-12 for op in step.ops)
    assert step.floor_s == pytest.approx(sum(op.floor_s for op in step.ops))


def test_a_sequence_more_is_cheaper_than_the_first() -> None:
    one, four = (cpu.estimate(model("F16"), machine(), 2, decode(count)) for count in (1, 4))

    assert one.time_s.mid < four.time_s.mid < 4 * one.time_s.mid
    assert four.tokens_per_s.mid > one.tokens_per_s.mid


def test_one_token_touches_its_experts_and_many_tokens_touch_them_all() -> None:
    shape = model("Q4_1", experts=16, top_k=2)
    one, many = (cpu.estimate(shape, machine(), 2, decode(count)) for count in (1, 256))

    each = 1536 * 512 * BITS["Q4_1"] / 8 * 4
    experts_one, experts_many = (next(op for op in step.ops if op.part == "routed_experts") for step in (one, many))
    assert experts_one.read_bytes == pytest.approx(2 * each)
    assert experts_many.read_bytes == pytest.approx(16 * each)
    assert one.experts_hit == pytest.approx(2)
    assert one.tokens_per_expert == pytest.approx(1)


def test_attention_reads_the_cache_in_steps_of_256_tokens() -> None:
    def read(context: int) -> float:
        step = cpu.estimate(model("F16"), machine(), 2, decode(context=context))
        return next(op.read_bytes for op in step.ops if op.part == "attention_core")

    assert read(10) == read(255) < read(256) == read(300)
    assert read(10) == 256 * 2 * (64 + 64) * 2 * 4


def test_logits_of_a_prompt_are_computed_once() -> None:
    prompt = OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=128)
    step = cpu.estimate(model("F16"), machine(), 2, prompt)

    head = next(op for op in step.ops if op.part == "head")
    assert head.flops == 2 * 32000 * 512
    assert step.bound == "compute"


def test_a_disturbed_ceiling_counts_by_what_was_disturbed_least() -> None:
    whole = machine()
    shaken = [
        one.model_copy(update={"samples": [1e9, 1e9, 1e9, 1e9, STREAMED["F16"]] * 3, "foreign_cpu_cores": 0.2})
        if (one.name, one.storage) == ("matvec_streamed", "F16")
        else one
        for one in whole.measurements
    ]
    quiet, disturbed = (
        cpu.estimate(model("F16"), ceilings, 2, decode())
        for ceilings in (whole, whole.model_copy(update={"measurements": shaken}))
    )

    assert disturbed.time_s.mid == pytest.approx(quiet.time_s.mid)
    assert disturbed.time_s.high > 2 * quiet.time_s.high
    assert any("may be too low" in note for note in disturbed.notes)


@pytest.mark.parametrize(("storage", "threads"), [("F16", 1), ("Q4_1", 3)])
def test_a_ceiling_that_was_not_measured_is_named_and_never_guessed(storage: str, threads: int) -> None:
    with pytest.raises(UsageError, match=f"not measured at {threads} thread") as caught:
        cpu.estimate(model(storage), machine(), threads, decode())
    assert caught.value.hint


def test_a_matrix_that_was_measured_as_it_is_counts_by_that_and_by_no_other() -> None:
    whole = machine()
    own = flat("matvec_streamed", 12e9, threads=2, storage="Q4_1", shape=(6144, 512))
    step = cpu.estimate(
        model("Q4_1"), whole.model_copy(update={"measurements": [*whole.measurements, own]}), 2, decode()
    )

    by_name = {op.name: op for op in step.ops}
    ffn, out = by_name["dense_ffn.ffn Q4_1"], by_name["attention.out Q4_1"]
    assert ffn.time_s.mid == pytest.approx(ffn.read_bytes / 12e9)
    assert out.time_s.mid == pytest.approx(out.read_bytes / STREAMED["Q4_1"] + out.calls * 1e-6)


def test_the_matrices_worth_a_measurement_are_the_largest_of_a_step_without_experts() -> None:
    assert cpu.weight_shapes(model("Q4_1")) == [
        ("Q4_1", 32000, 512),
        ("Q4_1", 6144, 512),
        ("Q4_1", 768, 512),
        ("Q4_1", 512, 512),
    ]
    assert ("Q4_1", 1536, 512) not in cpu.weight_shapes(model("Q4_1", experts=16, top_k=2))


@pytest.mark.parametrize(("name", "kind"), [("bf16", "BF16"), ("fp16", "F16"), ("Q4_K", "Q4_K")])
def test_types_have_the_names_that_gguf_has_for_them(name: str, kind: str) -> None:
    assert cpu.kernel_type(name) == kind


def test_a_ceiling_that_others_drowned_is_named_with_how_much_they_used() -> None:
    whole = machine()
    drowned = [one.model_copy(update={"foreign_cpu_cores": 1.3}) for one in whole.measurements]

    with pytest.raises(UsageError, match="not measured") as caught:
        cpu.estimate(model("F16"), whole.model_copy(update={"measurements": drowned}), 2, decode())
    assert "other processes used 1.3 cores" in str(caught.value.hint)
