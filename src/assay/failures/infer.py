"""What an exception means that no rule knows: its class, who raised it, and how it is worded, weighed together.

An expert who never saw a message still names its cause: an assertion in the scheduler is the engine's own, one in a
kernel's file is about shapes, a `ValueError` of the configuration that speaks of a range is a bad value. Each such
observation is an entry of data/failures/inference.toml with votes for causes. Entries that hold are added up; the cause
with most votes is named where it has at least `least` of them and leads by `margin`. Else the evidence is too thin or
contradicts itself, and the cause stays unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from assay.failures.raised import RAISED, RAISING, first_hand
from assay.failures.rules import DEFAULT_LEVELS, Match, Rule, Strength, Told, data, told
from assay.records.failure import Cause, Stage

CONFIGURATION = "configuration"
"""The place of what pydantic tells: its tracebacks end in pydantic."""
MOST_FRAMES_KEPT = 4096
"""Functions of tracebacks whose place is remembered: a log repeats them."""
ELSEWHERE = "elsewhere"
"""The place of a traceback that goes through none of those that are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A part of an engine, or a library, told by a function of the traceback."""

    name: str
    pattern: re.Pattern[str]
    stage: Stage | None
    """Where nothing else tells the stage."""
    cut: Cause | None
    """What a log means that ends in a call there, before the exception."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """An observation, and the causes that it speaks for. Conditions that are not given hold."""

    raises: re.Pattern[str] | None
    at: frozenset[str]
    says: re.Pattern[str] | None
    votes: Mapping[Told, int]
    strength: Strength | None

    def holds(self, kind: str, place: str, why: str) -> bool:
        """Whether class, place and words are as the entry asks."""
        return (
            (self.raises is None or bool(self.raises.match(kind)))
            and (not self.at or place in self.at)
            and (self.says is None or bool(self.says.search(why)))
        )


@dataclass(frozen=True, slots=True)
class Inference:
    """All places and observations."""

    places: tuple[Place, ...]
    evidence: tuple[Evidence, ...]
    least: int
    margin: int
    remedies: Mapping[Told, str]


@cache
def load_inference() -> Inference:
    """What inference.toml holds."""
    content = data("inference.toml")
    return Inference(
        places=tuple(
            Place(
                name=each["name"],
                pattern=re.compile(each["pattern"]),
                stage=each.get("stage"),
                cut=Cause(each["cut"]) if "cut" in each else None,
            )
            for each in content["places"]
        ),
        evidence=tuple(_evidence(each) for each in content["evidence"]),
        least=content["least"],
        margin=content["margin"],
        remedies={told(name): text for name, text in content["remedies"].items()},
    )


def infer(body: str, frames: Sequence[str], asserted: str = "") -> Match | None:
    """The likeliest meaning of a line that tells of an exception, as a rule would say it.

    Args:
        body: the line, without its prefix.
        frames: the functions of its traceback, the innermost last.
        asserted: the source line of an assertion, for one without words.
    """
    found = RAISED.match(first_hand(body))
    if found is None:
        return None
    kind, why = found["kind"] or found["value"], found["why"] or found["words"] or found["what"] or asserted
    return _weighed(kind, why, _place(frames, is_of_pydantic=found["value"] is not None), is_traced=bool(frames))


def infer_raising(source: str, frames: Sequence[str]) -> Match | None:
    """The likeliest meaning of the source line that raises, where the log ends before the exception."""
    found = RAISING.match(source)
    return _weighed(found["kind"], found["why"], _place(frames), is_traced=True) if found else None


def infer_cut(frames: Sequence[str]) -> Match | None:
    """The likeliest meaning of a log that ends in a traceback, by what was called last."""
    place = _place(frames)
    if place is None or place.cut is None:
        return None
    return replace(_rule(place.cut), strength="frame", default_stage=place.stage), {"why": "the log ends in its call"}


def _weighed(kind: str, why: str, place: Place | None, *, is_traced: bool) -> Match | None:
    where = place.name if place else ELSEWHERE if is_traced else ""
    held = [each for each in load_inference().evidence if each.holds(kind, where, why)]
    cause = _elected(held)
    if cause is None:
        return None
    named = [each for each in held if cause in each.votes]
    stated = next((each.strength for each in named if each.strength), None)
    strength = stated or ("broad" if any(each.says for each in named) else "symptom")
    rule = replace(_rule(cause), strength=strength, default_stage=place.stage if place else None)
    return rule, {"why": why.strip() or kind}


def _place(frames: Sequence[str], *, is_of_pydantic: bool = False) -> Place | None:
    """The part of the engine nearest to the raise; functions of libraries that tell nothing are passed over."""
    if is_of_pydantic:
        return next(each for each in load_inference().places if each.name == CONFIGURATION)
    return next((place for frame in reversed(frames) if (place := _place_of(frame))), None)


@lru_cache(maxsize=MOST_FRAMES_KEPT)
def _place_of(frame: str) -> Place | None:
    return next((each for each in load_inference().places if each.pattern.search(frame)), None)


def _elected(held: Sequence[Evidence]) -> Told | None:
    """The cause that leads; where two have as many votes, words decide, which tell more than a class or a place."""
    votes, words = _counted(held), _counted([each for each in held if each.says])
    inference = load_inference()
    ranked = sorted(votes, key=lambda cause: (votes[cause], words[cause]), reverse=True)
    if not ranked or votes[ranked[0]] < inference.least:
        return None
    if len(ranked) == 1 or votes[ranked[0]] - max(0, votes[ranked[1]]) >= inference.margin:
        return ranked[0]
    return ranked[0] if words[ranked[0]] > words[ranked[1]] else None


def _counted(held: Sequence[Evidence]) -> Counter[Told]:
    votes: Counter[Told] = Counter()
    for each in held:
        votes.update(each.votes)
    return votes


@cache
def _rule(cause: Told) -> Rule:
    return Rule(
        id=f"inferred-{cause}",
        pattern=RAISED,
        has=(),
        strength="symptom",
        cause=cause,
        stage=None,
        default_stage=None,
        levels=DEFAULT_LEVELS,
        remedy=load_inference().remedies.get(cause),
        implies=(),  # no arm is skipped on a guess
        examples=(),
        inferred=True,
    )


def _evidence(each: dict[str, Any]) -> Evidence:
    return Evidence(
        raises=re.compile(each["raises"]) if "raises" in each else None,
        at=frozenset(each.get("at", [])),
        says=re.compile(each["says"], re.IGNORECASE) if "says" in each else None,
        votes={told(cause): votes for cause, votes in each["votes"].items()},
        strength=each.get("strength"),
    )
