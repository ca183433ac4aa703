"""Everything a campaign works with, behind its ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.plan.fold import advance
from assay.ports import Documents, Engine, LoadGenerator, Probe, Progress, Record, RunFiles
from assay.records.event import EventKind
from assay.records.run import ServerIdentity
from assay.records.spec import Target
from assay.records.state import CampaignState

RUN_TOKEN = "ASSAY_RUN_TOKEN"  # noqa: S105 - the name of a marker, not a secret
"""Environment variable of every server we start: proves that a process is ours even when its pid was never recorded."""


@dataclass(slots=True, kw_only=True)
class Bench:
    """The adapters of one campaign, and its state as recorded so far."""

    folder: Path
    engine: Engine
    load: LoadGenerator
    probe: Probe
    record: Record
    files: RunFiles
    documents: Documents
    progress: Progress
    free_port: Callable[[], int]
    end_recorded: Callable[[ServerIdentity], bool]
    """End what is left of a recorded server; True when something was."""
    end_marked: Callable[[str, str], int]
    """End every process whose environment holds this variable with this value; the number that were alive."""
    find_alive: Callable[[ServerIdentity | None, str, str], list[int]]
    """Pids of a recorded server and of processes with this variable and value; nothing is ended."""
    has_open: Callable[[int, Path], bool]
    """Whether a process has this very file open."""
    expect: Callable[[str], None]
    """Tell the guardian which marker the next server carries, so that it can end it if we are killed."""
    target: Target
    """As assay.toml has it: the record's copy has its secrets masked."""
    state: CampaignState
    host: str = ""
    """This machine since its last start, as a hash."""

    def note(self, kind: EventKind, payload: dict[str, Any]) -> None:
        """Write an event, then let the state follow it: memory never runs ahead of the record."""
        self.state = advance(self.state, self.record.append(kind, payload))

    @property
    def place(self) -> str:
        """This very folder, told apart from its copies: device and inode."""
        found = self.folder.stat()
        return f"{found.st_dev:x}-{found.st_ino:x}"

    def token(self, run_id: str, place: str) -> str:
        """The marker of one run's server, made in a folder (`place`; empty: before folders were told apart)."""
        return "-".join(part for part in (str(self.state.created_at_ns), place, run_id) if part)
