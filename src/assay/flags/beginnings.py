"""Flags of which only the beginning is written: Python's argparse takes it where it fits one flag alone."""

from __future__ import annotations

from assay.flags import versions
from assay.flags.knowledge import Knowledge, Resolved
from assay.flags.spec import FlagSpec
from assay.flags.successors import successor_of
from assay.records.doctor import Evidence, Finding, GivenFlag

_MOST_NAMED = 5


def abbreviation(flag: GivenFlag, found: Resolved, knowledge: Knowledge) -> Finding | None:
    """What a beginning stands for: a flag that is gone is an error, anything else is worth knowing."""
    if found.spec is None or not found.abbreviated:
        return None
    return _read_as_another(flag, found.spec.name, knowledge) or _short(flag, found.spec, knowledge)


def _read_as_another(flag: GivenFlag, taken: str, knowledge: Knowledge) -> Finding | None:
    """A flag that is gone, and whose name happens to be the beginning of another one: argparse takes that one."""
    if not (spans := knowledge.past.of(flag.name)):
        return None
    last = spans[-1].last
    engine = knowledge.past.engine
    return Finding(
        kind="substituted",
        severity="error",
        flags=[flag.name],
        what=f"is gone (last in {last}), and is now read as the beginning of {taken}",
        evidence=[Evidence(source=f"{engine} {last} wheel and later: argument declarations", basis="history")],
        remedy=f"write {taken} if that is meant, else leave it out",
        replacement=successor_of(flag.name, knowledge),
    )


def _short(flag: GivenFlag, spec: FlagSpec, knowledge: Knowledge) -> Finding:
    plain = flag.name.replace("_", "-") if knowledge.dialect.underscores else flag.name
    taken = next(name for name in spec.spellings if name.startswith(plain))
    later = _read_otherwise(plain, spec, knowledge)
    source = f"{knowledge.past.engine} {later[0]} {knowledge.past.medium}: argument declarations" if later else ""
    return Finding(
        kind="ambiguous",
        severity="note",
        flags=[flag.name],
        what=f"is read as {taken}, since nothing else begins so here{f'; {later[1]}' if later else ''}",
        evidence=[knowledge.evidence(), *([Evidence(source=source, basis="history")] if later else [])],
        remedy=f"write {taken}: a version where another flag begins so refuses it",
        replacement=taken,
    )


def _read_otherwise(plain: str, taken: FlagSpec, knowledge: Knowledge) -> tuple[str, str] | None:
    """The first later checked version that reads a beginning otherwise, and how."""
    spans = [
        span
        for lives in knowledge.past.spans.values()
        for span in lives
        if any(each.startswith(plain) for each in span.spec.spellings)
    ]
    here = versions.key(knowledge.version)
    for version in (each for each in knowledge.past.checked if versions.key(each) > here):
        live = [span.spec for span in spans if versions.in_run(version, span.first, span.last)]
        names = ", ".join(sorted(spec.name for spec in live)[:_MOST_NAMED])
        if len(live) > 1:
            return version, f"from {version} on it is the beginning of several: {names}"
        if not live or set(live[0].names).isdisjoint(taken.names):
            return version, f"from {version} on {f'it is read as {names}' if live else 'no flag begins so'}"
    return None
