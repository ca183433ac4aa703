"""A launch command held against one version of its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.flags import existence, rules, variables
from assay.flags.facts import Facts
from assay.flags.knowledge import Knowledge, Resolved
from assay.flags.spec import FlagSpec
from assay.flags.successors import successor_of
from assay.flags.values import as_number, misuse, same
from assay.records.doctor import SEVERITIES, Evidence, Finding, GivenFlag, Launch, Undecided

_QUIET_DEFAULTS = frozenset({"--host", "--port"})
"""Everybody writes them; saying that they are the default helps nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found."""

    findings: list[Finding]
    """Worst first; within one severity in the order of the command line."""
    clean: list[str]
    undecided: list[Undecided]


def check(
    launch: Launch,
    knowledge: Knowledge,
    *,
    model: Mapping[str, Any] | None = None,
    box: Mapping[str, Any] | None = None,
    cache_tokens: int | None = None,
    unread: Mapping[str, Evidence] | None = None,
) -> Checked:
    """Check every flag, the variables, and what they mean together.

    Args:
        launch: the command.
        knowledge: what the engine's version takes.
        model: facts of the model (`assay.flags.facts.MODEL_FACTS`).
        box: facts of the machine (`assay.flags.facts.BOX_FACTS`).
        cache_tokens: that the KV cache holds, by calculation.
        unread: flags, by main spelling, that a scan of the installed source found no reader for.
    """
    findings = [finding for flag in launch.flags for finding in _one(flag, knowledge, unread or {})]
    findings += _repeated(launch, knowledge) + _stray(launch, knowledge) + variables.check(launch, knowledge)
    said, undecided = rules.applied(
        knowledge.dialect.engine, knowledge.version, Facts(launch, knowledge, model, box, cache_tokens)
    )
    findings = _without_echo([*findings, *said])
    order = {flag.name: place for place, flag in reversed(list(enumerate(launch.flags)))}
    findings.sort(key=lambda found: (SEVERITIES.index(found.severity), order.get(found.flags[0], len(order))))
    named = {name for finding in findings for name in finding.flags}
    return Checked(
        findings=findings,
        clean=[flag.name for flag in launch.flags if flag.name not in named],
        undecided=[one for one in undecided if one.flags[0] not in _of_no_value(findings)],
    )


def _of_no_value(findings: list[Finding]) -> set[str]:
    """Flags whose value is told to be none: that nothing can be decided on it says nothing more."""
    return {finding.flags[0] for finding in findings if finding.kind in {"bad-value", "missing-value"}}


def _without_echo(findings: list[Finding]) -> list[Finding]:
    """A flag that does nothing, or is refused, is not told to be the default as well."""
    told = {finding.flags[0] for finding in findings if finding.kind not in {"default", "deprecated"}}
    return [finding for finding in findings if finding.kind != "default" or finding.flags[0] not in told]


def _one(flag: GivenFlag, knowledge: Knowledge, unread: Mapping[str, Evidence]) -> list[Finding]:
    found = knowledge.resolve(flag.name)
    if found.spec is None:
        return [existence.missing(flag, found, knowledge)]
    if other := existence.read_as_another(flag, found, knowledge):
        return [other]
    problem = _value(flag, found, knowledge)
    return [
        *([problem] if problem else []),
        *_inactive(flag, found.spec, knowledge, unread),
        *([] if problem else _default(flag, found, knowledge)),
    ]


def _value(flag: GivenFlag, found: Resolved, knowledge: Knowledge) -> Finding | None:
    spec = found.spec
    if spec is None or (found.key is not None and spec.kind == "json"):
        return None
    values = flag.values if found.key is None or flag.values else [found.key]
    problem = misuse(spec, values, joined=flag.joined)
    if problem is None:
        return None
    other = existence.other_versions_take(spec, values, knowledge)
    missing = problem.startswith("needs")
    near = existence.nearest_choice(spec, values)
    instead = f"{spec.name} {near}" if near else None
    return Finding(
        kind="missing-value" if missing else "bad-value",
        severity="error",
        flags=[flag.name],
        what=f"{problem}{other.told if other else ''}",
        evidence=[knowledge.evidence(), *([other.evidence] if other else [])],
        remedy="write the switch alone" if spec.is_switch else f"write {instead}" if instead else "correct the value",
        replacement=instead,
    )


def _inactive(flag: GivenFlag, spec: FlagSpec, knowledge: Knowledge, unread: Mapping[str, Evidence]) -> list[Finding]:
    """Accepted, and then nothing: deprecated with a successor, or read by no code."""
    successor = successor_of(spec.name, knowledge)
    findings = []
    if spec.name in unread or spec.dead:
        evidence = unread.get(spec.name) or existence.dead_evidence(spec, knowledge)
        findings.append(
            Finding(
                kind="dead",
                severity="warning",
                flags=[flag.name],
                what="is accepted, and no code outside argument handling reads it",
                evidence=[evidence],
                remedy=f"write {successor} instead" if successor else "leave it out: it changes nothing",
                replacement=successor,
            )
        )
    elif spec.deprecated or spec.removed:
        findings.append(
            Finding(
                kind="removed" if spec.removed else "deprecated",
                severity="error" if spec.removed else "note",
                flags=[flag.name],
                what="is gone, and only parsed to say so"
                if spec.removed
                else "is deprecated; the engine still takes it",
                evidence=[knowledge.evidence()],
                remedy=f"write {successor} instead" if successor else "leave it out",
                replacement=successor,
            )
        )
    return findings


def _default(flag: GivenFlag, found: Resolved, knowledge: Knowledge) -> list[Finding]:
    spec = found.spec
    if spec is None or found.key is not None or not spec.default_known or spec.name in _QUIET_DEFAULTS:
        return []
    if spec.is_switch:
        says_default = spec.default is (not found.negated) and (spec.negatable or bool(spec.default))
    else:
        says_default = len(flag.values) == 1 and same(flag.values[0], spec.default)
    if not says_default:
        return []
    value = "" if spec.is_switch else f" {flag.values[0]}"
    return [
        Finding(
            kind="default",
            severity="note",
            flags=[flag.name],
            what=f"says what is the default anyway:{value or (' off' if found.negated else ' on')}",
            evidence=[knowledge.evidence()],
            remedy="leave it out, or keep it to hold the value over an upgrade",
        )
    ]


def _repeated(launch: Launch, knowledge: Knowledge) -> list[Finding]:
    """A flag given twice: the last one counts."""
    by_name: dict[str, list[GivenFlag]] = {}
    for flag in launch.flags:
        found = knowledge.resolve(flag.name)
        if found.spec is not None and found.key is None and not found.spec.many:
            by_name.setdefault(found.spec.name, []).append(flag)
    findings = []
    for flags in by_name.values():
        if len(flags) > 1:
            differ = len({_comparable(flag) for flag in flags}) > 1
            findings.append(
                Finding(
                    kind="repeated",
                    severity="warning" if differ else "note",
                    flags=list(dict.fromkeys(flag.name for flag in flags)),
                    what=f"is given {len(flags)} times; the last one counts: {flags[-1].written}",
                    evidence=[Evidence(source="Python's argparse stores each value over the last", basis="rule")],
                    remedy="keep one",
                )
            )
    return findings


def _comparable(flag: GivenFlag) -> tuple[object, ...]:
    return tuple(value if as_number(value) is None else as_number(value) for value in flag.values) or (
        flag.name.startswith("--no-"),
    )


def _stray(launch: Launch, knowledge: Knowledge) -> list[Finding]:
    """Words that belong to no flag."""
    takes_model = knowledge.dialect.positional_model or launch.program[-1:] == ["serve"]
    return [
        Finding(
            kind="stray-word",
            severity="error",
            flags=[word],
            what="belongs to no flag, and the engine takes no such word",
            evidence=[knowledge.evidence()],
            remedy="remove it, or put it behind the flag that it belongs to",
        )
        for word in launch.positionals[1 if takes_model else 0 :]
    ]
