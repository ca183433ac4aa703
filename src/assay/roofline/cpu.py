"""The roofline of llama.cpp on a CPU: a step from what its own kernels reached here, type by type of weights.

A type of weights has its own kernel, and kernels differ more than memory traffic does: one that is not written for this
processor's instructions is bound by arithmetic although a CPU "is memory-bound". So every product is timed by the rate
that products with such weights and so many columns reached, and labelled by which of the two ceilings is nearer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from assay.records.ceilings import Ceilings
from assay.records.estimate import Layout, OperatingPoint, OpTime, Range, Routing, StepEstimate
from assay.records.model_shape import LOOKED_UP, Attention, LayerGroup, Matrix, ModelShape
from assay.roofline import timing
from assay.roofline.cpu_rates import Rates, interpolated, range_of
from assay.roofline.experts import expected_distinct

CACHE_PADDING = 256
"""llama.cpp computes attention over the used cells of its cache, rounded up to so many (n_kv)."""
NODES_PER_LAYER = 14
"""Operations of a layer beside its products: norms, rotations, cache writes, additions, the activation. Counted in
llama.cpp's graph of a Llama-like model."""
NODES_PER_MOE_LAYER = 12
"""More of them with experts: softmax, the choice, gathering and scaling of weights, the sum."""
ATTENTION_SLOWDOWN = Range(low=1.0, mid=2.0, high=4.0)
"""Attention's core over its floor: it works on single heads and a mask, not on large matrices. Assumed."""
MOST_SHAPES, LEAST_SHARE = 8, 0.02
"""Matrices of a model that are measured as they are: so many, and none with less of its bytes."""
STEP_OVERHEAD_S = Range(low=0.05e-3, mid=0.2e-3, high=0.8e-3)
"""Outside of the graph: batch set-up, HTTP, the sampler's fixed part. Assumed."""
LOGIT_OVERHEAD_S = Range(low=1e-9, mid=5e-9, high=15e-9)
"""The sampler's copy and selection, for each entry of the vocabulary. Assumed."""
NO_TIME = Range(low=0.0, mid=0.0, high=0.0)
OTHER_SPELLINGS = {"bf16": "BF16", "fp16": "F16", "fp32": "F32"}
ELEMENT_BYTES = 4.0
ELEMENTWISE_PASSES = 2.0
"""An operation without a product reads and writes its numbers."""


def estimate(
    shape: ModelShape,
    ceilings: Ceilings,
    threads: int,
    point: OperatingPoint,
    *,
    routing: Routing | None = None,
    cache_bytes_per_element: float = 2.0,
) -> StepEstimate:
    """Time one step of llama.cpp.

    Args:
        shape: the model, its weights under GGUF's type names.
        ceilings: of this machine, with the types that the model has.
        threads: that the engine computes with.
        point: what the step computes.
        routing: of tokens over experts; None: uniform.
        cache_bytes_per_element: 2 for the engine's default F16.

    Raises:
        UsageError: a ceiling that is needed is not measured; says which and how to measure it.
    """
    rates, law = Rates(ceilings, threads), routing or Routing()
    groups: dict[str, list[tuple[int, Matrix]]] = {}
    for count, matrix in shape.matrices():
        if matrix.part not in LOOKED_UP:
            groups.setdefault(f"{matrix.part}.{matrix.name} {matrix.storage.name}", []).append((count, matrix))
    ops = [_product(name, group, shape, rates, point, law) for name, group in groups.items()]
    ops += _attention(shape, rates, point, cache_bytes_per_element)
    ops.append(_elementwise(shape, rates, point))
    ops.sort(key=lambda op: op.time_s.mid, reverse=True)
    overhead = timing.add(STEP_OVERHEAD_S, LOGIT_OVERHEAD_S.scaled(shape.vocab * point.sequences))
    time_s = timing.add(overhead, *(op.time_s for op in ops))
    floor_s = sum(op.floor_s for op in ops)
    is_decode = point.phase == "decode"
    return StepEstimate(
        point=point,
        layout=Layout(),
        routing=law,
        ops=ops,
        floor_s=floor_s,
        time_s=time_s,
        overhead_s=overhead,
        tokens_per_s=Range(
            low=point.tokens / time_s.high, mid=point.tokens / time_s.mid, high=point.tokens / time_s.low
        ),
        ceiling_tokens_per_s=point.tokens / floor_s if floor_s else math.inf,
        bound=timing.largest_bound(ops, overhead.mid),
        experts_hit=_distinct(shape, point.tokens, law) if shape.is_moe else None,
        tokens_per_expert=_per_expert(shape, point.tokens, law) if shape.is_moe else None,
        notes=_notes(shape, ceilings, threads, is_decode=is_decode),
    )


def kernel_type(storage: str) -> str:
    """The name that GGUF has for a type of weights: what other files call bf16 is BF16 there."""
    return OTHER_SPELLINGS.get(storage, storage)


def weight_shapes(shape: ModelShape) -> list[tuple[str, int, int]]:
    """Matrices worth a measurement of their own: type, rows, columns; those with the most bytes of a step first."""
    read: dict[tuple[str, int, int], float] = {}
    for count, matrix in shape.matrices():
        if matrix.part not in LOOKED_UP and matrix.part != "routed_experts":
            key = (kernel_type(matrix.storage.name), matrix.rows, matrix.cols)
            read[key] = read.get(key, 0.0) + count * matrix.weight_bytes
    whole = sum(read.values())
    ordered = sorted(read, key=lambda key: -read[key])
    return [key for key in ordered[:MOST_SHAPES] if read[key] >= LEAST_SHARE * whole]


def memory_floor_s(step: StepEstimate, ceilings: Ceilings, threads: int) -> float:
    """The step's time if nothing but its memory traffic counted: what faster kernels could reach at best."""
    return sum(op.read_bytes for op in step.ops) / Rates(ceilings, threads).memory_peak


def _product(
    name: str,
    group: list[tuple[int, Matrix]],
    shape: ModelShape,
    rates: Rates,
    point: OperatingPoint,
    law: Routing,
) -> OpTime:
    matrix = group[0][1]
    layers = sum(count for count, _ in group)
    # Logits are computed for the last token of a prompt alone.
    tokens = point.sequences if matrix.part == "head" else point.tokens
    is_routed = matrix.part == "routed_experts"
    copies = _distinct(shape, tokens, law) if is_routed else float(matrix.copies)
    columns = tokens * matrix.active_copies / copies if copies else 1.0
    flops = sum(2.0 * count * one.rows * one.cols * one.active_copies * tokens for count, one in group)
    stored = sum(count * one.weight_bytes / one.copies * copies for count, one in group)
    storage = kernel_type(matrix.storage.name)
    flops_per_byte = 16.0 / matrix.storage.bits_per_weight
    compute_s = flops / rates.flop_peak(storage, columns, flops_per_byte)
    memory_s = stored / rates.memory_peak
    own = None if columns > 1 or is_routed else rates.own_shape(storage, matrix)
    if own is None:
        rate = interpolated(rates.flop_rates(storage, flops_per_byte), max(1.0, columns))
        start = range_of(rates.get("product_start")).scaled(layers)
    else:
        rate, start = range_of(own).scaled(flops_per_byte), NO_TIME  # the measurement holds the starts
    computed = Range(low=flops / rate.high, mid=flops / rate.mid, high=flops / rate.low)
    return OpTime(
        name=name,
        part=matrix.part,
        calls=layers,
        flops=flops,
        read_bytes=stored,
        compute=storage,
        floor_s=max(compute_s, memory_s),
        time_s=timing.add(_at_least(computed, memory_s), start),
        bound="compute" if compute_s > memory_s else "memory",
        basis=["measured"],
    )


def _attention(
    shape: ModelShape, rates: Rates, point: OperatingPoint, cache_bytes_per_element: float
) -> Iterator[OpTime]:
    """Scores and values of all layers, or the update of a linear state; its arithmetic is that of F16 products."""
    storage = "F16" if rates.ceilings.find("matvec_cached", rates.threads, "F16") else None
    peak = (
        rates.get("matvec_cached", "F16").best
        if storage
        else max(
            (one.best for one in rates.ceilings.measurements if one.name == "matvec_cached" and one.usable), default=0
        )
    )
    for group in shape.layers:
        if group.attention is None:
            continue
        flops, read_bytes = _attention_work(group, group.attention, point, cache_bytes_per_element)
        compute_s = flops / peak if peak else 0.0
        memory_s = read_bytes / rates.memory_peak
        floor_s = max(compute_s, memory_s)
        yield OpTime(
            name=f"attention_core.{group.name}",
            part="attention_core",
            calls=group.count,
            flops=flops,
            read_bytes=read_bytes,
            compute="F16",
            floor_s=floor_s,
            time_s=Range(
                low=floor_s * ATTENTION_SLOWDOWN.low,
                mid=floor_s * ATTENTION_SLOWDOWN.mid,
                high=floor_s * ATTENTION_SLOWDOWN.high,
            ),
            bound="compute" if compute_s > memory_s else "memory",
            basis=["measured", "assumed"],
        )


def _attention_work(
    group: LayerGroup, attention: Attention, point: OperatingPoint, cache_bytes_per_element: float
) -> tuple[float, float]:
    if attention.kind == "linear":
        elements = 2.0 * attention.state_elements * point.sequences * group.count
        return 2.0 * elements * point.new_tokens, elements * ELEMENT_BYTES
    seen = point.context_tokens + (point.new_tokens + 1) / 2
    if attention.window is not None:
        seen = min(seen, attention.window)
    padded = math.ceil(seen / CACHE_PADDING) * CACHE_PADDING
    width = attention.qk_head_dim + attention.v_head_dim
    flops = 2.0 * attention.heads * width * padded * point.tokens * group.count
    cached = attention.cached_elements_per_token * cache_bytes_per_element * padded * point.sequences * group.count
    return flops, cached


def _elementwise(shape: ModelShape, rates: Rates, point: OperatingPoint) -> OpTime:
    layers = sum(group.count for group in shape.layers)
    moe = sum(group.count for group in shape.layers if any(m.part == "routed_experts" for m in group.matrices))
    nodes = layers * NODES_PER_LAYER + moe * NODES_PER_MOE_LAYER
    moved = nodes * point.tokens * shape.hidden * ELEMENT_BYTES * ELEMENTWISE_PASSES
    node = range_of(rates.get("graph_node"))
    start = range_of(rates.get("graph_start"))
    passing_s = moved / rates.get("memory_read").median
    time_s = timing.add(node.scaled(nodes), start, Range(low=0.0, mid=passing_s, high=2 * passing_s))
    return OpTime(
        name="elementwise",
        part="elementwise",
        calls=nodes,
        flops=0.0,
        read_bytes=0.0,
        floor_s=0.0,
        time_s=time_s,
        bound="launch",
        basis=["measured", "assumed"],
    )


def _distinct(shape: ModelShape, tokens: float, law: Routing) -> float:
    return expected_distinct(shape.num_experts, shape.top_k, tokens, law)


def _per_expert(shape: ModelShape, tokens: float, law: Routing) -> float | None:
    distinct = _distinct(shape, tokens, law)
    return tokens * shape.top_k / distinct if distinct else None


def _at_least(time_s: Range, least_s: float) -> Range:
    return Range(low=max(time_s.low, least_s), mid=max(time_s.mid, least_s), high=max(time_s.high, least_s))


def _notes(shape: ModelShape, ceilings: Ceilings, threads: int, *, is_decode: bool) -> list[str]:
    counted = f"{threads} thread{'s' if threads > 1 else ''}"
    notes = [f"rates are of {ceilings.library} with {counted}; other builds have other kernels"]
    if is_decode:
        notes.append(f"attention reads the cache in steps of {CACHE_PADDING} tokens")
    if shape.is_moe:
        notes.append("experts are chosen independently of each other")
    disturbed = [one for one in ceilings.untrusted if one.threads == threads and one.usable]
    if disturbed:
        notes.append(f"{len(disturbed)} of the ceilings used here may be too low: other processes ran meanwhile")
    return notes + shape.assumed
