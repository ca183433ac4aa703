"""Environment variables of an engine that a command sets, and that this version's source does not name."""

from __future__ import annotations

import difflib

from assay.flags import versions
from assay.flags.knowledge import Knowledge
from assay.flags.successors import renamed
from assay.records.doctor import Evidence, Finding, Kind, Launch

TABLE = "variable"
"""Of renames.toml."""


def check(launch: Launch, knowledge: Knowledge) -> list[Finding]:
    """A finding for each variable that no file of this version names."""
    recorded = knowledge.past.variables
    if not recorded:
        return []
    ours = [name for name in launch.environment if name.startswith(tuple(knowledge.dialect.variables))]
    return [finding for name in ours if (finding := _one(name, knowledge)) is not None]


def _one(name: str, knowledge: Knowledge) -> Finding | None:
    runs = knowledge.past.variables.get(name, ())
    stand = versions.standing_for(knowledge.version, knowledge.past.checked) or knowledge.past.checked[0]
    if any(versions.in_run(stand, first, last) for first, last in runs):
        return None
    successor, its_source = _successor(name, knowledge)
    gone, coming = versions.around(stand, runs)
    kind: Kind = "removed" if gone else "not-yet" if coming else "unknown"
    near = [] if runs else difflib.get_close_matches(name, list(_known_at(stand, knowledge)), n=2, cutoff=0.8)
    what = {
        "removed": f"is read no more: {gone} was the last checked version that names it",
        "not-yet": f"is not read yet: {coming} is the first checked version that names it",
        "unknown": f"is named by no checked version{'; nearest: ' + ', '.join(near) if near else ''}",
    }[kind]
    instead = successor or (near[0] if near else None)
    read = Evidence(source=f"every file of the {knowledge.past.engine} {stand} wheel", basis="source")
    return Finding(
        kind=kind,
        severity="warning",
        flags=[name],
        what=what,
        evidence=[read, *its_source],
        remedy=f"write {instead} instead" if instead else "leave it out: it changes nothing",
        replacement=instead,
    )


def _known_at(stand: str, knowledge: Knowledge) -> list[str]:
    return [
        name
        for name, runs in knowledge.past.variables.items()
        if any(versions.in_run(stand, first, last) for first, last in runs)
    ]


def _successor(name: str, knowledge: Knowledge) -> tuple[str | None, list[Evidence]]:
    """The flag that took its place in this version, with the source that says so; None without one."""
    row = next(reversed(renamed(TABLE).get(name, [])), None)
    if row is None or not knowledge.find(row["new"].split()[0].partition("=")[0]):
        return None, []
    return row["new"], [Evidence(source=row["source"], basis="history")]
