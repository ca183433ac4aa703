"""Rows and sentences of an estimate that the terminal and the page share. Formatting only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.records.device import Basis, Device
from assay.records.estimate import MemoryBudget, OpTime, Range, StepEstimate
from assay.records.estimate_report import EstimateReport, ModelFacts, ServingPoint
from assay.render import estimate_words as words
from assay.render.words import NOTHING

LITTLE_SHARE = 0.005
"""Of the step's time, below which operations are shown together."""
HOST = "host"
"""What bounds the time outside of kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRow:
    """One line of the table of operations."""

    name: str
    time_ms: str
    share: float
    bound: str
    speed_of_light: float | None
    """None without a floor: fused into a neighbour, the operation would vanish."""
    basis: str
    calls: int | None = None
    flops: str = ""
    moved: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPart:
    """A stretch of the memory bar."""

    name: str
    size_bytes: float
    kind: str
    css: str


def model_words(model: ModelFacts) -> str:
    """The model in a sentence."""
    active = ""
    if model.num_experts:
        active = f", {words.parameter_words(model.active_parameters)} active"
        active += f" without embedding and head ({model.top_k} of {model.num_experts} experts)"
    return (
        f"{model.name} ({model.architecture}): {words.parameter_words(model.parameters)} parameters{active}; "
        f"weights {words.size_words(model.weight_bytes)} ({', '.join(model.storage[:3])})"
    )


def cache_words(report: EstimateReport) -> str:
    """What a token costs in the cache."""
    model = report.model
    said = f"{words.size_words(model.cache_bytes_per_token)} a token in {report.cache_dtype}"
    if model.indexer_bytes_per_token:
        said += f", {words.size_words(model.indexer_bytes_per_token)} of them the indexer's"
    return said


def box_words(report: EstimateReport) -> str:
    """The box, how it is joined, and the layout."""
    box = report.box
    joined = f", {box.device.link}" if box.device.link and box.count > 1 else ""
    return f"{box.name}{joined}; layout {report.layout.name}"


def load_words(report: EstimateReport) -> str:
    """What is asked."""
    load, routing = report.load, report.routing
    if load.input_tokens is None:
        said = f"decode at {load.context_tokens:,} tokens in the cache of each sequence"
    else:
        said = f"{load.input_tokens:,} tokens in, {load.output_tokens or 0:,} out"
    if not report.model.num_experts:
        return said
    return said + ("; routing uniform" if routing.law == "uniform" else f"; routing Zipf {routing.exponent:g}")


def memory_parts(memory: MemoryBudget) -> list[MemoryPart]:
    """The fullest device's memory, in the order of the bar."""
    return [
        MemoryPart(name="weights", size_bytes=memory.weight_bytes, kind="weights", css="loss"),
        MemoryPart(name="activations", size_bytes=memory.activation_bytes, kind="activations", css="total"),
        MemoryPart(name="graphs, engine", size_bytes=memory.graph_bytes, kind="graphs", css="total"),
        MemoryPart(name="cache", size_bytes=memory.cache_bytes, kind="cache", css="gain"),
        MemoryPart(name="kept free", size_bytes=memory.reserved_bytes, kind="free", css="band"),
    ]


def capacity_words(report: EstimateReport) -> str:
    """What the cache holds."""
    tokens, each = report.memory.cache_tokens, report.load.reserved_tokens
    return f"the cache holds {tokens:,} tokens: {report.memory.sequences(each):,} requests of {each:,}"


def asked_words(point: ServingPoint) -> str:
    """Requests asked for and, where they differ, those that run."""
    return f"{point.asked:,}" if point.asked == point.running else f"{point.asked:,}>{point.running:,}"


def held_back_words(points: Sequence[ServingPoint]) -> str:
    """Why fewer run than were asked for at most, and how long the others wait; empty where all run."""
    most = max(points, key=lambda point: point.asked)
    if not most.held_back:
        return ""
    waits = most.queue_s is not None and most.queue_s.high > 0
    return most.held_back + (f" {words.time_range_words(most.queue_s)}" if waits else "")


def op_rows(point: ServingPoint, *, phase: str = "decode", most: int = 12) -> list[OpRow]:
    """Operations of a step by falling time; the small ones in one row; then what lies outside of kernels."""
    step = point.decode if phase == "decode" else point.prompts
    if step is None:
        return []
    shown = [op for op in step.ops if step.share(op) >= LITTLE_SHARE][:most]
    rest = [op for op in step.ops if op not in shown]
    rows = [_op_row(op, step) for op in shown]
    rows += [_rest_row(rest, step)] if rest else []
    if step.overhead_s.high > 0:
        rows.append(
            OpRow(
                name="outside of kernels",
                time_ms=words.range_words(step.overhead_s, 1e3),
                share=_share(step.overhead_s.mid, step),
                bound=HOST,
                speed_of_light=None,
                basis="assumed",
            )
        )
    return rows


def split_words(point: ServingPoint) -> str:
    """Shares of the step's time by what bounds it, largest first; the host's last."""
    step = point.decode
    shares: dict[str, float] = {}
    for op in step.ops:
        shares[op.bound] = shares.get(op.bound, 0.0) + step.share(op)
    found = sorted(shares.items(), key=lambda item: -item[1])
    found += [(HOST, _share(step.overhead_s.mid, step))] if step.overhead_s.mid > 0 else []
    return ", ".join(f"{name} {words.percent_words(share)}" for name, share in found)


def experts_words(point: ServingPoint, num_experts: int) -> str:
    """How many experts a step touches; empty for a dense model."""
    step = point.decode
    if step.experts_hit is None or step.tokens_per_expert is None:
        return ""
    return (
        f"a step touches {words.rounded_words(step.experts_hit)} of {num_experts} experts of a layer, "
        f"{words.rounded_words(step.tokens_per_expert, 2)} tokens each"
    )


def prompts_words(point: ServingPoint) -> str:
    """The prompts that are computed together; empty without prompts."""
    if point.prompts is None:
        return ""
    at = point.prompts.point
    return f"prefill of {at.sequences:,} prompt{'s' if at.sequences > 1 else ''} of {at.new_tokens:,} tokens"


def headline(report: EstimateReport) -> str:
    """The answer for the chosen point in a sentence or two."""
    point = report.point
    step = point.decode
    said = (
        f"{words.range_words(step.tokens_per_s)} tokens/s of decode with {point.running:,} running, "
        f"at most {words.rounded_words(step.ceiling_tokens_per_s)}; bound by {step.bound}."
    )
    if point.output_tokens_per_s is not None:
        said += (
            f" With the prompts in between: {words.range_words(point.output_tokens_per_s)} tokens/s; "
            f"they take {words.percent_words(point.prompt_share)} of the time."
        )
    return said


def ceilings(device: Device) -> list[tuple[str, str, Basis, str]]:
    """Every known ceiling of one device: name, value, basis, source."""
    named = [
        ("memory read", "memory_read_bytes_per_s", "bytes/s"),
        ("memory copy", "memory_copy_bytes_per_s", "bytes/s"),
    ]
    named += [(f"{each} arithmetic", f"{each}_flop_per_s", "flop/s") for each in words.ARITHMETIC]
    named += [("link, one way", "link_bytes_per_s", "bytes/s")]
    return [
        (name, words.rate_words(fact.value, unit), fact.basis, f"{fact.source}{f', {fact.date}' if fact.date else ''}")
        for name, key, unit in named
        for fact in device.facts.get(key, [])
    ]


def _share(time_s: float, step: StepEstimate) -> float:
    return time_s / step.time_s.mid if step.time_s.mid > 0 else 0.0


def _op_row(op: OpTime, step: StepEstimate) -> OpRow:
    return OpRow(
        name=op.name,
        time_ms=words.range_words(op.time_s, 1e3),
        share=step.share(op),
        bound=op.bound,
        speed_of_light=op.speed_of_light or None,
        basis=words.basis_words(op.basis),
        calls=op.calls,
        flops=words.operations_words(op.flops),
        moved=words.size_words(op.read_bytes) if op.read_bytes else NOTHING,
    )


def _rest_row(rest: Sequence[OpTime], step: StepEstimate) -> OpRow:
    low, mid, high = (sum(getattr(op.time_s, end) for op in rest) for end in ("low", "mid", "high"))
    return OpRow(
        name=f"{len(rest)} smaller",
        time_ms=words.range_words(Range(low=low, mid=mid, high=high), 1e3),
        share=_share(mid, step),
        bound="",
        speed_of_light=sum(op.floor_s for op in rest) / mid or None if mid > 0 else None,
        basis=words.basis_words([each for op in rest for each in op.basis]),
    )
