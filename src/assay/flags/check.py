"""A launch command held against one version of its engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.flags import existence, line_check, rules, variables
from assay.flags.beginnings import abbreviation
from assay.flags.facts import Facts
from assay.flags.json_keys import pairs, unchecked, wrong_objects
from assay.flags.knowledge import Knowledge, Resolved
from assay.flags.object_history import Objects
from assay.flags.option_check import check_options
from assay.flags.spec import FlagSpec
from assay.flags.successors import successor_of
from assay.flags.values import in_force, misuse, same
from assay.records.doctor import SEVERITIES, Evidence, Finding, GivenFlag, Launch, Undecided
from assay.records.sizes import meant

_MAX_REMEDIES = 3
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
    options: Mapping[str, Any] | None = None,
    objects: Objects | None = None,
) -> Checked:
    """Check every flag, the variables, and what they mean together.

    Args:
        launch: the command.
        knowledge: what the engine's version takes.
        model: facts of the model (`assay.flags.facts.MODEL_FACTS`).
        box: facts of the machine (`assay.flags.facts.BOX_FACTS`).
        cache_tokens: that the KV cache holds, by calculation.
        unread: flags, by main spelling, that a scan of the installed source found no reader for.
        options: content of the configuration file that the command names; None: there is none, or it is not here.
        objects: keys that the objects of JSON flags take; None: not known.
    """
    findings = [finding for flag in launch.flags for finding in _one(flag, knowledge, unread or {})]
    findings += (
        line_check.repeated(launch, knowledge)
        + line_check.stray(launch, knowledge)
        + wrong_objects(launch.flags, knowledge, objects)
        + pairs(launch.flags, knowledge)
        + variables.check(launch, knowledge)
    )
    said, undecided = rules.applied(
        knowledge.dialect.engine, knowledge.version, Facts(launch, knowledge, model, box, cache_tokens)
    )
    of_file, unrecorded = _of_file(launch, knowledge, options)
    findings = _each_once(_given_already(one, launch, knowledge) for one in _without_echo([*findings, *said, *of_file]))
    order = {flag.name: place for place, flag in reversed(list(enumerate(launch.flags)))}
    findings.sort(key=lambda found: (SEVERITIES.index(found.severity), order.get(found.flags[0], len(order))))
    named = {name for finding in findings for name in finding.flags}
    open_keys = [
        one for one in unchecked(launch.flags, knowledge, objects) if one.flags[0] not in _of_no_value(findings)
    ]
    in_part = {one.flags[0] for one in open_keys}
    return Checked(
        findings=findings,
        clean=[flag.name for flag in launch.flags if flag.name not in named | in_part],
        undecided=[
            *(one for one in undecided if one.flags[0] not in _of_no_value(findings)),
            *unrecorded,
            *open_keys,
            *line_check.shell_words(launch, knowledge),
        ],
    )


def config_flag(launch: Launch, knowledge: Knowledge) -> GivenFlag | None:
    """The flag that names a file whose entries are recorded; of several the last."""
    of_files = set(knowledge.dialect.config)
    given = [flag for flag in launch.flags if flag.values and (flag.name in of_files)]
    return given[-1] if given else None


def _of_file(
    launch: Launch, knowledge: Knowledge, options: Mapping[str, Any] | None
) -> tuple[list[Finding], list[Undecided]]:
    flag = config_flag(launch, knowledge)
    if options is None or flag is None:
        return [], []
    given = {
        name: one
        for one in launch.flags
        if (spec := knowledge.resolve(one.name).spec) is not None
        for name in spec.names
    }
    return check_options(knowledge.dialect.engine, knowledge.version, options, flag.name, given)


def _given_already(finding: Finding, launch: Launch, knowledge: Knowledge) -> Finding:
    """A flag whose successor stands beside it: there is nothing to write instead."""
    successor = (finding.replacement or "").partition("=")[0].partition(" ")[0]
    wanted = knowledge.find(successor)
    beside = next(
        (one for one in launch.flags if one.name not in finding.flags and knowledge.find(one.name) is wanted), None
    )
    if wanted is None or beside is None or finding.kind not in {"renamed", "deprecated", "dead"}:
        return finding
    return finding.model_copy(update={"remedy": f"leave it out: {beside.written} is there", "replacement": None})


def _of_no_value(findings: list[Finding]) -> set[str]:
    """Flags whose value is told to be none: that nothing can be decided on it says nothing more."""
    return {finding.flags[0] for finding in findings if finding.kind in {"bad-value", "missing-value"}}


def _each_once(findings: Iterable[Finding]) -> list[Finding]:
    """A flag that is wrong in the same way twice is told once."""
    return list({finding.model_dump_json(): finding for finding in findings}.values())


def _without_echo(findings: list[Finding]) -> list[Finding]:
    """A flag that does nothing, or is refused, is not told to be the default as well."""
    told = {finding.flags[0] for finding in findings if finding.kind not in {"default", "deprecated"}}
    return [finding for finding in findings if finding.kind != "default" or finding.flags[0] not in told]


def _one(flag: GivenFlag, knowledge: Knowledge, unread: Mapping[str, Evidence]) -> list[Finding]:
    found = knowledge.resolve(flag.name)
    if found.spec is None:
        return [existence.missing(flag, found, knowledge)]
    short = abbreviation(flag, found, knowledge)
    if short is not None and short.severity == "error":
        return [short]
    problem = _value(flag, found, knowledge)
    return [
        *([short] if short else []),
        *([problem] if problem else []),
        *_inactive(flag, found.spec, knowledge, unread),
        *([] if problem else _default(flag, found, knowledge)),
    ]


def _value(flag: GivenFlag, found: Resolved, knowledge: Knowledge) -> Finding | None:
    spec = found.spec
    if spec is None or (found.key is not None and spec.kind == "json"):
        return None
    values = flag.values if found.key is None or flag.values else [found.key]
    problem = misuse(spec, values, knowledge.dialect.engine, joined=flag.joined)
    if problem is None:
        return None
    other = existence.other_versions_take(spec, values, knowledge)
    missing = problem.startswith("needs")
    near = existence.nearest_choice(spec, values) or _as_size(spec, values, knowledge)
    instead = f"{spec.name} {near}" if near else None
    return Finding(
        kind="missing-value" if missing else "bad-value",
        severity="error",
        flags=[flag.name],
        what=f"{problem}{other.told if other else ''}",
        evidence=[knowledge.evidence(), *([other.evidence] if other else [])],
        remedy=_json_remedy(values) if spec.kind == "json" and values else _remedy(spec, instead, missing=missing),
        replacement=instead,
    )


def _as_size(spec: FlagSpec, values: list[str], knowledge: Knowledge) -> str | None:
    """A size in the engine's own way: `16Ki` for `16K`."""
    return meant(values[0], knowledge.dialect.engine) if spec.kind == "size" and values else None


def _json_remedy(values: list[str]) -> str:
    """What to do about a value that is no JSON: most were JSON until a shell read them."""
    if '"' in values[0] and "'" not in values[0]:
        return "correct the value"
    return """put double quotation marks inside, and the whole in single ones: '{"key": "value"}'"""


def _remedy(spec: FlagSpec, instead: str | None, *, missing: bool) -> str:
    if spec.is_switch:
        return "write the switch alone"
    if missing and spec.choices:
        return f"write {' or '.join(f'{spec.name} {one}' for one in spec.choices[:_MAX_REMEDIES])}"
    return f"write {instead}" if instead else "give it a value" if missing else "correct the value"


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
        meant = str(in_force(spec, flag.values[0], knowledge.dialect.engine)) if len(flag.values) == 1 else None
        says_default = meant is not None and same(meant, spec.default)
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
