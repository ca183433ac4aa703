"""The estimate of a run's operating point, held against the time per output token that was measured there.

TPOT = time of the steps in which a request generates its answer / its tokens. In a steady closed loop of `running`
requests each step ends running / output of them, whose successors' prompts come in. A request meets those of the
others: (running - 1) / output a step. An engine that computes them in steps of decode reads the weights once for both
(`assay.roofline.mixed`); in one that does not, decode stands still meanwhile. Source: own derivation; the same sums as
of published closed loops (`assay.roofline.published`).
"""

from __future__ import annotations

from assay.records.device import Box
from assay.records.estimate import OperatingPoint
from assay.records.held_load import HeldLoad, MeasuredLoad
from assay.roofline import published, published_times, timing
from assay.roofline.published import Work
from assay.roofline.published_times import Estimate, Mixed


def held_load(
    load: MeasuredLoad, running: int, estimate: Estimate, mixed: Mixed | None, box: Box | None, step_tokens: int
) -> HeldLoad:
    """Expected against measured.

    Args:
        load: what was asked and measured.
        running: sequences that run at once.
        estimate: a step at an operating point.
        mixed: a step of decode with prompts in it; None: the engine computes them apart.
        box: what computes; None: processors, whose engines are taken to compute prompts apart.
        step_tokens: tokens of prompts that a step takes at most.
    """
    work = _work(load, running, step_tokens)
    times = published_times.times_of(work, estimate, mixed if box else None)
    whole = published_times.expected_time_s(times, box) if box else published_times.apart_s(times)
    tokens = sum(weight for _, weight in work.decode)
    decode = timing.add(*(step.time_s.scaled(weight) for step, weight in times.decode)).scaled(1 / tokens)
    return HeldLoad(
        load=load,
        running=running,
        step=decode,
        shared_steps=bool(times.riding),
        floor_s=sum(weight * step.floor_s for step, weight in times.decode) / tokens,
        expected_s=whole.scaled(1 / tokens),
    )


def _work(load: MeasuredLoad, running: int, step_tokens: int) -> Work:
    """With what the cache holds of every prompt before it comes: decode and prompts read it."""
    work = published.work_per_token(
        running, load.input_tokens, load.output_tokens, step_tokens=step_tokens, rounds=load.one_length
    )
    return Work(
        decode=[(_longer(point, load.cached_tokens), weight) for point, weight in work.decode],
        prompts=[(_longer(point, load.cached_tokens), weight) for point, weight in work.prompts],
        tokens=work.tokens,
    )


def _longer(point: OperatingPoint, cached_tokens: int) -> OperatingPoint:
    return point.model_copy(update={"context_tokens": point.context_tokens + cached_tokens})
