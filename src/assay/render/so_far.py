"""What is measured of a hypothesis that has no verdict yet: an effect that is not final, and what it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.plan.composing import promising
from assay.plan.dependencies import num_waiting
from assay.plan.evidence import composition_effect, screen_effect
from assay.plan.series import MAIN, bracket_counts, composition, valid_runs
from assay.records.hypothesis import Hypothesis
from assay.records.state import CampaignState
from assay.records.verdict import Effect
from assay.render.words import effect_words

NOT_FINAL, TO_COMPOSITION = "not final", "goes on to composition"
IN_PROGRESS = "in progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class SoFar:
    """An effect that more runs will change."""

    effect: Effect
    stands: str
    """Where the trial is: "goes on to composition", "2 brackets so far"."""
    runs: list[str]
    """What it rests on."""

    @property
    def words(self) -> str:
        """For example "+4.3% [+1.9, +6.8], not final"."""
        return f"{effect_words(self.effect)}, {NOT_FINAL}"


def so_far(state: CampaignState) -> dict[str, SoFar]:
    """By hypothesis: of those that are on trial and have a measured effect."""
    return dict(_found(state))


def recorded(state: CampaignState) -> dict[str, tuple[Effect | None, str]]:
    """The same without arithmetic, for `assay status` beside a measuring run: recorded effects, how far trials are."""
    told: dict[str, tuple[Effect | None, str]] = {}
    for hypothesis in state.hypotheses:
        name, result = hypothesis.id, state.screened.get(hypothesis.id)
        if name in state.verdicts or hypothesis.status != "planned":
            continue
        composed = bracket_counts(state, composition(name))[name]
        count = composed or bracket_counts(state, MAIN)[name]
        if composed:
            told[name] = (result.effect if result else None), f"in composition, {_count(composed)} so far"
        elif result is not None and result.promising:
            told[name] = result.effect, TO_COMPOSITION
        elif count:
            told[name] = None, f"{_count(count)} so far; `assay report` tells the effect"
    return told


def _found(state: CampaignState) -> Iterator[tuple[str, SoFar]]:
    for hypothesis in state.hypotheses:
        on_trial = hypothesis.id not in state.verdicts and hypothesis.status == "planned"
        if on_trial and (found := _of(state, hypothesis)) is not None:
            yield hypothesis.id, found


def _of(state: CampaignState, hypothesis: Hypothesis) -> SoFar | None:
    """By its composition; before that has an effect, by the screen that chose it."""
    name = hypothesis.id
    composed = composition_effect(state, name, max(1, len(promising(state)) + num_waiting(state)))
    if composed is not None:
        stands = f"in composition, {_brackets(composed)} so far"
        return SoFar(effect=composed, stands=stands, runs=_runs(state, composition(name), name))
    result = state.screened.get(name)
    found = result.effect if result is not None else screen_effect(state, name)
    if found is None:
        return None
    stands = TO_COMPOSITION if result is not None and result.promising else f"{_brackets(found)} so far"
    return SoFar(effect=found, stands=stands, runs=_runs(state, MAIN, name))


def _brackets(effect: Effect) -> str:
    return _count(effect.num_brackets)


def _count(brackets: int) -> str:
    return "1 bracket" if brackets == 1 else f"{brackets} brackets"


def _runs(state: CampaignState, series: str, candidate: str) -> list[str]:
    return [run.intent.run_id for run in valid_runs(state, series) if run.intent.candidate == candidate]
