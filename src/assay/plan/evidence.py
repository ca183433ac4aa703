"""What the runs so far say: series of valid runs turned into effects, by `assay.stats`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from assay.plan.scores import point_names, run_score
from assay.records.run import RunStatus
from assay.records.spec import Budget
from assay.records.state import CampaignState, RunRecord
from assay.records.verdict import Calibration, Effect
from assay.stats.brackets import Brackets, Noise, Point, brackets, pool, residual_noise, spans, successive_noise
from assay.stats.sequential import effect, min_detectable_effect
from assay.stats.spending import Looks, nominal_alpha
from assay.units import NS_PER_S

NS_PER_HOUR = 3600 * NS_PER_S

MAIN = "main"
"""The series of calibration and screen: reference arm is the baseline throughout."""
CONFIRMATION = "confirmation"
A_A = "baseline"
"""The candidate name of an A/A run: the baseline measured as if it were a candidate."""
STACK = "stack"
"""The candidate name of the stack in the confirmation."""
MAX_PAUSE_S = 3600.0
"""Longest pause inside a bracket. Drift cancels between neighbours in time; after a night it is another machine."""


def composition(candidate: str) -> str:
    """Name of the series in which a candidate is tested again, on the stack."""
    return f"composition:{candidate}"


def ablation_series(member: str) -> str:
    """Name of the series in which the stack is measured without a member."""
    return f"ablation:{member}"


def why_not_counted(state: CampaignState, run: RunRecord) -> str | None:
    """Why an ended run says nothing about the objective; None when it counts."""
    if run.outcome is None:
        return "it has not ended"
    if run.outcome.status is not RunStatus.OK:
        return run.outcome.reason
    if run_score(state, run) is None:
        return f"it has no {state.spec.objective.metric}: too few samples in the windows"
    return None


def valid_runs(state: CampaignState, series: str) -> list[RunRecord]:
    """The runs of a series that count, in time order.

    A stack that has grown since is another arm: confirmation runs of an earlier stack do not count.
    """
    return [
        run
        for run in state.runs
        if run.intent.series == series
        and why_not_counted(state, run) is None
        and not (run.intent.candidate == STACK and run.intent.arm.deltas != state.stack)
    ]


def series_brackets(state: CampaignState, series: str, point: str | None = None) -> Brackets:
    """Every bracket of a series, those across a long pause left out; by one operating point, or by the objective."""
    points, unbroken = _series(state, series, point)
    return brackets(points).keep(unbroken)


def bracket_counts(state: CampaignState, series: str) -> Counter[str | None]:
    """How many brackets of a series each candidate has; counting alone needs no arithmetic, and none is loaded."""
    points, unbroken = _series(state, series)
    found = spans(points)
    return Counter(points[found[number].at].candidate for number in unbroken)


def _series(state: CampaignState, series: str, point: str | None = None) -> tuple[list[Point], list[int]]:
    """The points of a series, and the numbers of those of its brackets that lie on one machine, with no long pause."""
    scores = [(run, score) for run in valid_runs(state, series) if (score := run_score(state, run, point)) is not None]
    points = [Point(candidate=run.intent.candidate, log_value=score) for run, score in scores]
    pauses = _seqs_after_pause(state)
    order = {run.intent.run_id: i for i, run in enumerate(state.runs)}
    places = [order[run.intent.run_id] for run, _ in scores]
    unbroken = [
        number
        for number, span in enumerate(spans(points))
        if not any(places[span.before] < pause <= places[span.after] for pause in pauses)
        and len({scores[place][0].intent.host for place in (span.before, span.at, span.after)}) == 1
    ]
    return points, unbroken


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
    others = main.keep([i for i, name in enumerate(main.candidates) if name != without])
    return pool(residual_noise(others, known_zero=[A_A]), successive_noise(_reference_scores(state, point)))


def _reference_scores(state: CampaignState, point: str | None) -> list[float]:
    """Log scores of the baseline's runs in the main series, in time order."""
    scores = []
    for run in valid_runs(state, MAIN):
        score = run_score(state, run, point) if run.intent.candidate is None else None
        if score is not None:
            scores.append(score)
    return scores


def screen_effect(state: CampaignState, candidate: str) -> Effect | None:
    """A candidate's effect in the screen so far."""
    spec = state.spec
    return effect(
        series_brackets(state, MAIN).of(candidate),
        box_noise(state, without=candidate),
        alpha=spec.statistics.screen_alpha,
        looks=_looks(spec.budget, spec.budget.max_brackets),
    )


def _looks(budget: Budget, last: int) -> Looks:
    return Looks(min(budget.min_brackets, last), last)


def composition_effect(state: CampaignState, candidate: str, num_promising: int) -> Effect | None:
    """A candidate's effect on top of the stack, on runs made for this test alone."""
    spec = state.spec
    return effect(
        series_brackets(state, composition(candidate)).of(candidate),
        box_noise(state),
        alpha=spec.statistics.adopt_alpha / num_promising,
        looks=_looks(spec.budget, spec.budget.composition_brackets),
    )


def ablation_effect(state: CampaignState, member: str) -> Effect | None:
    """What taking a member out of the stack does to it."""
    spec = state.spec
    return effect(
        series_brackets(state, ablation_series(member)).of(member),
        box_noise(state),
        alpha=spec.statistics.adopt_alpha,
        looks=_looks(spec.budget, spec.budget.composition_brackets),
    )


def point_effects(state: CampaignState, series: str, candidate: str) -> dict[str, Effect]:
    """A candidate's effect at each operating point, by the brackets of one series; one look, no verdict rests on it.

    An empty dictionary where there is one point only: its effect is the candidate's.
    """
    names = point_names(state)
    if len(names) == 1:
        return {}
    found = {}
    for name in names:
        own = series_brackets(state, series, name).of(candidate)
        told = effect(own, box_noise(state, without=candidate, point=name), alpha=state.spec.statistics.screen_alpha)
        if told is not None:
            found[name] = told
    return found


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
                _looks(budget, budget.max_brackets),
                state.spec.statistics.screen_alpha,
                noise.degrees_of_freedom,
            ),
        ),
        drift_per_hour=_drift_per_hour(state),
    )


def _drift_per_hour(state: CampaignState) -> float | None:
    """Least-squares slope of the baseline's log metric over time; None below four runs."""
    runs = [run for run in valid_runs(state, MAIN) if run.intent.candidate in {None, A_A}]
    known = [(run.intended_at_ns / NS_PER_HOUR, s) for run in runs if (s := run_score(state, run)) is not None]
    if len(known) < 4:  # noqa: PLR2004 - a slope through three noisy points says nothing
        return None
    return _slope(known)


def _seqs_after_pause(state: CampaignState) -> list[int]:
    """Places of the runs before which nothing ran for longer than `MAX_PAUSE_S`.

    When an abandoned run really ended is not known (it is closed by the next Assay), so its intent is what counts.
    """
    after = []
    for i, (earlier, later) in enumerate(pairwise(state.runs)):
        abandoned = earlier.outcome is None or earlier.outcome.status is RunStatus.ABANDONED
        end_ns = earlier.intended_at_ns if abandoned else (earlier.ended_at_ns or earlier.intended_at_ns)
        if later.intended_at_ns - end_ns > MAX_PAUSE_S * NS_PER_S:
            after.append(i + 1)
    return after


def _slope(points: Sequence[tuple[float, float]]) -> float | None:
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else None
