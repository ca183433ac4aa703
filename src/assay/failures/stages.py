"""How far a server came: told by the functions of a traceback, else by what its log said last."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from assay.failures.rules import data
from assay.records.failure import Cause, Stage

FRAME = re.compile(r'^\s*File "(?P<path>[^"]{1,400})", line \d{1,7}(?P<comma>,)? in (?P<name>[^\n]{1,120})')
"""A function of a traceback; faulthandler, which writes the innermost first and no source, has no comma."""
NOTEBOOK_FRAME = re.compile(
    r"^(?:File )?\[?(?P<path>(?:~|/|[A-Za-z]:\\)[^\s\"\]()]{1,300}\.py)(?:\]\([^)\s]{0,300}\))?(?::\d{1,7},?)?"
    r"(?: in (?P<name>[\w.<>]{1,120})(?=\(|\s|$)|(?<=\d)\s*$)"
)
"""The same as IPython and rich write it, with the arguments of the call or without; without a name a module's body."""
EMBEDDED_FRAME = re.compile(
    r"^\s{0,8}(?P<path>(?:/|[A-Za-z]:\\)[^\s\"():]{1,300}\.pyx?)\(\d{1,7}\): (?P<name>[\w.<>]{1,120})$"
)
"""The same as pybind11 writes it in a process of C++, the innermost first."""
NOTEBOOK_LISTING = re.compile(r"^\s*(?:-+>|❱)?\s*\[?\d{1,6}\]?(?:\([^)\s]{0,400}\))?(?:\s|$)")
"""A numbered line of the source that they list around the call."""
IMPORTING = '", in <module>'
TRACEBACK = "Traceback (most recent call last)"
INNERMOST_FIRST = "(most recent call first)"
"""Heads what Python's faulthandler writes of each thread when a signal ends the process."""
OF_ANOTHER_THREAD = re.compile(r"Thread 0x[\da-f]{1,16}(?: \[[^\]]{1,40}\])? " + re.escape(INNERMOST_FIRST))


@dataclass(frozen=True, slots=True)
class Marker:
    """A shape of text, and the stage it belongs to."""

    pattern: re.Pattern[str]
    stage: Stage
    oom: Cause | None = None
    """The kind of exhausted memory there, where the stage alone does not decide it."""
    is_weak: bool = False
    """It only counts where nothing else tells."""
    stage_of_oom: Stage | None = None
    """Another stage where memory ran out there."""

    @property
    def is_of_import(self) -> bool:
        """It tells of no function, but of a module that is imported."""
        return self.pattern.search(IMPORTING) is not None

    after: frozenset[Stage] = frozenset()
    """A milestone that counts only where the last one was one of these; empty: always."""


@dataclass(frozen=True, slots=True)
class Stages:
    """What stages.toml holds."""

    frames: tuple[Marker, ...]
    """The first that any frame matches decides."""
    milestones: tuple[Marker, ...]
    callers: tuple[Marker, ...]
    """In what callers add after a native function's complaint: what it was wanted for."""
    natives: tuple[Marker, ...]
    """Functions on the stack of a native crash; the first that any of them matches decides."""
    native_has: tuple[str, ...]
    """One of these, in lower case, is in every such function."""
    words: tuple[Marker, ...]
    """In the quoted line itself, or in a comment that somebody put into the log."""
    milestone_has: tuple[str, ...]
    """One of these, in lower case, is in every line that is a milestone, a start, or says that it is ready."""
    ready: re.Pattern[str]
    opened: re.Pattern[str]
    """It listens; some servers do so before they load the model."""
    start: re.Pattern[str]
    stopped: re.Pattern[str]
    """It was asked to end, and begins to."""


@cache
def load_stages() -> Stages:
    """The markers, compiled."""
    content = data("stages.toml")
    return Stages(
        frames=_markers(content["frames"], 0),
        milestones=_markers(content["milestones"], re.IGNORECASE),
        natives=_markers(content["natives"], 0),
        native_has=tuple(content["native_has"]),
        callers=_markers(content["callers"], re.IGNORECASE),
        words=_markers(content["words"], re.IGNORECASE),
        milestone_has=tuple(content["milestone_has"]),
        ready=re.compile(content["ready"]),
        opened=re.compile(content["opened"]),
        start=re.compile(content["start"]),
        stopped=re.compile(content["stopped"]),
    )


def _markers(entries: list[dict[str, Any]], flags: int) -> tuple[Marker, ...]:
    return tuple(
        Marker(
            pattern=re.compile(entry["pattern"], flags),
            stage=entry["stage"],
            oom=Cause(entry["oom"]) if "oom" in entry else None,
            is_weak=bool(entry.get("weak", False)),
            stage_of_oom=entry.get("stage_of_oom"),
            after=frozenset(entry.get("after", ())),
        )
        for entry in entries
    )


def of_frames(frames: Iterable[str]) -> Marker | None:
    """The stage that a traceback tells; None: none of its functions is known."""
    called = list(frames)
    outside_imports = "\n".join(each for each in called if not each.endswith(IMPORTING))
    imports = len(called) - outside_imports.count("\n") - bool(outside_imports)
    is_in_import = bool(called) and called[-1].endswith(IMPORTING)
    markers = load_stages().frames
    if is_in_import:  # of a class: no tensor has been read
        markers = tuple(each for each in markers if each.stage != "weights")
    found = first(markers, outside_imports)
    return found or (first(markers, IMPORTING) if is_in_import or imports > 1 else None)


def narrower(one: Marker | None, other: Marker) -> Marker:
    """Of what two parts of one stack tell, that which would decide if they were one traceback."""
    order = load_stages().frames
    return other if one is None else min(one, other, key=order.index)


def after_ready(lines: Iterable[str]) -> list[str]:
    """What follows the last line that says that the server serves; all where none does; the last where none follows."""
    said, ready = [line for line in lines if line.strip()], load_stages().ready
    last = max((number for number, line in enumerate(said) if ready.search(line)), default=-1)
    return said[last + 1 :] or said[-1:]


def first(markers: Iterable[Marker], text: str) -> Marker | None:
    """The first marker whose shape is in the text."""
    return next((marker for marker in markers if marker.pattern.search(text)), None)
