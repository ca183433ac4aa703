"""What the report says of what could be tried next: rows of words over `assay.plan.what_next`, nothing judged."""

from __future__ import annotations

import json
from dataclasses import dataclass

from assay.plan.verdicts import is_unmeasured
from assay.plan.what_next import Idea, Obstacle, Question, asked_alone, ideas, obstacles, questions
from assay.records.state import CampaignState
from assay.render.bottleneck_facts import Bottlenecks, bottleneck
from assay.render.words import NOTHING, duration_words, effect_words, reason_words, verdict_words
from assay.stats.replanning import MOST, POWER
from assay.stats.sequential import Decision


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
    chance: str
    """What the numbers of runs promise; empty where there are none."""
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
        bottleneck=bottleneck(state, bottlenecks),
        questions=[_question(one, worth) for one in asked],
        how=_how(state, asked),
        chance=_chance(asked),
        obstacles=[_obstacle(one) for one in obstacles(state)],
        ideas=[_idea(one) for one in ideas(state)],
    )


def counted(state: CampaignState) -> str:
    """In one line, how much of it there is: "2 effects are not decided, 1 change was in the way"; empty for nothing."""
    can = sum(one.worth_asking for one in questions(state))
    in_the_way, code = obstacles(state), len(ideas(state))
    late = sum(is_unmeasured(one.verdict) for one in in_the_way)
    stopped = len(in_the_way) - late
    told = [
        "1 effect that was not decided can be" if can == 1 else f"{can} effects that were not decided can be",
        "1 was not measured" if late == 1 else f"{late} were not measured",
        "1 change could not be used here" if stopped == 1 else f"{stopped} changes could not be used here",
        "1 needs code" if code == 1 else f"{code} need code",
    ]
    return ", ".join(words for words, number in zip(told, (can, late, stopped, code), strict=True) if number)


def _question(one: Question, worth: str) -> QuestionRow:
    takes = f"more than {MOST} brackets: it lies too close to {worth} to be told apart at this noise"
    if one.shown:
        takes = "no more brackets of this kind: the gain is shown, and its verdict says what is not"
    elif one.excluded:
        takes = f"nothing to be had: a gain of {worth} is excluded already"
    elif one.brackets is not None and one.finds is not None:
        shows = _finds(one.finds, worth)
        takes = f"{one.brackets} brackets, looked at once: they would show {shows}"
    return QuestionRow(
        candidate=one.candidate,
        measured=effect_words(one.effect) + (f" on top of {' + '.join(one.on)}" if one.on else ""),
        takes=takes,
        runs=str(one.runs) if one.worth_asking else NOTHING,
        time=duration_words(one.time_s) if one.worth_asking and one.time_s is not None else NOTHING,
    )


def _finds(decision: Decision, worth: str) -> str:
    return {
        "better": "a gain",
        "worse": "a loss",
        "no-effect": f"no effect as large as {worth}",
    }.get(decision, f"no gain of {worth}")


def _how(state: CampaignState, asked: list[Question]) -> str:
    """A finished campaign stands, so another one is asked: in which keys."""
    dials = {one.id for one in state.hypotheses if one.optimization.dial is not None}
    can = [one for one in asked if one.worth_asking and not one.on and one.candidate not in dials]
    if not can or state.headline is None:
        return ""
    keys = ", ".join(f"`{key} = {json.dumps(value)}`" for key, value in asked_alone(state, can[0]).items())
    beside = "".join(f" and {name}" for name in state.spec.policy.catalogue if not name.startswith("/"))
    return (
        f"To ask {can[0].candidate}: copy assay.toml{beside} into a new folder, set {keys}, then `assay plan` and "
        "`assay run` there: time for a whole campaign, should it find a gain."
        + (" The others likewise, each with its own brackets, and a total_s to match." if len(can) > 1 else "")
    )


def _chance(asked: list[Question]) -> str:
    if not any(one.worth_asking for one in asked):
        return ""
    return (
        f"So many brackets decide with a chance of about {100 * POWER:.0f}%, if the true effect is what it looks like "
        "now. Runs: launches of this trial, the reference's included; what calibrates, tests a gain again and confirms "
        "it comes on top."
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
