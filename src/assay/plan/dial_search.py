"""Which setting to run next: an Optuna study rebuilt from the record, asked for one more trial.

Optuna keeps the space and the trials; the sampler here reads its next setting off `assay.plan.dial_surface`, because
the tree-structured estimator that Optuna brings begins with ten settings drawn at random, and a search of an engine
has about as many runs in all. `benchmarks/search` compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from assay.plan.dial_end import chance_of_better
from assay.plan.dial_kernel import Floats, Places
from assay.plan.dial_memory import chances
from assay.plan.dial_runs import History, log_ratios
from assay.plan.dial_space import Levels, Space
from assay.plan.dial_surface import Seen, Surface, believe

MAX_ASKS = 64
"""Of the tree-structured estimator, which knows nothing of conditions between knobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What the runs so far say."""

    best: Levels | None
    """The setting with the highest expected objective among those that ran, the baseline's own one among them; None:
    none has."""
    gain: tuple[float, float] | None
    """Central 80% interval of its log ratio to the baseline."""
    next_point: Levels | None
    """Worth the next run; None: every setting is out."""
    improvement: float
    """What that run's setting is expected to gain over the best, in log units, settings that fail counted as none."""
    chance_left: float
    """That a setting is better than the best by more than what matters."""


def believe_in(
    space: Space,
    found: History,
    noise: float | None,
    predicted: Sequence[float | None],
    *,
    matters: float,
    seed: int,
    tree: bool,
) -> Belief:
    """Judge the runs so far and choose the next setting.

    Args:
        space: the settings.
        found: the runs, one of the baseline at least.
        noise: run-to-run standard deviation of the log objective; None: unknown.
        predicted: log objective of every setting up to a constant, in the order of `space.points`.
        matters: the gain, in log units, that must not be missed.
        seed: of the tree-structured estimator.
        tree: take the next setting from that estimator.
    """
    surface = _surface(space, found, noise, predicted)
    rows = {point: row for row, point in enumerate(space.points)}
    tried = [space.baseline_point if trial.point is None else trial.point for trial in found.valid]
    may_run = chances(space, found)
    ran = {point: rows[point] for point in tried if point is not None and point in rows and may_run[rows[point]] > 0}
    best = max(ran, key=lambda point: surface.mean[ran[point]], default=None)
    hold = surface.places.baseline if best is None else ran[best]
    gains = surface.improvement(hold)[:-1] * may_run
    worth = gains
    if surface.places.is_guided and all(trial.point is None for trial in found.valid):
        # The first setting is the one that is estimated to be best, however little the estimate leaves to be learned.
        worth = np.maximum(surface.mean - surface.mean[hold], 0.0)[:-1] * may_run
    sampler = (
        optuna.samplers.TPESampler(seed=seed)
        if tree
        else _SurfaceSampler(space, _by_promise(space, tried, worth, may_run, best))
    )
    chosen = _ask(space, found, sampler, may_run)
    return Belief(
        best=best,
        gain=None if best is None else surface.interval(ran[best], surface.places.baseline, 0.8),
        next_point=chosen,
        improvement=0.0 if chosen is None else float(gains[rows[chosen]]),
        chance_left=chance_of_better(surface, hold, may_run, matters),
    )


def _surface(space: Space, found: History, noise: float | None, predicted: Sequence[float | None]) -> Surface:
    rows = {point: row for row, point in enumerate(space.points)}
    places = _places(space, predicted)
    seen = [
        Seen(row=places.baseline if trial.point is None else rows[trial.point], time=trial.place, value=trial.value)
        for trial in found.valid
        if trial.value is not None and (trial.point is None or trial.point in rows)
    ]
    return believe(places, seen, noise)


def _places(space: Space, predicted: Sequence[float | None]) -> Places:
    """Coordinates from 0 to 1; a setting without an estimate takes the mean of the others'."""
    spans = np.array([max(len(axis.values) - 1, 1) for axis in space.axes], dtype=float)
    baseline = space.baseline
    levels = [*space.points, baseline if baseline is not None else [0.0] * len(spans)]
    coordinates = np.array(levels, dtype=float) / spans
    known = [value for value in predicted if value is not None]
    middle = sum(known) / len(known) if known else 0.0
    estimate = np.array([0.0 if value is None else value - middle for value in predicted])
    nearest = int(np.argmin(np.abs(coordinates[:-1] - coordinates[-1]).sum(axis=1)))
    return Places(
        coordinates=coordinates,
        is_ordered=[axis.knob.is_ordered for axis in space.axes],
        estimate=np.append(estimate, estimate[nearest] if baseline is not None else 0.0),
        is_baseline_known=baseline is not None,
    )


def _by_promise(
    space: Space, tried: Sequence[Levels | None], worth: Floats, may_run: Floats, best: Levels | None
) -> Levels | None:
    """The setting that is worth most; the best itself where that was run less often.

    A contender that has been run as often as the best can only be told from it by running both, in turn.
    """
    if not may_run.any():
        return None
    chosen = space.points[int(np.argmax(np.where(may_run > 0, worth, -1.0)))]
    return best if best is not None and tried.count(chosen) > tried.count(best) else chosen


def _ask(space: Space, found: History, sampler: optuna.samplers.BaseSampler, may_run: Floats) -> Levels | None:
    """Replay the record as a study, and ask it for one more trial."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = _distributions(space)
    for trial, ratio in log_ratios(found):
        if trial.point is not None:
            study.add_trial(_trial(space, trial.point, distributions, ratio))
    for one in found.excluded:
        study.add_trial(_trial(space, one.point, distributions, None))
    allowed = {point for point, chance in zip(space.points, may_run, strict=True) if chance > 0}
    if not allowed:
        return None
    for _ in range(MAX_ASKS):
        asked = study.ask(distributions)
        point = tuple(int(asked.params[axis.knob.name]) for axis in space.axes)
        if point in allowed:
            return point
        study.tell(asked, state=optuna.trial.TrialState.FAIL)
    return min(allowed)


def _distributions(space: Space) -> dict[str, BaseDistribution]:
    """A knob's place in its list: neighbours in the list are neighbours, whatever the scale."""
    return {
        axis.knob.name: IntDistribution(0, len(axis.values) - 1)
        if axis.knob.is_ordered
        else CategoricalDistribution(range(len(axis.values)))
        for axis in space.axes
    }


def _trial(
    space: Space, point: Levels, distributions: dict[str, BaseDistribution], value: float | None
) -> optuna.trial.FrozenTrial:
    state = optuna.trial.TrialState.FAIL if value is None else optuna.trial.TrialState.COMPLETE
    params = {axis.knob.name: level for axis, level in zip(space.axes, point, strict=True)}
    return optuna.trial.create_trial(state=state, value=value, params=params, distributions=distributions)


class _SurfaceSampler(optuna.samplers.BaseSampler):
    """Samples the setting that the surface promises most of."""

    def __init__(self, space: Space, point: Levels | None) -> None:
        names = [axis.knob.name for axis in space.axes]
        self._params = {} if point is None else dict(zip(names, point, strict=True))

    def infer_relative_search_space(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Nothing: the knobs' values are given one by one, though chosen together."""
        del study, trial
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Nothing."""
        del study, trial, search_space
        return {}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: optuna.trial.FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """What the setting says of one knob."""
        del study, trial, param_distribution
        return self._params[param_name]
