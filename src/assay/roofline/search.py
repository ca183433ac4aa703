"""Layouts and formats ranked for a number of devices and a service level: what is worth measuring first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from assay.errors import UsageError
from assay.records.base import Frozen
from assay.records.device import Box
from assay.records.estimate import Bound, Layout, MemoryBudget, OperatingPoint, Range, Routing, StepEstimate
from assay.records.model_shape import ModelShape
from assay.roofline import ceilings, layouts, memory, step, storages
from assay.roofline.calibration import Calibration

AS_STORED = "as stored"
MAX_CONCURRENCY = 4096
"""Requests in flight per replica that are considered at most."""
MAX_STAGES = 4
PREFILL_TOKENS = 8192
"""Tokens of a prompt that are computed at once at most."""


class Candidate(Frozen):
    """A way to run the model on the devices, at the concurrency with the most tokens/s that keeps the service level."""

    layout: Layout
    """Of each replica."""
    replicas: int
    devices: int
    """Of all replicas."""
    storage: str
    """`as stored`, or the format that the weights would be converted to."""
    concurrency: int
    """Requests in flight over all replicas."""
    output_tokens_per_s: Range
    """Over all replicas, prompts computed in between."""
    tokens_per_s_per_device: float
    ttft_s: Range
    tpot_s: Range
    """With the prompts that come in between."""
    bound: Bound
    """Of the decode step."""
    memory: MemoryBudget
    """Of each replica."""


Serving = Callable[[int], "_Point"]


class _Point(Frozen):
    """What one replica does at some concurrency."""

    running: int
    output_tokens_per_s: Range
    ttft_s: Range
    tpot_s: Range
    bound: Bound


def rank(
    shape: ModelShape,
    box: Box,
    *,
    input_tokens: int,
    output_tokens: int,
    ttft_s: float | None = None,
    tpot_s: float | None = None,
    devices: int | None = None,
    formats: Sequence[str] | None = None,
    memory_fraction: float = 0.9,
    cache_bytes_per_element: float = 2.0,
    routing: Routing | None = None,
    calibration: Calibration | None = None,
    limit: int = 20,
) -> list[Candidate]:
    """Candidates with the most expected output tokens/s first.

    Steady closed loop of c requests on each replica: every step of decode yields c tokens and ends c / output_tokens
    requests, whose successors' prompts are computed before the next step. Hence tokens/s = c / (decode + c /
    output_tokens * prompt), TPOT is the denominator, and TTFT one prompt plus half of the others' and of a step.
    The middle of the ranges is held against the service level. Of each layout the largest c of a grid of powers of two
    is taken that fits and keeps the level: tokens/s grow with c. Empty when nothing does.

    Args:
        shape: the model as stored.
        box: the devices.
        input_tokens: of a prompt.
        output_tokens: of an answer.
        ttft_s: bound on the time to the first token; None: any.
        tpot_s: bound on the time per output token; None: any.
        devices: how many to use at most; all of the box when None.
        formats: names of `storages.STORAGES` to consider besides the stored one; those that the device computes in
            when None.
        memory_fraction: part of the memory that the engine may use.
        cache_bytes_per_element: 2 for BF16, 1 for FP8.
        routing: how tokens spread over experts.
        calibration: of estimates on this box.
        limit: candidates returned at most.

    Raises:
        UsageError: no tokens, no devices, or an unknown format.
    """
    if input_tokens < 1 or output_tokens < 1:
        raise UsageError(
            f"a request of {input_tokens} tokens in and {output_tokens} out is none", hint="both have to be at least 1"
        )
    budget = box.count if devices is None else min(devices, box.count)
    if budget < 1:
        raise UsageError(f"{devices} devices cannot run a model", hint=f"1 to {box.count}")
    found = []
    for name, stored in _stored(shape, box, formats):
        for layout in _layouts(stored, box, budget):
            room = memory.budget(
                stored,
                box,
                layout,
                memory_fraction=memory_fraction,
                cache_bytes_per_element=cache_bytes_per_element,
                max_step_tokens=PREFILL_TOKENS,
            )
            serving = _serving(
                stored, box, layout, input_tokens, output_tokens, cache_bytes_per_element, routing, calibration
            )
            best = _best(serving, room.sequences(input_tokens + output_tokens), ttft_s, tpot_s) if room.fits else None
            if best is not None:
                found.append(_candidate(name, layout, budget // layout.devices, best, room))
    return sorted(found, key=lambda one: -one.output_tokens_per_s.mid)[:limit]


def _stored(shape: ModelShape, box: Box, formats: Sequence[str] | None) -> Iterator[tuple[str, ModelShape]]:
    yield AS_STORED, shape
    limits = ceilings.of(box.device)
    if formats is None:
        formats = [name for name, one in storages.STORAGES.items() if not limits.lacks(one.compute)]
    for name in formats:
        storage = storages.STORAGES.get(name)
        if storage is None:
            raise UsageError(f"{name!r} is no known format of weights", hint=f"known: {', '.join(storages.STORAGES)}")
        if storages.would_shrink(shape, storage):
            yield name, storages.stored_as(shape, storage)


def _layouts(shape: ModelShape, box: Box, budget: int) -> Iterator[Layout]:
    """Layouts of a replica, on every number of devices that divides the budget."""
    for count in range(1, budget + 1):
        if budget % count:
            continue
        for layout in layouts.every(count, is_moe=shape.is_moe, max_stages=MAX_STAGES):
            if layouts.check(shape, box, layout) is None:
                yield layout


def _serving(
    shape: ModelShape,
    box: Box,
    layout: Layout,
    input_tokens: int,
    output_tokens: int,
    element_bytes: float,
    routing: Routing | None,
    calibration: Calibration | None,
) -> Serving:
    def at(point: OperatingPoint) -> StepEstimate:
        return step.estimate(
            shape,
            box,
            layout,
            point,
            routing=routing,
            cache_bytes_per_element=element_bytes,
            calibration=calibration,
        )

    chunk = min(input_tokens, PREFILL_TOKENS)
    one = at(OperatingPoint(phase="prefill", sequences=1, context_tokens=(input_tokens - chunk) // 2, new_tokens=chunk))
    prompt = one.time_s.scaled(input_tokens / chunk)

    def serve(running: int) -> _Point:
        context = input_tokens + output_tokens // 2
        decode = at(OperatingPoint(phase="decode", sequences=running, context_tokens=context))
        per_step = running / output_tokens
        cycle = [
            getattr(decode.time_s, end) + per_step * getattr(prompt, end) / layout.dp for end in ("low", "mid", "high")
        ]
        first = [
            getattr(prompt, end) * (1 + per_step / 2) + getattr(decode.time_s, end) / 2
            for end in ("low", "mid", "high")
        ]
        return _Point(
            running=running,
            output_tokens_per_s=Range(low=running / cycle[2], mid=running / cycle[1], high=running / cycle[0]),
            ttft_s=Range(low=first[0], mid=first[1], high=first[2]),
            tpot_s=Range(low=cycle[0], mid=cycle[1], high=cycle[2]),
            bound=decode.bound,
        )

    return serve


def _best(serving: Serving, room: int, ttft_s: float | None, tpot_s: float | None) -> _Point | None:
    """The largest concurrency that fits and keeps the level, by bisection over powers of two and the room itself."""
    grid = [2**power for power in range(MAX_CONCURRENCY.bit_length()) if 2**power < min(room, MAX_CONCURRENCY)]
    grid += [min(room, MAX_CONCURRENCY)] if room else []
    best: _Point | None = None
    low, high = 0, len(grid)
    while low < high:
        middle = (low + high) // 2
        point = serving(grid[middle])
        if (ttft_s is None or point.ttft_s.mid <= ttft_s) and (tpot_s is None or point.tpot_s.mid <= tpot_s):
            best, low = point, middle + 1
        else:
            high = middle
    return best


def _candidate(name: str, layout: Layout, replicas: int, point: _Point, room: MemoryBudget) -> Candidate:
    tokens = point.output_tokens_per_s.scaled(replicas)
    return Candidate(
        layout=layout,
        replicas=replicas,
        devices=replicas * layout.devices,
        storage=name,
        concurrency=replicas * point.running,
        output_tokens_per_s=tokens,
        tokens_per_s_per_device=tokens.mid / (replicas * layout.devices),
        ttft_s=point.ttft_s,
        tpot_s=point.tpot_s,
        bound=point.bound,
        memory=room,
    )
