"""Estimates by hand: small numbers that can be checked by eye, in the shape of the founding case."""

from __future__ import annotations

from assay.records.device import Basis, Box, Device, Fact
from assay.records.estimate import (
    Bound,
    Layout,
    MechanismCeiling,
    MemoryBudget,
    OperatingPoint,
    OpTime,
    Range,
    Routing,
    StepEstimate,
)
from assay.records.estimate_report import EstimateReport, Load, ModelFacts, ServingPoint
from assay.records.model_shape import LayerGroup, Matrix, ModelShape, Storage
from assay.roofline.serving import held, load_of_requests, prompts_point, serving_point

LAYOUT = Layout(tp=8)
NVFP4 = Storage(name="nvfp4", bits_per_weight=4.5, compute="fp4")


def spread(mid: float, by: float = 1.5) -> Range:
    return Range(low=mid / by, mid=mid, high=mid * by)


def fact(value: float, unit: str, basis: Basis = "spec") -> Fact:
    return Fact(value=value, unit=unit, basis=basis, source=f"a {basis} source", date="2026-03")


def device() -> Device:
    return Device(
        id="card",
        name="Card 6000",
        kind="gpu",
        link="PCIe 5.0 x16",
        facts={
            "memory_bytes": [fact(100e9, "bytes")],
            "memory_read_bytes_per_s": [fact(1.8e12, "bytes/s"), fact(1.5e12, "bytes/s", "elsewhere")],
            "bf16_flop_per_s": [fact(400e12, "flop/s")],
            "fp4_flop_per_s": [fact(1600e12, "flop/s", "assumed")],
            "link_bytes_per_s": [fact(64e9, "bytes/s")],
        },
    )


def op(name: str, part: str, time_ms: float, bound: Bound, **more: object) -> OpTime:
    fields = {"calls": 75, "flops": 0.0, "read_bytes": 0.0, "basis": ["elsewhere", "spec"]}
    mid = time_ms / 1e3
    return OpTime.model_validate(
        {"name": name, "part": part, "floor_s": 0.6 * mid, "time_s": spread(mid), "bound": bound, **fields, **more}
    )


def step(point: OperatingPoint, scale: float = 1.0) -> StepEstimate:
    """Communication first, then experts, attention and small things; times grow with the scale."""
    ops = [
        op("all_reduce", "communication", 60 * scale, "communication", collective="all_reduce", message_bytes=3e6),
        op(
            "routed_experts.gate_up",
            "routed_experts",
            30 * scale,
            "memory",
            flops=4e12 * scale,
            read_bytes=27e9 * scale,
            compute="fp4",
        ),
        op("routed_experts.down", "routed_experts", 15 * scale, "memory", flops=2e12, read_bytes=13e9, compute="fp4"),
        op("attention.scores", "attention_core", 6 * scale, "memory", flops=1e12, read_bytes=5e9, compute="bf16"),
        op("attention.q_proj", "attention", 3 * scale, "compute", flops=1.2e12, read_bytes=1e8, compute="bf16"),
        op("norms", "elementwise", 0.2 * scale, "launch", calls=156, read_bytes=1e7),
        op("router", "router", 0.1 * scale, "launch", flops=1e9, read_bytes=1e7, compute="bf16"),
    ]
    overhead = spread(0.002)
    mid = sum(each.time_s.mid for each in ops) + overhead.mid
    floor = sum(each.floor_s for each in ops)
    total = spread(mid)
    return StepEstimate(
        point=point,
        layout=LAYOUT,
        routing=Routing(),
        ops=ops,
        floor_s=floor,
        time_s=total,
        overhead_s=overhead,
        tokens_per_s=Range(low=point.tokens / total.high, mid=point.tokens / total.mid, high=point.tokens / total.low),
        ceiling_tokens_per_s=point.tokens / floor,
        bound="communication",
        experts_hit=255.9,
        tokens_per_expert=7.66,
        notes=["efficiency of kernels: 55 to 85 %, assumed"],
    )


def shape() -> ModelShape:
    """Just enough of a model for its MFU."""
    experts = Matrix(name="up", part="routed_experts", rows=2048, cols=6144, copies=256, active_copies=8, storage=NVFP4)
    group = LayerGroup(name="moe", count=75, attention=None, matrices=[experts])
    return ModelShape(
        name="a-moe",
        architecture="x",
        source="x",
        hidden=6144,
        vocab=150_000,
        num_experts=256,
        top_k=8,
        outer=[],
        layers=[group],
    )


def mechanisms() -> list[MechanismCeiling]:
    def one(name: str, title: str, high: float, reason: str, *, applies: bool = True) -> MechanismCeiling:
        gain = Range(low=0.0, mid=high / 2, high=high)
        share = high / (1 + high)
        return MechanismCeiling(
            id=name, title=title, touches=["x"], touched_share=share, gain=gain, applies=applies, reason=reason
        )

    return [
        one("ep8", "Expert parallelism EP8", 0.35, "moves 25 MB by all-to-all in place of the all-reduce"),
        one("persistent", "Persistent kernels", 0.06, "removes 75 launches a step"),
        one("l2-pinning", "L2 pinning", 0.004, "128 MB hold under a fifth of one layer's experts"),
        one("mscclpp", "MSCCL++ all-reduce", 0.4, "messages of 3.0 MB are above its 1 MiB", applies=False),
    ]


def memory() -> MemoryBudget:
    return MemoryBudget(
        device_bytes=100e9,
        weight_bytes=57e9,
        activation_bytes=2e9,
        graph_bytes=1.5e9,
        reserved_bytes=10e9,
        cache_bytes=29.5e9,
        cache_bytes_per_token=100_152,
        cache_tokens=314_304,
        fits=True,
        notes=["graphs and engine: 1.5 GB, assumed"],
    )


def serving(asked: int, load: Load) -> ServingPoint:
    running, why = held(memory(), load, asked)
    decode = OperatingPoint(phase="decode", sequences=running, context_tokens=load.context_tokens)
    together = prompts_point(load, running)
    prompts = None if together is None else step(together, 2.0)
    return serving_point(
        asked,
        why,
        step(decode, 0.2 + running / 300),
        prompts,
        load,
        shape(),
        Box(device=device(), count=8),
        mechanisms(),
    )


def report(asked: tuple[int, ...] = (1, 64, 2048), load: Load | None = None) -> EstimateReport:
    """A mixture of experts on eight cards, three operating points, the last held back by the cache."""
    load = load or load_of_requests(1024, 256)
    return EstimateReport(
        model=ModelFacts(
            name="a-moe-nvfp4",
            architecture="SomeMoeForCausalLM",
            source="a-moe-nvfp4",
            parameters=744_000_000_000,
            active_parameters=40.1e9,
            weight_bytes=437e9,
            parameters_by_part={"routed_experts": 724_800_000_000, "attention": 12_900_000_000},
            weight_bytes_by_part={"routed_experts": 408e9, "attention": 25.8e9},
            cache_bytes_per_token=100_152,
            indexer_bytes_per_token=10_296,
            num_experts=256,
            top_k=8,
            storage=["nvfp4", "bf16"],
        ),
        box=Box(device=device(), count=8),
        layout=LAYOUT,
        load=load,
        routing=Routing(),
        cache_dtype="bf16",
        memory=memory(),
        memory_fraction=0.9,
        points=[serving(each, load) for each in asked],
        chosen=len(asked) - 1,
        assumptions=["efficiency of kernels: 55 to 85 %, assumed", "tokens spread evenly over experts"],
    )
