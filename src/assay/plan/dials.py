"""Dials: searching the best setting of some knobs, from the record alone.

A search makes runs in a series of its own, the baseline again after every few settings. Each setting is chosen by
what all runs so far say of it (`assay.plan.dial_surface`), beginning from the estimates. The search ends when it is
unlikely that anything much better is left (`assay.plan.dial_end`), and names one setting. That setting was chosen
because it looked best, so its numbers flatter it: it goes through screen and composition on fresh runs, as any flag
does, and only they count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from assay.plan.arms import arm_with, baseline_arm
from assay.plan.dial_runs import History, history, series_of
from assay.plan.dial_space import Levels, Space, arm_flags, predictor, resolve
from assay.plan.evidence import box_noise
from assay.plan.hypotheses import facts_of
from assay.plan.runs import derived_seed, intent
from assay.plan.steps import MakeRun
from assay.plan.verdicts import chance_text, unmeasured
from assay.records.base import Flags
from assay.records.dials import Dial, DialResult
from assay.records.hypothesis import Hypothesis
from assay.records.run import Arm, Purpose
from assay.records.state import CampaignState
from assay.records.verdict import Verdict

if TYPE_CHECKING:
    from assay.plan.dial_search import Belief

POINTS_PER_BASELINE = 6
"""Settings between two runs of the baseline: drift over so few is small beside what is searched for."""
MIN_POINTS = 3
"""Settings that are run before the search may end by itself."""
MISSED = 0.1
"""The chance of having missed what matters at which a search ends: what matters is the smallest effect worth adopting,
or the noise, where that is larger, since runs cannot tell less in reasonable number."""
Method = Literal["surface", "tree"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The search is over."""

    result: DialResult


def next_point(
    state: CampaignState,
    hypothesis: Hypothesis,
    dial: Dial,
    *,
    out_of_budget: bool = False,
    method: Method = "surface",
) -> MakeRun | Settled:
    """The next run of a search, or its end.

    Args:
        state: the campaign as recorded.
        hypothesis: whose setting is searched.
        dial: its knobs.
        out_of_budget: no further run can be paid for.
        method: how the next setting is chosen; "tree" is Optuna's own estimator.

    Raises:
        UsageError: the dial does not fit this target.
    """
    return search_of(state, hypothesis, dial, method=method).step(out_of_budget=out_of_budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What does not change while a dial is searched."""

    facts: dict[str, Any]
    space: Space
    predicted: list[float | None]
    """Log objective of every setting, up to a constant."""


def ground_of(state: CampaignState, dial: Dial) -> Ground:
    """Resolve a dial on a campaign's target: every setting, and what is predicted of it.

    Raises:
        UsageError: the dial does not fit this target.
    """
    facts = facts_of(state.spec, state.machine, state.build, state.model)
    space = resolve(dial, facts, state.spec.target.flags)
    predicted = predictor(dial, facts)
    return Ground(facts=facts, space=space, predicted=[predicted(space.settings(point)) for point in space.points])


def search_of(
    state: CampaignState,
    hypothesis: Hypothesis,
    dial: Dial,
    *,
    method: Method = "surface",
    ground: Ground | None = None,
) -> Search:
    """A search as far as the record tells it; see `next_point`."""
    ground = ground or ground_of(state, dial)
    found = history(state, hypothesis.id, ground.space)
    return Search(state=state, hypothesis=hypothesis, dial=dial, method=method, ground=ground, found=found)


def applied(hypothesis: Hypothesis, result: DialResult) -> Hypothesis:
    """The hypothesis with the setting that was found, to be tested as any other.

    Raises:
        ValueError: the search named none.
    """
    if result.flags is None:
        raise ValueError(f"{hypothesis.id}: the search named no setting")
    optimization = hypothesis.optimization.model_copy(update={"flags": result.flags})
    return hypothesis.model_copy(update={"optimization": optimization})


def nothing_found(hypothesis: Hypothesis, result: DialResult) -> Verdict:
    """The verdict where the search named no setting."""
    return unmeasured(hypothesis, result.reason, "dial", result.runs)


@dataclass(frozen=True, kw_only=True)
class Search:
    """One search as far as it got."""

    state: CampaignState
    hypothesis: Hypothesis
    dial: Dial
    method: Method
    ground: Ground
    found: History

    def step(self, *, out_of_budget: bool = False) -> MakeRun | Settled:
        """The next run, or the end."""
        since = self.found.since_baseline()
        if out_of_budget:
            return self._end("the budget ended")
        if self.found.num_launches >= self.dial.max_launches:
            return self._end(f"all {self.dial.max_launches} runs are made")
        if since is None or since >= POINTS_PER_BASELINE:
            return self._run(None, "the baseline, which the settings are held against")
        return self._choose()

    @property
    def best(self) -> Flags | None:
        """The setting, by knob name, that would be named if the search ended now; None where none has run."""
        point = self.belief.best if self.found.has_baseline else None
        return None if point is None else self.ground.space.settings(point)

    @cached_property
    def belief(self) -> Belief:
        """What the runs so far say; the baseline's must be among them."""
        from assay.plan.dial_search import believe_in  # noqa: PLC0415 - loads Optuna: only a search is to pay for it

        return believe_in(
            self.ground.space,
            self.found,
            self._noise,
            self.ground.predicted,
            matters=self._matters,
            seed=derived_seed(
                self.state.spec.workload.seed, "dial", self.hypothesis.id, self.method, self.found.num_launches
            ),
            tree=self.method == "tree",
        )

    @property
    def _matters(self) -> float:
        """The gain that must not be missed, in log units."""
        return max(math.log1p(self.state.spec.objective.min_effect), self._noise or 0.0)

    @cached_property
    def _noise(self) -> float | None:
        noise = box_noise(self.state)
        return math.sqrt(noise.variance) if noise else None

    def _choose(self) -> MakeRun | Settled:
        """Run the most promising setting, or end."""
        distinct = len({trial.point for trial in self.found.valid if trial.point is not None})
        if self.belief.next_point is None:
            return self._end("every setting failed or must fail")
        promise = f"expected to gain {100 * math.expm1(self.belief.improvement):.1f}%"
        if distinct >= min(MIN_POINTS, len(self.ground.space.points)) and self.belief.chance_left < MISSED:
            left = f"the chance that any other gains {100 * math.expm1(self._matters):.1f}% over the best"
            return self._end(f"{left} is {chance_text(self.belief.chance_left)}")
        return self._run(self.belief.next_point, f"{promise} over the best so far")

    def _run(self, point: Levels | None, why: str) -> MakeRun:
        """A run of one setting; None: of the baseline."""
        arm = baseline_arm(self.state.spec.target) if point is None else self._arm(point)
        number = self.found.num_launches + 1
        return MakeRun(
            intent=intent(
                self.state,
                purpose=Purpose.SEARCH,
                series=series_of(self.hypothesis.id),
                candidate=None if point is None else arm.label,
                arm=arm,
                why=f"searching {self.hypothesis.id}, run {number} of at most {self.dial.max_launches}: {why}",
            )
        )

    def _arm(self, point: Levels) -> Arm:
        settings = self.ground.space.settings(point)
        optimization = self.hypothesis.optimization.model_copy(update={"flags": self._flags(point)})
        hypothesis = self.hypothesis.model_copy(update={"optimization": optimization})
        words = ", ".join(f"{name} {value}" for name, value in settings.items())
        arm = arm_with(self.state.spec.target, [hypothesis])
        return arm.model_copy(update={"label": f"{self.hypothesis.id} ({words})"})

    def _flags(self, point: Levels) -> Flags:
        return arm_flags(self.dial, self.ground.space.settings(point), self.ground.facts)

    def _end(self, why: str) -> Settled:
        belief = self.belief if self.found.has_baseline else None
        best, gain = (None, None) if belief is None else (belief.best, belief.gain)
        flags = None if best is None else self._flags(best)
        told = self._objection(flags, gain)
        named = best if told is None else None
        points = {trial.point for trial in self.found.valid if trial.point is not None}
        count = f"{self.found.num_launches} run(s), {len(points)} of {len(self.ground.space.points)} settings"
        return Settled(
            result=DialResult(
                candidate=self.hypothesis.id,
                settings=None if named is None else self.ground.space.settings(named),
                flags=flags if told is None else None,
                expected=None if gain is None else (math.expm1(gain[0]), math.expm1(gain[1])),
                reason=f"{count}: {why}; {told or 'the best setting goes on to be tested on fresh runs'}",
                runs=[trial.run_id for trial in self.found.trials if trial.is_own],
            )
        )

    def _objection(self, flags: Flags | None, gain: tuple[float, float] | None) -> str | None:
        """Why the best setting is not worth a test; None when it is."""
        if flags is None or gain is None:
            return "no setting ran"
        baseline, worth = self.state.spec.target.flags, self.state.spec.objective.min_effect
        if all(str(baseline.get(name)) == str(value) for name, value in flags.items()):
            return "the baseline's own setting is the best of them"
        if gain[1] < math.log1p(worth):
            return f"the best setting hardly gains {100 * worth:g}%"
        return None
