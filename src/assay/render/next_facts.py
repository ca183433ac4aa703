"""What the report says of what could be tried next: rows of words over `assay.plan.what_next`, nothing judged."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.plan.bottleneck import Parts
from assay.plan.what_next import Idea, Obstacle, Question, ideas, obstacles, questions
from assay.records.state import CampaignState
from assay.render.words import NOTHING, duration_words, effect_words, milliseconds_words, reason_words, verdict_words
from assay.stats.replanning import MOST
from assay.stats.sequential import Decision

Bottlenecks = tuple[Parts, Parts | None]
SHOWN_PARTS = 3
BY_CALCULATION = "By calculation"
"""How the plan's sentence on the step begins (`assay.plan.surroundings`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """An undecided effect, and what it would take to decide it."""

    candidate: str
    measured: str
    takes: str
    runs: str
    time: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObstacleRow:
    """What could not be used, and what would change that."""

    candidate: str
    verdict: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdeaRow:
    """A change of code, with its price."""

    name: str
    title: str
    price: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NextUp:
    """All of it; empty where there is nothing to say."""

    bottleneck: str
    questions: list[QuestionRow]
    how: str
    """How the questions are asked, in the keys of assay.toml; empty where none can be."""
    obstacles: list[ObstacleRow]
    ideas: list[IdeaRow]

    def __bool__(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.bottleneck or self.questions or self.obstacles or self.ideas)


def next_up(state: CampaignState, bottlenecks: Bottlenecks | None) -> NextUp:
    """Everything that is shown of what is left to be tried.

    Args:
        state: the campaign.
        bottlenecks: of the baseline and of the stack, where they can be calculated.
    """
    asked, worth = questions(state), f"{100 * state.spec.objective.min_effect:g}%"
    return NextUp(
        bottleneck=_bottleneck(state, bottlenecks),
        questions=[_question(one, worth) for one in asked],
        how=_how(state, asked),
        obstacles=[_obstacle(one) for one in obstacles(state)],
        ideas=[_idea(one) for one in ideas(state)],
    )


def counted(state: CampaignState) -> str:
    """In one line, how much of it there is: "2 effects are not decided, 1 change was in the way"; empty for nothing."""
    can = sum(one.brackets is not None and not one.excluded for one in questions(state))
    stopped, code = len(obstacles(state)), len(ideas(state))
    told = [
        "1 effect that was not decided can be" if can == 1 else f"{can} effects that were not decided can be",
        "1 change could not be used here" if stopped == 1 else f"{stopped} changes could not be used here",
        "1 needs code" if code == 1 else f"{code} need code",
    ]
    return ", ".join(words for words, number in zip(told, (can, stopped, code), strict=True) if number)


def _bottleneck(state: CampaignState, found: Bottlenecks | None) -> str:
    if found is None:
        planned = [said for said in state.reasoning.surroundings.sentences if said.startswith(BY_CALCULATION)]
        return " ".join([*planned[:1], *_acting(state)]) if planned else ""
    before, after = found
    told = (
        f"{BY_CALCULATION}, a decode step of the baseline ({before.sequences:,} sequences of "
        f"{before.context_tokens:,} tokens) takes {milliseconds_words(before.time_s)} ms: {_shares(before)}."
    )
    if after is not None:
        told += f" With {' + '.join(state.stack)} in force, as it was measured: {_shares(after)}."
    last = after or before
    rest = 1 / last.shares[last.largest] - 1
    return (
        f"{told} The largest part ({last.largest}) is what the next change has to move: whatever leaves it alone gains "
        f"{100 * rest:+.0f}% of decode at the very most, and without it {_free(last)} could be had."
    )


def _acting(state: CampaignState) -> list[str]:
    """What adopted changes were to act on, where the step cannot be calculated again: the model's shape is not here."""
    told = ["This is the baseline's step, as it was planned on."]
    for name in state.stack:
        entry, effect = state.reasoning.entries.get(name), state.verdicts[name].effect
        if entry is not None and entry.ceiling is not None and effect is not None:
            share = f"{100 * entry.ceiling.touched_share:.0f}% of its time"
            told.append(f"{name} acts on {share}, by calculation for {100 * entry.ceiling.gain.high:+.1f}% at most; "
                        f"measured: {effect_words(effect)}.")  # fmt: skip
    return told


def _free(parts: Parts) -> str:
    return f"{100 * parts.ceiling:+,.0f}%" if math.isfinite(parts.ceiling) else "everything"


def _shares(parts: Parts) -> str:
    return ", ".join(f"{name} {100 * share:.0f}%" for name, share in list(parts.shares.items())[:SHOWN_PARTS])


def _question(one: Question, worth: str) -> QuestionRow:
    takes = f"more than {MOST} brackets: it lies too close to {worth} to be told apart at this noise"
    if one.excluded:
        takes = f"nothing to be had: a gain of {worth} is excluded already"
    elif one.brackets is not None and one.finds is not None:
        shows = _finds(one.finds, worth)
        takes = f"{one.brackets} brackets, looked at once; should it be what it looks like, they show {shows}"
    open_runs = one.runs is not None and not one.excluded
    return QuestionRow(
        candidate=one.candidate,
        measured=effect_words(one.effect),
        takes=takes,
        runs=str(one.runs) if open_runs else NOTHING,
        time=duration_words(one.time_s) if open_runs and one.time_s is not None else NOTHING,
    )


def _finds(decision: Decision, worth: str) -> str:
    return {
        "better": "a gain",
        "worse": "a loss",
        "no-effect": f"no effect as large as {worth}",
    }.get(decision, f"no gain of {worth}")


def _how(state: CampaignState, asked: list[Question]) -> str:
    """A finished campaign stands, so another one is asked: in which keys."""
    can = [one for one in asked if one.brackets is not None and not one.excluded]
    if not can or state.headline is None:
        return ""
    brackets = max(one.brackets or 0 for one in can)
    names = ", ".join(f'"{one.candidate}"' for one in can)
    return (
        f"To ask: copy assay.toml into a new folder with policy.only = [{names}], budget.min_brackets = "
        f"budget.max_brackets = {brackets} and statistics.give_up_below = 0, then `assay run` there."
    )


def _obstacle(one: Obstacle) -> ObstacleRow:
    return ObstacleRow(
        candidate=one.verdict.candidate,
        verdict=verdict_words(one.verdict),
        why=reason_words(one.verdict),
        remedy=one.remedy[:1].lower() + one.remedy[1:].removesuffix("."),
    )


def _idea(one: Idea) -> IdeaRow:
    price = " to ".join(f"{100 * bound:+.3g}%" for bound in one.predicted) + ", predicted"
    if one.ceiling is not None:
        gain = one.ceiling.gain
        price = f"{100 * gain.high:+.1f}% at most, {100 * gain.mid:+.1f}% expected"
    return IdeaRow(name=one.id, title=one.title, price=price, reason=one.reason)
