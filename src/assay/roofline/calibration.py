"""Estimates corrected by measurements: one factor for each kind of cost (`assay.roofline.fitting` finds them).

time = memory * M + compute * C + communication * X + overhead * O + sequences * S, where M, C and X are the expected
seconds of operations bound by each, O launches and what a step costs the host, S what each sequence of it costs the
host.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.records.base import Frozen
from assay.records.estimate import Bound, OpTime, Range, StepEstimate
from assay.roofline import host as hosts
from assay.roofline import timing

WIDTH_90 = 1.645
"""Standard deviations that hold 90% of a normal error."""


class Calibration(Frozen):
    """Factors on expected times; floors stay as they are, and no time falls below its floor."""

    memory: float = 1.0
    """On operations bound by memory."""
    compute: float = 1.0
    """On operations bound by arithmetic."""
    communication: float = 1.0
    """On collectives."""
    overhead: float = 1.0
    """On launches and the host's part of each step."""
    sequences: float = 1.0
    """On what each sequence of a step costs the host."""
    spread: float = 0.0
    """Standard deviation of the log of a prediction: noise, misfit, and what the factors are uncertain of."""
    points: int = 0
    """Measurements it rests on."""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Expected seconds by what bounds them, before any calibration; several steps add up."""

    memory: float = 0.0
    compute: float = 0.0
    communication: float = 0.0
    overhead: float = 0.0
    sequences: float = 0.0

    @property
    def time_s(self) -> float:
        """Their sum."""
        return self.memory + self.compute + self.communication + self.overhead + self.sequences

    def plus(self, other: Components, times: float = 1.0) -> Components:
        """The sum with another, so many times."""
        return Components(
            memory=self.memory + times * other.memory,
            compute=self.compute + times * other.compute,
            communication=self.communication + times * other.communication,
            overhead=self.overhead + times * other.overhead,
            sequences=self.sequences + times * other.sequences,
        )

    def calibrated_s(self, calibration: Calibration) -> float:
        """Seconds with the factors applied; floors are not looked at."""
        return (
            self.memory * calibration.memory
            + self.compute * calibration.compute
            + self.communication * calibration.communication
            + self.overhead * calibration.overhead
            + self.sequences * calibration.sequences
        )


def components(step: StepEstimate) -> Components:
    """The parts of a step's expected time (the middle of its range)."""
    by_bound = dict.fromkeys(("memory", "compute", "communication", "launch"), 0.0)
    for op in step.ops:
        by_bound[op.bound] += op.time_s.mid
    return Components(
        memory=by_bound["memory"],
        compute=by_bound["compute"],
        communication=by_bound["communication"],
        overhead=by_bound["launch"] + step.overhead_s.mid - step.sequences_s.mid,
        sequences=step.sequences_s.mid,
    )


def apply(step: StepEstimate, calibration: Calibration) -> StepEstimate:
    """The same step with every expected time corrected; floors are untouched, and no time falls below its own."""
    factors: dict[Bound, float] = {
        "memory": calibration.memory,
        "compute": calibration.compute,
        "communication": calibration.communication,
        "launch": calibration.overhead,
    }
    ops = [_scaled(op, factors[op.bound], calibration.spread) for op in step.ops]
    overhead, sequences = _overhead(step, ops, calibration)
    time = timing.add(overhead, *(op.time_s for op in ops))
    tokens = step.point.tokens
    return step.model_copy(
        update={
            "ops": sorted(ops, key=lambda op: -op.time_s.mid),
            "overhead_s": overhead,
            "sequences_s": sequences,
            "time_s": time,
            "tokens_per_s": Range(low=tokens / time.high, mid=tokens / time.mid, high=tokens / time.low),
            "bound": timing.largest_bound(ops, overhead.mid),
        }
    )


def _overhead(step: StepEstimate, ops: list[OpTime], calibration: Calibration) -> tuple[Range, Range]:
    """What the corrected step takes beyond its kernels, and the part that grows with its sequences."""
    sequences = step.sequences_s.scaled(calibration.sequences)
    if step.host is None or step.host_time is None:
        per_step = timing.add(step.overhead_s, step.sequences_s.scaled(-1.0)).scaled(calibration.overhead)
        return _narrowed(timing.add(per_step, sequences), calibration.spread, 0.0), sequences
    time = step.host_time.model_copy(
        update={
            "ahead_s": step.host_time.ahead_s.scaled(calibration.overhead),
            "rest_s": step.host_time.rest_s.scaled(calibration.overhead),
            "launches_s": step.host_time.launches_s.scaled(calibration.overhead),
            "ahead_sequences_s": step.host_time.ahead_sequences_s.scaled(calibration.sequences),
            "rest_sequences_s": step.host_time.rest_sequences_s.scaled(calibration.sequences),
        }
    )
    beyond = hosts.overhead_s(hosts.kernels_s(ops), time, step.host)
    return _narrowed(beyond, calibration.spread, 0.0), sequences


def _scaled(op: OpTime, factor: float, spread: float) -> OpTime:
    return op.model_copy(update={"time_s": _narrowed(op.time_s.scaled(factor), spread, op.floor_s)})


def _narrowed(time: Range, spread: float, floor: float) -> Range:
    """About 90% of a log-normal error of that spread, which measurements have put in place of the kernels' range."""
    width = math.exp(WIDTH_90 * spread) if spread > 0 else None
    low, high = (time.low, time.high) if width is None else (time.mid / width, time.mid * width)
    return Range(low=max(low, floor), mid=max(time.mid, floor), high=max(high, floor))
