"""Why a flag, or a value of one, is not there: mistyped, renamed, removed, not there yet, another engine's."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from assay.flags import versions
from assay.flags.dialect import dialects
from assay.flags.history import Span, history
from assay.flags.knowledge import Knowledge, Resolved
from assay.flags.options import CHECKED, option_of
from assay.flags.spec import FlagSpec
from assay.flags.successors import equivalents, note_on, renamed, source_of, successor_of
from assay.flags.values import misuse
from assay.records.doctor import Evidence, Finding, GivenFlag, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Other versions that take a value."""

    told: str
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class _Why:
    kind: Kind
    what: str
    evidence: Evidence
    remedy: str
    replacement: str | None = None
    is_of_another_version: bool = False
    """A checked version next to this one has it: one that was not read may have it too."""


def missing(flag: GivenFlag, found: Resolved, knowledge: Knowledge) -> Finding:
    """The finding about a flag that this version does not take."""
    why = _by_history(flag, knowledge) or _ambiguous(found, knowledge) or _unknown(flag, knowledge)
    unread = why.is_of_another_version and not knowledge.from_help and not _was_read(knowledge)
    return Finding(
        kind=why.kind,
        severity="warning" if unread else "error",
        flags=[flag.name],
        what=f"{why.what}; {knowledge.version} itself was not read" if unread else why.what,
        evidence=[knowledge.evidence(), *([why.evidence] if why.evidence != knowledge.evidence() else [])],
        remedy=why.remedy,
        replacement=why.replacement,
    )


def dead_evidence(spec: FlagSpec, knowledge: Knowledge) -> Evidence:
    """Over which checked versions nothing reads the flag."""
    spans = [span for span in knowledge.past.of(spec.name) if span.spec.dead]
    first, last = (spans[0].first, spans[-1].last) if spans else (knowledge.version, knowledge.version)
    through = first if first == last else f"{first} to {last}"
    engine = knowledge.dialect.engine
    return Evidence(
        source=f"source of the {engine} wheels {through}: no reader outside argument handling", basis="source"
    )


def other_versions_take(spec: FlagSpec, values: list[str], knowledge: Knowledge) -> Elsewhere | None:
    """Which versions take this value, when this one does not."""
    lives = [span for span in knowledge.past.of(spec.name) if span.spec.choices]
    spans = [span for span in lives if not misuse(span.spec, values, knowledge.dialect.engine)]
    if not spec.choices:
        return None
    stand = versions.key(knowledge.version)
    later = [span for span in spans if versions.key(span.first) > stand]
    earlier = [span for span in spans if versions.key(span.last) < stand]
    if later:
        told = f"; {later[0].first} is the first checked version that takes it"
    elif earlier:
        told = f"; {earlier[-1].last} was the last checked version that took it"
    else:
        return None
    return Elsewhere(told=told, evidence=Evidence(source=_declared_in(knowledge, later or earlier), basis="history"))


def _declared_in(knowledge: Knowledge, spans: list[Span]) -> str:
    first, last = spans[0].first, spans[-1].last
    through = first if first == last else f"{first}..{last}"
    return f"{knowledge.past.engine} wheels {through}: argument declarations"


def nearest_choice(spec: FlagSpec, values: list[str]) -> str | None:
    """The choice that was probably meant."""
    near = difflib.get_close_matches(values[0], spec.choices, n=1, cutoff=0.6) if values else []
    return near[0] if near else None


def _was_read(knowledge: Knowledge) -> bool:
    """Whether the version, or one of its release, is among those that were read."""
    here = versions.release(knowledge.version)
    return any(versions.release(each) == here for each in knowledge.past.checked)


def _ambiguous(found: Resolved, knowledge: Knowledge) -> _Why | None:
    if not found.candidates:
        return None
    return _Why(
        kind="ambiguous",
        what=f"is the beginning of several flags: {', '.join(found.candidates[:5])}",
        evidence=knowledge.evidence(),
        remedy="write the whole name",
    )


def _by_history(flag: GivenFlag, knowledge: Knowledge) -> _Why | None:
    whole, key = _whole(flag.name, knowledge)
    why = _of_whole(whole, knowledge)
    if why is None or not key:
        return why
    # What another flag takes by keys may differ: the flag is told, and nothing is written in place of it.
    return replace(why, what=f"is a part of {whole}, which {why.what}", replacement=None)


def _whole(name: str, knowledge: Knowledge) -> tuple[str, str]:
    """The flag, and the key in it where one stands behind a dot: `--attention-config.backend`."""
    dashed = name.replace("_", "-") if knowledge.dialect.underscores else name
    if not knowledge.dialect.dotted or "." not in name:
        return dashed, ""
    whole = dashed.partition(".")[0]
    return knowledge.dialect.shorthands.get(whole, whole), name.partition(".")[2]


def _of_whole(name: str, knowledge: Knowledge) -> _Why | None:
    spans = knowledge.past.of(name)
    if not spans and name.startswith("--no-"):
        spans = knowledge.past.of("--" + name[5:])
    before = [span for span in spans if versions.key(span.last) < versions.key(knowledge.version)]
    after = [span for span in spans if versions.key(span.first) > versions.key(knowledge.version)]
    if before:
        return _gone(name, before[-1], knowledge)
    return _not_yet(name, after[0], knowledge) if after else _onlyrenamed(name, knowledge)


def _gone(name: str, last: Span, knowledge: Knowledge) -> _Why:
    successor = successor_of(name, knowledge)
    since = knowledge.past.next_after(last.last)
    lived = f"last in {last.last}" + (f", absent from {since}" if since else "")
    source = f"{knowledge.past.engine} wheels {last.last} and {since or knowledge.version}: argument declarations"
    note = note_on(name, knowledge)
    return _Why(
        kind="renamed" if successor else "removed",
        what=f"{'is now ' + successor if successor else 'was removed'} ({lived}){note}",
        evidence=Evidence(source=source_of(name, knowledge) or source, basis="history"),
        remedy=f"write {successor}" if successor else "leave it out",
        replacement=successor,
        is_of_another_version=_is_back(name, knowledge),
    )


def _is_back(name: str, knowledge: Knowledge) -> bool:
    """Whether the checked version after this one has it: what is gone before and after is gone in between."""
    after = knowledge.past.next_after(knowledge.version)
    return after is not None and any(name in spec.names for spec in knowledge.past.at(after))


def _not_yet(name: str, first: Span, knowledge: Knowledge) -> _Why:
    earlier = [old for old, rows in renamed(knowledge.dialect.engine).items() for row in rows if row["new"] == name]
    earlier += [
        old
        for old, spans in knowledge.past.spans.items()
        if any((span.spec.new or "").partition("=")[0].split(" ")[0] == name for span in spans)
    ]
    now = next((old for old in earlier if knowledge.find(old)), None)
    return _Why(
        kind="not-yet",
        what=f"does not exist yet: {first.first} is the first checked version that has it",
        evidence=Evidence(
            source=f"{knowledge.past.engine} {first.first} wheel: argument declarations", basis="history"
        ),
        remedy=f"write {now} in this version" if now else f"upgrade to {first.first}, or leave it out",
        replacement=now,
        is_of_another_version=True,
    )


def _onlyrenamed(name: str, knowledge: Knowledge) -> _Why | None:
    """A name from before the oldest checked version, that our table knows."""
    if name not in renamed(knowledge.dialect.engine):
        return None
    successor = successor_of(name, knowledge)
    return _Why(
        kind="renamed" if successor else "removed",
        what=f"is now {successor}" if successor else "was removed",
        evidence=Evidence(source=source_of(name, knowledge) or "renames.toml", basis="history"),
        remedy=f"write {successor}" if successor else "leave it out",
        replacement=successor,
    )


def _unknown(flag: GivenFlag, knowledge: Knowledge) -> _Why:
    foreign = _option(flag, knowledge) or _foreign(flag.name, knowledge)
    if foreign is not None:
        return foreign
    near = knowledge.near(flag.name)
    dashed = flag.name.replace("_", "-")
    if dashed in near[:1] and not knowledge.dialect.underscores:
        what = f"is not known: {knowledge.dialect.title} writes it with dashes, {dashed}"
    else:
        what = f"is not known{'; nearest: ' + ', '.join(near) if near else ''}"
    return _Why(
        kind="unknown",
        what=what,
        evidence=knowledge.evidence(),
        remedy=f"write {near[0]} if that was meant" if near else "remove it, or check the spelling",
        replacement=near[0] if near else None,
    )


def _option(flag: GivenFlag, knowledge: Knowledge) -> _Why | None:
    """An option of the engine's file that was written as a flag."""
    path = option_of(knowledge.dialect.engine, flag.name, knowledge.version)
    if path is None:
        return None
    of_file = next((name for name in knowledge.dialect.config if knowledge.find(name)), knowledge.dialect.config[0])
    return _Why(
        kind="unknown",
        what=f"is no flag: it is the option {path} of the file that {of_file} names",
        evidence=Evidence(source=f"options of {knowledge.dialect.title} {CHECKED[-1]}, as recorded", basis="history"),
        remedy=f"write it there, as {_as_yaml(path, flag.values)}",
        replacement=path,
    )


def _as_yaml(path: str, values: list[str]) -> str:
    """One line of YAML: `kv_cache_config: {dtype: fp8}`."""
    section, _, name = path.rpartition(".")
    value = " ".join(values) or "true"
    return f"`{section}: {{{name}: {value}}}`" if section else f"`{name}: {value}`"


def _foreign(name: str, knowledge: Knowledge) -> _Why | None:
    """Another engine's flag, with this engine's word for the same thing."""
    for group in equivalents():
        others = [engine for engine, words in group.items() if name in words and engine != knowledge.dialect.engine]
        ours = [word for word in group.get(knowledge.dialect.engine, []) if knowledge.find(word)]
        if others and ours:
            return _Why(
                kind="unknown",
                what=f"is a flag of {dialects()[others[0]].title}; {knowledge.dialect.title} calls it {ours[0]}",
                evidence=Evidence(
                    source=f"{others[0]} {history(others[0]).newest}: argument declarations", basis="history"
                ),
                remedy=f"write {ours[0]}",
                replacement=ours[0],
            )
    return None
