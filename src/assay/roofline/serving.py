"""From single steps to a server under a steady closed loop: who runs, who waits, and what prompts cost the others.

Model, in the steady state: `running` requests decode together; each step ends running / output_tokens of them on
average, whose successors' prompts are computed in steps of their own (decode stands still meanwhile). Requests of one
length run in rounds: those whose prompts were computed in one step end in one step, so that as many prompts come
together as a step takes. All others wait for them: it is in their TPOT, as load tests measure it.

- output tokens/s = running / (decode step + prompts per step * time of one prompt, computed among the others)
- TPOT = decode step + prompts per step * time of one prompt * share of the prompts that are computed in other steps
- queue = (asked - running) / requests per second (Little's law)
- TTFT = queue + half a decode step + the prompts that are computed together

What is ignored: arrivals in bursts, preemption, prefix-cache hits, and prompts in the same step as decode, which saves
one reading of the weights for each batch of prompts (`assay.roofline.mixed`). Where lengths vary, prompts come one by
one: an engine that computes them apart reads the weights more often than is counted here. Source: own derivation; the
rounds were seen (docs/predicted_against_published.md, 256 streams of our own).
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.records.device import Box
from assay.records.estimate import MechanismCeiling, MemoryBudget, OperatingPoint, Range, StepEstimate
from assay.records.estimate_report import Load, ServingPoint
from assay.records.model_shape import ModelShape
from assay.roofline import timing, utilization

MAX_STEP_TOKENS = 8192
"""Tokens of prompts that engines compute together at most: the usual chunk of prefill."""
CONCURRENCIES = (1, 8, 64, 256, 2048)
"""Requests in flight that are shown when none are asked for."""
ZERO = Range(low=0.0, mid=0.0, high=0.0)


def load_of_requests(input_tokens: int, output_tokens: int) -> Load:
    """Prompts of some length with answers of some length; a sequence has half of its answer on average."""
    return Load(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        context_tokens=input_tokens + output_tokens // 2,
        reserved_tokens=input_tokens + output_tokens,
    )


def load_at_context(context_tokens: int) -> Load:
    """Decode with that many tokens in the cache of every sequence: how published tables of decode are made."""
    return Load(
        input_tokens=None, output_tokens=None, context_tokens=context_tokens, reserved_tokens=context_tokens + 1
    )


def held(memory: MemoryBudget, load: Load, asked: int) -> tuple[int, str]:
    """How many requests run at once, and why not all of them; empty when all do."""
    most = memory.sequences(load.reserved_tokens)
    if asked <= most or not memory.cache_bytes_per_token:
        return asked, ""
    needed = asked * load.reserved_tokens
    words = f"{asked:,} requests of {load.reserved_tokens:,} tokens need {_count(needed)} tokens of cache; "
    return most, words + f"{memory.cache_tokens:,} fit: {most:,} run, the rest wait"


def prompts_point(load: Load, running: int) -> OperatingPoint | None:
    """The prompts that are computed together: as many as a step takes; None when the load has none."""
    tokens = load.input_tokens or load.context_tokens
    if not tokens:
        return None
    together = max(1, min(running, MAX_STEP_TOKENS // tokens)) if load.output_tokens else 1
    return OperatingPoint(phase="prefill", sequences=together, context_tokens=0, new_tokens=tokens)


def serving_point(
    asked: int,
    held_back: str,
    decode: StepEstimate,
    prompts: StepEstimate | None,
    load: Load,
    shape: ModelShape,
    box: Box,
    mechanisms: Sequence[MechanismCeiling],
) -> ServingPoint:
    """Put a step of decode and one of prompts together."""
    running = decode.point.sequences
    step = decode.time_s
    per_step = running / load.output_tokens if load.output_tokens else None
    cycle = share = rate = queue = tpot = None
    if prompts is not None and per_step is not None and load.output_tokens:
        one_by_one = prompts.time_s.scaled(per_step / prompts.point.sequences)
        cycle = timing.add(step, one_by_one)
        tpot = timing.add(step, one_by_one.scaled(max(0, running - prompts.point.sequences) / running))
        share = one_by_one.mid / cycle.mid
        rate = _over(running, cycle)
        queue = _over(1.0, rate.scaled(1 / load.output_tokens)).scaled(asked - running) if asked > running else ZERO
    return ServingPoint(
        asked=asked,
        running=running,
        held_back=held_back,
        decode=decode,
        prompts=prompts,
        prompts_per_step=per_step,
        queue_s=queue,
        ttft_s=None if prompts is None else timing.add(queue or ZERO, prompts.time_s, _wait(step)),
        tpot_s=tpot or step,
        output_tokens_per_s=rate,
        prompt_share=share,
        mbu=utilization.mbu(decode, box, decode.tokens_per_s.mid),
        mbu_at_floor=utilization.mbu_at_floor(decode, box),
        mfu=utilization.mfu(shape, box, decode.tokens_per_s.mid),
        speed_of_light=decode.floor_s / decode.time_s.mid if decode.time_s.mid > 0 else 1.0,
        mechanisms=list(mechanisms),
    )


def _wait(step: Range) -> Range:
    """For the step under way: none of it, half of it, all of it."""
    return Range(low=0.0, mid=step.mid / 2, high=step.high)


def _over(amount: float, time_s: Range) -> Range:
    """A rate: the longest time gives the lowest."""
    return Range(low=amount / time_s.high, mid=amount / time_s.mid, high=amount / time_s.low)


def _count(number: int) -> str:
    """Millions where there are some: "2.6 M", "314,304"."""
    return f"{number / 1e6:.1f} M" if number >= 10**6 else f"{number:,}"
