"""The rules, read from data/failures: shapes of messages, and what each means.

A rule has a `pattern` (a regular expression, case ignored, over one line without its prefix) and `has`: words of which
the line must hold one, in lower case. They make a log of a million lines cheap: only lines with such a word are
looked at. `strength` orders what is found:

- `root`: the message states the cause.
- `general`: it states a failure whose cause it leaves open (an assertion, an error code).
- `broad`: likewise, and so wide a shape that any narrower rule on the same line knows better.
- `symptom`: it follows from causes that the log may show elsewhere (a time-out, a lost peer).
- `echo`: it follows from nearly everything, or is a warning; it counts where nothing else does.
- `frame`: the source line of a traceback that was cut before its exception: the cause is inferred.
- `consequence`: it says that something failed and never why; it has a stage and no cause.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast, get_args

from assay.failures.lines import Level, Line, stated
from assay.records.failure import Cause, Implication, Stage

Strength = Literal["root", "general", "broad", "symptom", "echo", "frame", "consequence"]
STRENGTHS: tuple[Strength, ...] = get_args(Strength)
"""The strongest first."""
Told = Cause | Literal["oom"]
OOM: Literal["oom"] = "oom"
"""A rule's cause where the stage decides between the three kinds of exhausted device memory."""
DEFAULT_LEVELS: frozenset[Level] = frozenset({"none", "error"})
OTHER_FILES = frozenset({"causes.toml", "inference.toml", "stages.toml"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A shape of message, and what it means."""

    id: str
    pattern: re.Pattern[str]
    has: tuple[str, ...]
    strength: Strength
    cause: Told
    stage: Stage | None
    """Where such a message can only come from; None: told by the traceback, else by what the log said before."""
    default_stage: Stage | None
    """Where nothing tells."""
    levels: frozenset[Level]
    remedy: str | None
    implies: tuple[Mapping[str, str], ...] | None
    examples: tuple[str, ...]
    cause_at: Mapping[str, str] = field(default_factory=dict)
    """Another cause at some stages."""
    inferred: bool = False
    """The message does not state the cause: it is the likeliest."""
    engines: frozenset[str] = frozenset()
    """The rule counts only where the engine is known to be one of these; empty: always."""
    whole: bool = False
    """Match the line with its prefix (kernel messages, whose prefix is part of the shape)."""


Match = tuple[Rule, dict[str, str]]
"""A rule and what its groups hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a cause means, where no rule says it better."""

    words: str
    stage: Stage
    remedy: str
    implies: tuple[Mapping[str, str], ...] = field(default=())
    stage_at: Mapping[str, Stage] = field(default_factory=dict)
    """The stage instead, where the log had only come so far by its milestones."""
    unplaced: Mapping[str, str] = field(default_factory=dict)
    """Words and remedy instead, where nothing tells the stage."""


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules, with the index from words to those that need them."""

    rules: tuple[Rule, ...]
    by_word: Mapping[str, tuple[int, ...]]

    def best(self, line: Line, words: Sequence[str], engine: str | None) -> Match | None:
        """The strongest rule that the line fits, which holds these words; of equals the first."""
        best: Match | None = None
        body = stated(line.body)
        for index in sorted({index for word in words for index in self.by_word.get(word, ())}):
            rule = self.rules[index]
            if best and STRENGTHS.index(rule.strength) >= STRENGTHS.index(best[0].strength):
                continue
            if line.level not in rule.levels or (rule.engines and engine not in rule.engines):
                continue
            if match := rule.pattern.search(line.text if rule.whole else body):
                best = rule, {name: value for name, value in match.groupdict().items() if value}
        return best


def stronger(one: Match | None, other: Match | None) -> Match | None:
    """The match of the stronger rule; of equals the first."""
    found = [each for each in (one, other) if each]
    return min(found, key=lambda each: STRENGTHS.index(each[0].strength), default=None)


def data(name: str) -> dict[str, Any]:
    """One file of the data."""
    return tomllib.loads((files("assay.data") / "failures" / name).read_text(encoding="utf-8"))


@cache
def load_rules() -> Rules:
    """Every rule; those of one line are tried in the order of the files' names and of their place."""
    names = sorted(entry.name for entry in (files("assay.data") / "failures").iterdir() if entry.name.endswith(".toml"))
    rules = [_rule(each) for name in names if name not in OTHER_FILES for each in data(name)["rules"]]
    by_word: dict[str, list[int]] = {}
    for index, rule in enumerate(rules):
        for word in rule.has:
            by_word.setdefault(word, []).append(index)
    return Rules(rules=tuple(rules), by_word={word: tuple(where) for word, where in by_word.items()})


@cache
def load_meanings() -> dict[Cause, Meaning]:
    """What each cause means."""
    return {
        Cause(name): Meaning(
            words=each["words"],
            stage=each["stage"],
            remedy=each["remedy"],
            implies=tuple(each.get("implies", [])),
            stage_at=each.get("stage_at", {}),
            unplaced=each.get("unplaced", {}),
        )
        for name, each in data("causes.toml").items()
    }


def told(name: str) -> Told:
    """A cause as the data name it."""
    return OOM if name == OOM else Cause(name)


def _rule(each: dict[str, Any]) -> Rule:
    return Rule(
        id=each["id"],
        pattern=re.compile(each["pattern"], re.IGNORECASE),
        has=tuple(each["has"]),
        strength=each.get("strength", "root"),
        cause=told(each.get("cause", "unknown")),
        stage=each.get("stage"),
        default_stage=each.get("default_stage"),
        levels=frozenset(cast("list[Level]", each.get("levels", []))) | DEFAULT_LEVELS,
        remedy=each.get("remedy"),
        implies=tuple(each["implies"]) if "implies" in each else None,
        examples=tuple(each.get("examples", [])),
        cause_at=each.get("cause_at", {}),
        inferred=each.get("inferred", False),
        engines=frozenset(each.get("engines", [])),
        whole=each.get("whole", False),
    )


def filled(template: str, values: Mapping[str, str]) -> str:
    """A sentence with the values of the quoted line; a name that the line left out stays a word, without braces."""

    def value(name: re.Match[str]) -> str:
        return values.get(name["name"], "") or name["name"].replace("_", " ")

    return re.sub(r"\{(?P<name>\w+)\}", value, template)


def implication(template: Mapping[str, str], values: Mapping[str, str]) -> Implication:
    """What follows for other arms, with the values of the quoted line."""
    return Implication.model_validate({key: filled(text, values) for key, text in template.items()})
