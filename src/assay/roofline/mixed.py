"""One step that computes prompts beside decode: every matmul once over the tokens of both, attention for each apart.

vLLM's V1 scheduler always fills a step of decode up with prompts, TensorRT-LLM's in-flight batching does, SGLang with
`--enable-mixed-chunk`. Weights are then read once for both, and of experts those that any token chooses; arithmetic,
activations and messages add up. Source: vLLM, docs/configuration/optimization.md, "Chunked Prefill"; Agrawal et al.,
Sarathi-Serve, arXiv 2403.02310, section 4. Its kernels come from a graph or not (`assay.roofline.host.is_captured`).
Ignored: what a scheduler does to keep decode short, and rows that a graph pads to the next size that was captured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assay.records.device import Box
from assay.records.estimate import Host, Layout, OperatingPoint, Routing, StepEstimate
from assay.records.model_shape import ModelShape
from assay.roofline import attention, ceilings, collectives, glue, matmuls, pipeline, step, timing
from assay.roofline import host as hosts
from assay.roofline.communication import DEFAULT_ALGORITHMS
from assay.roofline.work import Share, Work


def estimate(
    shape: ModelShape,
    box: Box,
    layout: Layout,
    decode: OperatingPoint,
    prompts: OperatingPoint,
    *,
    routing: Routing | None = None,
    cache_bytes_per_element: float = 2.0,
    algorithms: Iterable[str] = DEFAULT_ALGORITHMS,
    host: Host | None = None,
) -> StepEstimate:
    """Floors and expected times of a step with both; its rate counts the tokens of decode.

    Args:
        shape: as of `assay.roofline.step.estimate`, and so are the others.
        box: the devices.
        layout: how the model is spread.
        decode: the sequences that get a token.
        prompts: prompts, or chunks of them, in the same step.
        routing: how tokens spread over experts.
        cache_bytes_per_element: 2 for a BF16 cache, 1 for FP8.
        algorithms: communication algorithms in use.
        host: how the engine schedules and launches; None: as engines of today do by default.

    Raises:
        UsageError: the device lacks a fact without which nothing can be said.
    """
    law, limits = routing or Routing(), ceilings.of(box.device)
    pair = step.share_of(layout, decode), step.share_of(layout, prompts)
    both = together(*pair)
    host = host or hosts.UNKNOWN
    works = list(works_of(shape, box, layout, pair, law, cache_bytes_per_element, limits.cache_bytes, host))
    resident = step.resident_share(works, layout, limits)
    ops = timing.merge(
        timing.message(work, box, algorithms) if work.collective else timing.kernel(work, limits, resident)
        for work in works
    )
    waiting = pipeline.wait(shape, layout, decode, ops)
    ops = sorted([*ops, *([waiting] if waiting else [])], key=lambda op: -op.time_s.mid)
    captured = hosts.is_captured(host, both.tokens, with_prompts=True)
    time = hosts.time_of(limits, host, both.sequences, hosts.calls(ops), captured=captured)
    return step.summed(shape, layout, decode, law, ops, host, time, all_tokens=both.all_tokens)


def together(decode: Share, prompts: Share) -> Share:
    """The tokens of both as one batch, as matmuls, norms and messages see it; every sequence gets logits once."""
    sequences = decode.sequences + prompts.sequences
    return Share(
        sequences=sequences,
        new_tokens=(decode.tokens + prompts.tokens) / sequences,
        context_tokens=0.0,
        all_sequences=decode.all_sequences + prompts.all_sequences,
    )


def works_of(
    shape: ModelShape,
    box: Box,
    layout: Layout,
    pair: tuple[Share, Share],
    routing: Routing,
    element_bytes: float,
    cache_bytes: float,
    host: Host,
) -> Iterator[Work]:
    """Everything that the busiest rank of each stage does, all stages after each other."""
    decode, prompts = pair
    both = together(decode, prompts)
    yield from matmuls.outer(shape, layout, both, "prefill", cache_bytes)
    yield from glue.of_step(shape, both, "prefill", host)
    yield from collectives.of_step(shape, layout, both, "prefill")
    for group in shape.layers:
        mixer, matrices = group.attention, group.matrices
        works = [
            *matmuls.of_layer(matrices, mixer, layout, both, cache_bytes),
            *matmuls.routed_experts(shape, matrices, layout, both, routing, cache_bytes),
            *glue.of_layer(shape, matrices, mixer, layout, both, host),
            *collectives.of_layer(shape, box, matrices, mixes=mixer is not None, layout=layout, share=both),
        ]
        if mixer is not None:
            works += attention.core(mixer, matrices, layout, decode, "decode", element_bytes)
            works += attention.core(mixer, matrices, layout, prompts, "prefill", element_bytes)
        yield from (work.times(group.count) for work in works)
