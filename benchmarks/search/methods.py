"""Ways to search a landscape, each a generator: sent a log value (None: failed), it yields what to launch next.

Beside the setting it yields the one it would recommend if it were stopped before that launch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator

import optuna
from benchmarks.search.landscapes import Landscape
from benchmarks.search.world import HYPOTHESIS, answered, start

from assay.plan.dials import Ground, Method, ground_of, search_of
from assay.plan.steps import MakeRun
from assay.records.base import Flags, FlagValue
from assay.records.dials import Knob

Steps = Generator[tuple[Flags, Flags | None], float | None, Flags | None]
optuna.logging.set_verbosity(optuna.logging.WARNING)


def values_of(knob: Knob, ground: Ground) -> list[FlagValue]:
    return list(next(axis.values for axis in ground.space.axes if axis.knob.name == knob.name))


def grid(landscape: Landscape, ground: Ground, seed: int) -> Steps:
    """Every setting in order, once."""
    del landscape, seed
    return (yield from _listed([ground.space.settings(point) for point in ground.space.points]))


def at_random(landscape: Landscape, ground: Ground, seed: int) -> Steps:
    """Every setting in random order, once."""
    del landscape
    order = [ground.space.settings(point) for point in ground.space.points]
    random.Random(seed).shuffle(order)
    return (yield from _listed(order))


def _listed(order: list[Flags]) -> Steps:
    best: tuple[float, Flags] | None = None
    for settings in order:
        value = yield settings, best and best[1]
        if value is not None and (best is None or value > best[0]):
            best = (value, settings)
    return best and best[1]


def plain_tpe(landscape: Landscape, ground: Ground, seed: int) -> Steps:
    """Optuna as its tutorial shows it: default sampler, failed trials told as failed; conditions between knobs asked
    again until they hold."""
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    allowed = set(ground.space.points)
    while True:
        for _ in range(200):
            trial = study.ask()
            settings: Flags = {knob.name: _suggest(trial, knob, ground) for knob in landscape.dial.knobs}
            point = ground.space.find({knob.flag: settings[knob.name] for knob in landscape.dial.knobs})
            if point in allowed:
                break
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        done = [one for one in study.trials if one.state is optuna.trial.TrialState.COMPLETE]
        value = yield settings, study.best_trial.user_attrs["settings"] if done else None
        trial.set_user_attr("settings", settings)
        if value is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)


def _suggest(trial: optuna.Trial, knob: Knob, ground: Ground) -> FlagValue:
    values = values_of(knob, ground)
    if not knob.is_ordered:
        chosen = trial.suggest_categorical(knob.name, values)
        assert chosen is not None  # it is one of the values
        return chosen
    return values[trial.suggest_int(knob.name, 0, len(values) - 1)]


def one_factor(landscape: Landscape, ground: Ground, seed: int) -> Steps:
    """From the baseline, one knob at a time over all its values, the best kept; round again until nothing changes."""
    rng = random.Random(seed)
    here: Flags = {knob.name: landscape.baseline[knob.flag] for knob in landscape.dial.knobs}
    allowed = [ground.space.settings(point) for point in ground.space.points]
    best = yield here, None
    while True:
        before, order = here, list(landscape.dial.knobs)
        rng.shuffle(order)
        for knob in order:
            for value in values_of(knob, ground):
                tried: Flags = {**here, knob.name: value}
                if value == here[knob.name] or tried not in allowed:
                    continue
                found = yield tried, here
                if found is not None and (best is None or found > best):
                    best, here = found, tried
        if here == before:
            return here


def assay(method: Method, *, guided: bool) -> Callable[[Landscape, Ground, int], Steps]:
    """Ours: the planner itself, its baseline runs counted as launches."""

    def steps(landscape: Landscape, ground: Ground, seed: int) -> Steps:
        del ground
        dial = landscape.dial if guided else landscape.dial.model_copy(update={"estimate": None})
        state = start(landscape, seed, MIN_EFFECT)
        own = ground_of(state, dial)
        while True:
            search = search_of(state, HYPOTHESIS, dial, method=method, ground=own)
            step = search.step()
            if not isinstance(step, MakeRun):
                return search.best
            flags = step.intent.arm.flags
            value = yield {knob.name: flags[knob.flag] for knob in dial.knobs}, search.best
            state = answered(state, step, None if value is None else math.exp(value), landscape.run_s)

    return steps


MIN_EFFECT = 0.02
"""What matters: the same 2% within which the best is said to be found."""
METHODS = {
    "grid, in order": grid,
    "random": at_random,
    "Optuna TPE, plain": plain_tpe,
    "one factor at a time": one_factor,
    "Assay": assay("surface", guided=True),
    "Assay without estimates": assay("surface", guided=False),
    "Assay with Optuna's TPE": assay("tree", guided=True),
}
