"""What every mechanism looks at: the step, its operations by part, and the step estimated once more with a change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.records.device import Box
from assay.records.estimate import (
    Host,
    Layout,
    MechanismCeiling,
    MemoryBudget,
    OperatingPoint,
    OpTime,
    Range,
    StepEstimate,
)
from assay.records.model_shape import ModelShape
from assay.roofline import memory
from assay.roofline import step as steps
from assay.roofline.calibration import Calibration
from assay.roofline.ceilings import Ceilings
from assay.roofline.communication import DEFAULT_ALGORITHMS

NOTHING = Range(low=0.0, mid=0.0, high=0.0)
MIB_BYTES = 2.0**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A step and everything it was estimated from."""

    step: StepEstimate
    shape: ModelShape
    box: Box
    layout: Layout
    limits: Ceilings
    cache_bytes_per_element: float
    memory_fraction: float
    reserved_tokens: int
    calibration: Calibration | None

    @property
    def time_s(self) -> float:
        """Expected time of the step."""
        return self.step.time_s.mid

    def ops(self, *names: str) -> list[OpTime]:
        """Operations by part or by name."""
        return [op for op in self.step.ops if op.part in names or op.name in names]

    def collectives(self, kind: str) -> list[OpTime]:
        """Operations that are this collective."""
        return [op for op in self.step.ops if op.collective == kind]

    def again(
        self,
        *,
        shape: ModelShape | None = None,
        layout: Layout | None = None,
        point: OperatingPoint | None = None,
        cache_bytes_per_element: float | None = None,
        algorithms: Iterable[str] = DEFAULT_ALGORITHMS,
        host: Host | None = None,
    ) -> StepEstimate:
        """The step estimated once more with something changed."""
        return steps.estimate(
            shape or self.shape,
            self.box,
            layout or self.layout,
            point or self.step.point,
            routing=self.step.routing,
            cache_bytes_per_element=cache_bytes_per_element or self.cache_bytes_per_element,
            calibration=self.calibration,
            algorithms=algorithms,
            host=host or self.step.host,
        )

    def budget(self, *, layout: Layout | None = None, cache_bytes_per_element: float | None = None) -> MemoryBudget:
        """Where the memory goes, at the fraction that the engine may use."""
        return memory.budget(
            self.shape,
            self.box,
            layout or self.layout,
            memory_fraction=self.memory_fraction,
            cache_bytes_per_element=cache_bytes_per_element or self.cache_bytes_per_element,
        )

    def at_sequences(self, sequences: int) -> OperatingPoint:
        """The same point with another number of sequences."""
        return self.step.point.model_copy(update={"sequences": sequences})


Mechanism = Callable[[Scene], MechanismCeiling]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a mechanism is called, and which operations it changes."""

    id: str
    title: str
    touched: Sequence[OpTime]
    scene: Scene
    host: bool = False
    """It changes the host's part of the step, too."""

    @property
    def touched_s(self) -> float:
        """Expected time of what it changes."""
        return total(self.touched) + (self.scene.step.overhead_s.mid if self.host else 0.0)

    def _record(self, **fields: Any) -> MechanismCeiling:
        share = min(1.0, self.touched_s / self.scene.time_s) if self.scene.time_s else 0.0
        touches = [op.name for op in self.touched] + (["host"] if self.host else [])
        return MechanismCeiling(id=self.id, title=self.title, touches=touches, touched_share=share, **fields)

    def inert(self, reason: str) -> MechanismCeiling:
        """It cannot act here: worth nothing."""
        return self._record(gain=NOTHING, applies=False, reason=reason)

    def saves(self, saved: Range, reason: str) -> MechanismCeiling:
        """It takes so many seconds off what it touches: gain = T / (T - saved) - 1 (Amdahl)."""
        time = self.scene.time_s
        low, mid, high = (min(max(0.0, one), self.touched_s) for one in (saved.low, saved.mid, saved.high))
        gains = [time / max(time - one, 1e-12) - 1 for one in (low, mid, high)]
        return self._record(gain=_ascending(gains), applies=True, reason=reason)

    def loses(self, after: Range, reason: str, *, before_s: float | None = None) -> MechanismCeiling:
        """The step takes so long then: a gain below zero, its high end the least loss.

        Args:
            after: the step's time with it.
            reason: with numbers.
            before_s: the time without it; None: the scene's step.
        """
        before = self.scene.time_s if before_s is None else before_s
        gains = [before / max(before, one) - 1 for one in (after.low, after.mid, after.high)]
        return self._record(gain=_ascending(gains), applies=True, reason=reason)

    def becomes(
        self,
        new: StepEstimate,
        reason: str,
        *,
        tokens: Range | None = None,
        more_s: float = 0.0,
        other_kernels: bool = False,
    ) -> MechanismCeiling:
        """The step becomes another one.

        Kernels are the same before and after, so that the gain is taken with fast kernels, with usual and with slow
        ones, each against its like, and its range is what these three span. As long as the new step is no shorter, no
        gain passes tokens after over tokens before.

        Args:
            new: the other step.
            reason: with numbers.
            tokens: tokens the new step yields; as many as its point says when None.
            more_s: what must be done besides, in usual kernels; the ceiling takes it as free.
            other_kernels: what it touches runs in kernels of another width, which may be faster or slower than their
                like: then the ceiling takes these at their fastest, and the lower end at their slowest.
        """
        old = self.scene.step
        yields = tokens or Range(low=new.point.tokens, mid=new.point.tokens, high=new.point.tokens)
        more = more_s / new.time_s.mid if new.time_s.mid > 0 else 0.0
        if other_kernels:
            changed = _changed(old, new)
            slow = new.time_s.mid + sum(op.time_s.high - op.time_s.mid for op in changed)
            fast = new.time_s.mid - sum(op.time_s.mid - op.time_s.low for op in changed)
            pairs = [(old.time_s.mid, slow), (old.time_s.mid, new.time_s.mid), (old.time_s.mid, fast)]
        else:
            pairs = [(getattr(old.time_s, end), getattr(new.time_s, end)) for end in ("high", "mid", "low")]
        faster = [before / after for before, after in pairs]
        gains = (
            yields.low * min(faster) / (1 + more),
            yields.mid * faster[1] / (1 + more),
            yields.high * max(faster),
        )
        low, mid, high = (gain / old.point.tokens - 1 for gain in gains)
        gain = Range(low=min(low, mid), mid=mid, high=max(mid, high))
        return self._record(gain=gain, applies=True, reason=reason)


def _changed(old: StepEstimate, new: StepEstimate) -> list[OpTime]:
    known = {op.name: op.time_s.mid for op in old.ops}
    return [op for op in new.ops if abs(known.get(op.name, 0.0) - op.time_s.mid) > 1e-3 * op.time_s.mid]


def total(ops: Collection[OpTime]) -> float:
    """Their expected time."""
    return sum(op.time_s.mid for op in ops)


def floors(ops: Collection[OpTime]) -> float:
    """Their floors."""
    return sum(op.floor_s for op in ops)


def fastest(ops: Collection[OpTime]) -> float:
    """The lower end of their expected times."""
    return sum(op.time_s.low for op in ops)


def fixed_s(scene: Scene, ops: Collection[OpTime]) -> float:
    """Starts and ramps of their kernels."""
    each = scene.limits.launch_s.mid + scene.limits.profile.ramp_s.mid
    return sum(op.calls for op in ops if op.collective is None) * each


def _ascending(gains: Sequence[float]) -> Range:
    low, mid, high = sorted(gains)
    return Range(low=low, mid=mid, high=high)


def ms(seconds: float) -> str:
    """`137 ms`, `4.1 ms`, `0.83 ms`."""
    value = seconds * 1e3
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms" if value >= 1 else f"{value:.2f} ms"  # noqa: PLR2004


def size(count: float) -> str:
    """`25.2 MB`, `786 kB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"
