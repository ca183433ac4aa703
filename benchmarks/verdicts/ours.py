"""Whole campaigns of Assay's planner on a simulated box."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
from benchmarks.verdicts.box import Box, Drift, Law, shuffled
from numpy.typing import NDArray

from assay.records.run import RunIntent, RunOutcome, RunStatus
from assay.records.spec import Budget, CampaignSpec, Objective, Statistics
from assay.records.state import CampaignState
from assay.records.verdict import Effect
from assay.rehearsal.world import MAX_STEPS, World, drive, hypothesis, measures, stands, start

Stage = Literal["screen", "composition", "confirmation"]
PILOTS = 4
PILOT_SEED = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One row of a table: a box, a question, and what is true of the candidates."""

    study: str
    sd: float
    min_effect: float
    effects: tuple[float, ...]
    """True log ratio of each candidate."""
    law: Law = "normal"
    drift: Drift = "none"
    drift_runs: int | None = None
    """Runs over which it drifts by its total; absent: as many as a campaign of this cell usually takes."""
    block: int | None = None
    """Candidates between two baseline runs; absent: the default."""
    give_up_below: float | None = None
    """Chance of a gain below which a trial ends; absent: the default."""

    @property
    def key(self) -> str:
        """Unique within all studies; results are kept under it."""
        drift = self.drift if self.drift_runs is None else f"{self.drift}/{self.drift_runs}"
        changed = {"block": self.block, "give_up_below": self.give_up_below}
        with_changes = "".join(f" {name}={value:g}" for name, value in changed.items() if value is not None)
        return f"{self.study} sd={self.sd} worth={self.min_effect} {self.law} {drift} {self.effects}{with_changes}"

    def spec(self) -> CampaignSpec:
        """The default campaign but for what the cell changes, with as much time as it wants."""
        budget, statistics = Budget(total_s=1e6), Statistics()
        if self.block is not None:
            budget = budget.model_copy(update={"block": self.block})
        if self.give_up_below is not None:
            statistics = statistics.model_copy(update={"give_up_below": self.give_up_below})
        return CampaignSpec(budget=budget, statistics=statistics, objective=Objective(min_effect=self.min_effect))

    def box(self, seed: int, length: int) -> Box:
        """The box of one campaign of so many runs."""
        return Box(sd=self.sd, law=self.law, drift=self.drift, length=length, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One interval that a campaign recorded, and what is true."""

    stage: Stage
    true: float
    estimate: float
    low: float
    high: float
    confidence: float
    brackets: int

    @property
    def covers(self) -> bool:
        """Whether the truth lies inside."""
        return self.low <= self.true <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One campaign, as far as the tables need it."""

    adopted: list[float]
    """True effects of what it adopted."""
    claimed: float
    """Log ratio of its headline; 0: it claims nothing."""
    confirmed: bool
    runs: int
    kinds: list[tuple[float, str]]
    """True effect and verdict of every candidate."""
    told: list[Told] = field(default_factory=list)

    @property
    def true(self) -> float:
        """What its stack really gains; effects add up."""
        return sum(self.adopted)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxWorld(World):
    """A world whose noise is that of a box."""

    logs: NDArray[np.float64]

    def answer(self, intent: RunIntent, state: CampaignState) -> RunOutcome:
        """Every run succeeds; its place in time decides its noise."""
        gain = sum(self.effects[name] for name in intent.arm.deltas)
        return RunOutcome(
            run_id=intent.run_id,
            status=RunStatus.OK,
            reason="every gate passed",
            measures=measures(100 * math.exp(gain + float(self.logs[len(state.runs)]))),
            duration_s=self.duration_s,
            soak=stands(intent, 0) if intent.soak_s else None,
        )


def play(cell: Cell, seed: int) -> Played:
    """One campaign from calibration to headline."""
    effects = {f"c{place:02d}": effect for place, effect in enumerate(shuffled(cell.effects, seed))}
    journal = start([hypothesis(name, place + 1) for place, name in enumerate(effects)], cell.spec())
    logs = cell.box(seed, cell.drift_runs or usual_runs(cell)).logs(MAX_STEPS)
    drive(journal, BoxWorld(effects=effects, logs=logs, seed=seed))
    state = journal.state
    headline = state.headline
    claimed = headline.effect.log_ratio if headline and headline.effect else 0.0
    return Played(
        adopted=[effects[name] for name in state.stack],
        claimed=claimed,
        confirmed=bool(headline and headline.confirmed),
        runs=len(state.runs),
        kinds=[(effects[name], str(verdict.kind)) for name, verdict in state.verdicts.items()],
        told=list(_told(state, effects)),
    )


@lru_cache(maxsize=256)
def usual_runs(cell: Cell) -> int:
    """Length of a campaign of this cell without drift, by a few pilots."""
    if cell.drift == "none":
        return 1
    still = Cell(study=cell.study, sd=cell.sd, min_effect=cell.min_effect, effects=cell.effects, law=cell.law)
    return round(sum(play(still, PILOT_SEED + number).runs for number in range(PILOTS)) / PILOTS)


def _told(state: CampaignState, effects: dict[str, float]) -> Iterator[Told]:
    for name, result in state.screened.items():
        yield _interval("screen", effects[name], result.effect)
    for name, verdict in state.verdicts.items():
        if verdict.effect is not None:
            stage: Stage = "composition" if name in state.screened else "screen"
            yield _interval(stage, effects[name], verdict.effect)
    if state.headline and state.headline.effect:
        yield _interval("confirmation", sum(effects[name] for name in state.stack), state.headline.effect)


def _interval(stage: Stage, true: float, effect: Effect) -> Told:
    return Told(
        stage=stage,
        true=true,
        estimate=effect.log_ratio,
        low=effect.low,
        high=effect.high,
        confidence=effect.confidence,
        brackets=effect.num_brackets,
    )
