"""What the runs so far say: series of valid runs turned into noise and effects, by `assay.stats`."""

from __future__ import annotations

from collections.abc import Sequence

from assay.plan.reading import once
from assay.plan.scores import point_names, scores
from assay.plan.series import (
    A_A,
    CONFIRMATION,
    MAIN,
    STACK,
    ablation_series,
    composition,
    series_brackets,
    valid_runs,
)
from assay.records.spec import Budget, Statistics
from assay.records.state import CampaignState
from assay.records.verdict import Calibration, Effect
from assay.stats.brackets import Noise, pool, residual_noise, successive_noise
from assay.stats.sequential import chance_of_gain, effect, min_detectable_effect
from assay.stats.spending import ONE_LOOK, Looks, nominal_alpha
from assay.units import NS_PER_S

NS_PER_HOUR = 3600 * NS_PER_S


@once
def box_noise(state: CampaignState, *, without: str | None = None, point: str | None = None) -> Noise | None:
    """Run-to-run noise of this box, from everything that says something about it.

    A/A brackets, what all other candidates' means leave over, and the successive differences of the baseline's own
    runs: the last go on through the whole campaign, so a box that turns noisy after its calibration widens every
    interval from then on.

    Args:
        state: the campaign.
        without: a candidate whose own brackets must not lend (they are counted apart).
        point: by one operating point; None: by the objective.
    """
    main = series_brackets(state, MAIN, point)
    return pool(
        residual_noise(main.without(without), known_zero=[A_A]), successive_noise(_reference_scores(state, point))
    )


def _reference_scores(state: CampaignState, point: str | None) -> list[float]:
    """Log scores of the baseline's runs in the main series, in time order."""
    known = scores(state, point)
    own = [known[run.intent.run_id] for run in valid_runs(state, MAIN) if run.intent.candidate is None]
    return [score for score in own if score is not None]


@once
def screen_effect(state: CampaignState, candidate: str) -> Effect | None:
    """A candidate's effect in the screen so far."""
    spec = state.spec
    return effect(
        series_brackets(state, MAIN).of(candidate),
        box_noise(state, without=candidate),
        alpha=spec.statistics.screen_alpha,
        looks=looks_until(spec.budget, spec.budget.max_brackets),
    )


def screen_chance(state: CampaignState, found: Effect) -> float:
    """Chance that the rest of a candidate's screen shows a gain worth having."""
    budget = state.spec.budget
    looks = looks_until(budget, budget.max_brackets)
    min_effect, alpha = state.spec.objective.min_effect, state.spec.statistics.screen_alpha
    return chance_of_gain(found, min_effect, alpha=alpha, looks=looks)


def composition_chance(state: CampaignState, found: Effect, num_sharing: int) -> float:
    """Chance that the rest of its composition does, the error rate shared out over so many."""
    budget = state.spec.budget
    looks = looks_until(budget, budget.composition_brackets)
    alpha = state.spec.statistics.adopt_alpha / num_sharing
    return chance_of_gain(found, state.spec.objective.min_effect, alpha=alpha, looks=looks)


def looks_until(budget: Budget, last: int) -> Looks:
    """The looks at a trial of so many brackets."""
    return Looks(min(budget.min_brackets, last), last)


def composition_effect(state: CampaignState, candidate: str, num_sharing: int) -> Effect | None:
    """A candidate's effect on top of the stack, on runs made for this test alone; the error rate is shared out."""
    spec = state.spec
    return effect(
        series_brackets(state, composition(candidate)).of(candidate),
        box_noise(state),
        alpha=spec.statistics.adopt_alpha / num_sharing,
        looks=looks_until(spec.budget, spec.budget.composition_brackets),
    )


def ablation_effect(state: CampaignState, member: str) -> Effect | None:
    """What taking a member out of the stack does to it."""
    spec = state.spec
    return effect(
        series_brackets(state, ablation_series(member)).of(member),
        box_noise(state),
        alpha=spec.statistics.adopt_alpha,
        looks=looks_until(spec.budget, spec.budget.composition_brackets),
    )


def point_effects(state: CampaignState, series: str, candidate: str) -> dict[str, Effect]:
    """A candidate's effect at each operating point, by the brackets of one series; each interval is that of one look.

    They are told; no gain rests on them. An empty dictionary where there is one point only: its effect is the
    candidate's.
    """
    return _at_points(state, series, candidate, alpha=state.spec.statistics.screen_alpha, looks=ONE_LOOK)


def confirmation_at_points(state: CampaignState) -> dict[str, Effect]:
    """The stack's effect at each operating point, on the confirmation's runs; told like `point_effects`."""
    return _at_points(state, CONFIRMATION, STACK, alpha=state.spec.statistics.confirm_alpha, looks=ONE_LOOK)


def guarded_effects(state: CampaignState, series: str, candidate: str) -> dict[str, Effect]:
    """The same for `max_loss`: each bound is wrong with a chance of `adopt_alpha`, over all looks of the series."""
    budget = state.spec.budget
    looks = looks_until(budget, budget.max_brackets if series == MAIN else budget.composition_brackets)
    return _at_points(state, series, candidate, alpha=guard_alpha(state.spec.statistics), looks=looks)


def guard_alpha(statistics: Statistics) -> float:
    """Two-sided, so that each of a guard's bounds is wrong with a chance of `adopt_alpha`."""
    return 2 * statistics.adopt_alpha


def _at_points(state: CampaignState, series: str, candidate: str, *, alpha: float, looks: Looks) -> dict[str, Effect]:
    names = point_names(state)
    if len(names) == 1:
        return {}
    told = {
        name: effect(
            series_brackets(state, series, name).of(candidate),
            box_noise(state, without=candidate, point=name),
            alpha=alpha,
            looks=looks,
        )
        for name in names
    }
    return {name: found for name, found in told.items() if found is not None}


def confirmation_effect(state: CampaignState) -> Effect | None:
    """The stack against the original baseline, one look."""
    return effect(
        series_brackets(state, CONFIRMATION).of(STACK), box_noise(state), alpha=state.spec.statistics.confirm_alpha
    )


def calibrate(state: CampaignState) -> Calibration | None:
    """This box's noise from the A/A brackets; None while there are too few."""
    found = series_brackets(state, MAIN).of(A_A)
    noise = residual_noise(found, known_zero=[A_A])
    if noise is None:
        return None
    budget = state.spec.budget
    return Calibration(
        bracket_sd=noise.bracket_sd,
        degrees_of_freedom=noise.degrees_of_freedom,
        bias=float(found.effects.mean()),
        min_detectable_effect=min_detectable_effect(
            noise,
            budget.max_brackets,
            alpha=nominal_alpha(
                budget.max_brackets,
                looks_until(budget, budget.max_brackets),
                state.spec.statistics.screen_alpha,
                noise.degrees_of_freedom,
            ),
        ),
        drift_per_hour=_drift_per_hour(state),
    )


def _drift_per_hour(state: CampaignState) -> float | None:
    """Least-squares slope of the baseline's log metric over time; None below four runs."""
    runs = [run for run in valid_runs(state, MAIN) if run.intent.candidate in {None, A_A}]
    told = scores(state)
    known = [(run.intended_at_ns / NS_PER_HOUR, s) for run in runs if (s := told[run.intent.run_id]) is not None]
    if len(known) < 4:  # noqa: PLR2004 - a slope through three noisy points says nothing
        return None
    return _slope(known)


def _slope(points: Sequence[tuple[float, float]]) -> float | None:
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else None
