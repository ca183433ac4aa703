"""Layouts and formats ranked for a number of devices and a service level: what is worth measuring first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from assay.errors import UsageError
from assay.records.base import Frozen
from assay.records.device import Box
from assay.records.estimate import Bound, Host, Layout, MemoryBudget, OperatingPoint, Range, Routing
from assay.records.model_shape import ModelShape
from assay.roofline import ceilings, layouts, memory, quick, step, storages, timing
from assay.roofline.calibration import Calibration
from assay.roofline.candidates import AS_STORED, Candidate, Miss, Ranking
from assay.roofline.quick import StepTime
from assay.roofline.serving import MAX_STEP_TOKENS

MAX_CONCURRENCY = 4096
"""Requests in flight per replica that are considered at most."""
MAX_STAGES = 4
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
    host: Host | None = None,
    limit: int = 20,
) -> Ranking:
    """Candidates with the most expected output tokens/s first, and what fits but is too slow, nearest first.

    Steady closed loop of c requests on each replica, as `assay.roofline.serving` has it: every step of decode yields c
    tokens and ends c / output_tokens requests on average, whose successors' prompts are computed as many at once as a
    step takes. Hence tokens/s = c / (decode + c / output_tokens * prompt), TPOT is the denominator without the prompts
    of those that are computed together, and TTFT is these prompts' time and half of a step of decode.
    Pipeline stages wait as `assay.roofline.pipeline` says: decode for the slowest stage, and prompts that come one by
    one fill and drain the pipeline each time.
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
        host: how the engine schedules; None: as engines of today do by default.
        limit: candidates, and misses, returned at most.

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
    found: list[Candidate] = []
    missed: list[Miss] = []
    for name, stored in stored_in(shape, box, formats):
        for layout in considered(stored, budget):
            if layouts.check(stored, box, layout) is not None:
                continue
            room = memory.budget(
                stored,
                box,
                layout,
                memory_fraction=memory_fraction,
                cache_bytes_per_element=cache_bytes_per_element,
                max_step_tokens=MAX_STEP_TOKENS,
            )
            serving = _serving(
                stored, box, layout, input_tokens, output_tokens, cache_bytes_per_element, routing, calibration, host
            )
            fits = room.sequences(input_tokens + output_tokens) if room.fits else 0
            if not fits:
                continue
            best, last = _best(serving, fits, ttft_s, tpot_s)
            if best is not None:
                found.append(_candidate(name, layout, budget // layout.devices, best, room))
            else:
                over = _over(last, ttft_s, tpot_s)
                missed.append(Miss(layout=layout, storage=name, ttft_s=last.ttft_s, tpot_s=last.tpot_s, over=over))
    return Ranking(
        candidates=sorted(found, key=lambda one: -one.output_tokens_per_s.mid)[:limit],
        misses=sorted(missed, key=lambda one: one.over)[:limit],
    )


def stored_in(shape: ModelShape, box: Box, formats: Sequence[str] | None = None) -> Iterator[tuple[str, ModelShape]]:
    """The model as stored, then in other formats that make it smaller; those that the device computes in when None.

    Raises:
        UsageError: an unknown format.
    """
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


def considered(shape: ModelShape, devices: int) -> Iterator[Layout]:
    """Layouts of a replica, possible or not, on every number of devices that divides the given one."""
    for count in range(1, devices + 1):
        if devices % count == 0:
            yield from layouts.every(count, is_moe=shape.is_moe, max_stages=MAX_STAGES)


def _serving(
    shape: ModelShape,
    box: Box,
    layout: Layout,
    input_tokens: int,
    output_tokens: int,
    element_bytes: float,
    routing: Routing | None,
    calibration: Calibration | None,
    host: Host | None,
) -> Serving:
    limits, law = ceilings.of(box.device), routing or Routing()

    def at(point: OperatingPoint) -> StepTime:
        if calibration is None:
            return quick.step_time(
                shape, box, limits, layout, point, routing=law, cache_bytes_per_element=element_bytes, host=host
            )
        full = step.estimate(
            shape, box, layout, point, routing=law, cache_bytes_per_element=element_bytes, calibration=calibration,
            host=host,
        )  # fmt: skip
        return quick.of_estimate(shape, layout, full)

    chunk = min(input_tokens, MAX_STEP_TOKENS)
    chunks = input_tokens / chunk

    @cache
    def batch(together: int) -> StepTime:
        """Prompts (or chunks of one) that are computed at once, so many on each attention rank."""
        before = (input_tokens - chunk) // 2
        sequences = layout.dp * together
        return at(OperatingPoint(phase="prefill", sequences=sequences, context_tokens=before, new_tokens=chunk))

    def serve(running: int) -> _Point:
        context = input_tokens + output_tokens // 2
        decode = at(OperatingPoint(phase="decode", sequences=running, context_tokens=context))
        together = max(1, min(running // layout.dp, MAX_STEP_TOKENS // chunk))
        one = batch(together)
        pace, at_once = one.slowest_share, together * layout.dp
        per_step = running / output_tokens / at_once * chunks
        prompts = one.time_s.scaled(per_step if per_step <= 1 else 1 + (per_step - 1) * pace)
        cycle = timing.add(decode.time_s, prompts)
        return _Point(
            running=running,
            output_tokens_per_s=Range(low=running / cycle.high, mid=running / cycle.mid, high=running / cycle.low),
            ttft_s=timing.add(one.time_s.scaled(1 + (chunks - 1) * pace), decode.time_s.scaled(0.5)),
            tpot_s=timing.add(decode.time_s, prompts.scaled(max(0, running - at_once) / running)),
            bound=decode.bound,
        )

    return serve


def _best(serving: Serving, room: int, ttft_s: float | None, tpot_s: float | None) -> tuple[_Point | None, _Point]:
    """The largest concurrency that keeps the level, by bisection over powers of two and the room itself.

    Returns:
        The largest that keeps it, if any, and the last one looked at: when none does, a single request.
    """
    most = min(room, MAX_CONCURRENCY)
    grid = [*(2**power for power in range(most.bit_length()) if 2**power < most), most]
    best: _Point | None = None
    low, high = (0, len(grid)) if ttft_s or tpot_s else (len(grid) - 1, len(grid))
    while low < high:
        middle = (low + high) // 2
        point = serving(grid[middle])
        if _over(point, ttft_s, tpot_s) <= 1:
            best, low = point, middle + 1
        else:
            high = middle
    return best, point


def _over(point: _Point, ttft_s: float | None, tpot_s: float | None) -> float:
    """The worse of expected times over their bounds; 0 without bounds."""
    times = ((point.ttft_s, ttft_s), (point.tpot_s, tpot_s))
    return max((time.mid / bound_s for time, bound_s in times if bound_s is not None), default=0.0)


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
