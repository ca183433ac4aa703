"""What the lab on the GPU found: experts side by side, prices of what nobody has built, tuned tiles.

>>> price = Price(id="l2-persistence", title="L2 pinning", saved_s=Range(low=0.0, mid=1e-5, high=2e-5), step_s=0.01)
>>> round(price.gain.high, 5)
0.002
"""

from __future__ import annotations

from pydantic import Field

from assay.records.base import Frozen
from assay.records.estimate import Range


class LabPoint(Frozen):
    """One implementation at one number of tokens on one rank's experts."""

    layout: str
    tokens: int = Field(ge=1)
    implementation: str
    distinct: float
    """Experts of the rank that were chosen, mean over the routings drawn."""
    pairs: float
    floor_s: float
    """Weights of these experts and activations over the read bandwidth, or operations over the matmul rate."""
    bound: str
    time_s: float | None = None
    """Median, cold cache, inside a graph; None with the reason in `problem`."""
    low_s: float | None = None
    """Lower quartile."""
    high_s: float | None = None
    error: float | None = None
    """Relative, against float64."""
    correct: bool = False
    problem: str | None = None

    @property
    def share_of_floor(self) -> float | None:
        """Floor over time: above 1 means that the ceiling used is too low."""
        return None if self.time_s is None or not self.correct else self.floor_s / self.time_s


class LayoutVerdict(Frozen):
    """Which layout a layer's experts are faster in, at one number of tokens."""

    tokens: int
    times_s: dict[str, float]
    """By layout: the fastest right implementation, times what the busiest rank has more, plus communication."""
    communication_s: dict[str, float]
    """Of it: estimated by the roofline."""
    busiest: dict[str, float]
    """Of it: work of the busiest rank over the average one's."""
    winner: str | None
    """None where the fastest two differ by less than 3%."""
    sentence: str


class LabReport(Frozen):
    """The whole lab."""

    model: str
    device: str
    software: dict[str, str] = Field(default_factory=dict)
    date: str = ""
    shapes: dict[str, str]
    """By layout, in words."""
    ceilings: dict[str, str]
    """Read bandwidth and matmul rate that the floors rest on, with their source."""
    points: list[LabPoint] = Field(default_factory=list)
    floors: list[LabPoint] = Field(default_factory=list)
    """Without a GPU: what any implementation takes at least."""
    verdicts: list[LayoutVerdict] = Field(default_factory=list)
    tiles: list[TileFit] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)
    """What could not be measured, and why."""
    assumed: str = ""
    """That the device is none that is here or was named, where that is so."""
    notes: list[str] = Field(default_factory=list)
    """What to know of the floors."""


class TileFit(Frozen):
    """Whether a tile can be had on each of some chips."""

    tile: str
    flops_per_byte: float
    smem_bytes: float
    problems: dict[str, str | None]
    """By chip: why not; None where it fits."""


class Price(Frozen):
    """What a change would save in a step, by a stand-in that was measured."""

    id: str
    """The catalogue entry, or the mechanism's name."""
    title: str
    saved_s: Range | None = None
    """Of one step; below zero where it would cost. None with the reason in `problem`."""
    step_s: float = Field(gt=0)
    """The step that it is set against."""
    tokens: int | None = None
    stand_in: str = ""
    """What was measured in its place."""
    problem: str | None = None

    @property
    def gain(self) -> Range:
        """Relative gain in tokens/s: step / (step - saved) - 1."""
        saved = self.saved_s or Range(low=0.0, mid=0.0, high=0.0)
        low, mid, high = (
            self.step_s / max(self.step_s - min(one, 0.95 * self.step_s), 1e-12) - 1
            for one in (saved.low, saved.mid, saved.high)
        )
        return Range(low=low, mid=mid, high=high)


class PriceReport(Frozen):
    """What several changes would save, before anybody builds them."""

    model: str
    layout: str
    device: str
    date: str = ""
    step: str
    """What the step is: estimated by the roofline, or measured."""
    prices: list[Price]
    missing: list[str] = Field(default_factory=list)


class TunedPoint(Frozen):
    """The best tiles for one number of tokens."""

    tokens: int
    config: dict[str, int]
    time_s: float
    default_s: float | None
    """With the engine's own choice; measured in turn with `time_s` where there was time."""
    measured: int
    pruned: int


class TuneReport(Frozen):
    """What a tuning found and wrote."""

    model: str
    layout: str
    engine: str
    version: str
    device: str
    shape: str
    mode: str
    took_s: float
    points: list[TunedPoint]
    file: str | None = None
    """Path that was written."""
    variable: str = ""
    """Environment variable and value with which the engine finds it."""
    notes: list[str] = Field(default_factory=list)


LabReport.model_rebuild()
