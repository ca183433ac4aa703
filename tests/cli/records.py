"""Campaigns for the command line's tests: a simulated world's events, written through the real store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from assay.records.event import EventKind
from assay.store.files import CampaignFolder
from assay.store.record import SqliteRecord
from assay.store.spec_file import spec_hash, write_spec
from tests.unit.simulated_world import World, drive, failure, hypothesis, small_spec, start, trouble_for
from tests.unit.test_store_files import sample

CANDIDATES = {"quicker": 0.7, "pointless": 0.0, "broken": 0.0}
EVENTS_HALFWAY = 12
"""Creation, plan, and three runs and a bit."""


def write_campaign(folder: Path, *, num_events: int | None = None, **budget: float) -> Path:
    """One candidate that helps, one that does nothing, one that does not start; whole, or its first events only."""
    spec = small_spec(name="a-campaign", objective={"min_effect": 0.1})
    spec = spec.model_copy(update={"budget": spec.budget.model_copy(update=budget)})
    journal = start([hypothesis(name, number) for number, name in enumerate(CANDIDATES, start=1)], spec)
    journal.events[0].payload["spec_hash"] = spec_hash(spec)
    drive(journal, World(effects=CANDIDATES, seed=2, trouble=trouble_for("broken", failure("bad-value", "arguments"))))
    folder.mkdir()
    write_spec(folder / "assay.toml", spec)
    files = CampaignFolder(folder)
    times_ns = iter([event.at_ns for event in journal.events])
    record = SqliteRecord(folder / "assay.db", create=True, clock_ns=lambda: next(times_ns))
    for event in journal.events[:num_events]:
        payload = dict(event.payload)
        if event.kind is EventKind.RUN_ENDED:
            payload["files"] = _run_files(files, payload["outcome"])
        record.append(event.kind, payload)
    return folder


def _run_files(files: CampaignFolder, outcome: dict[str, object]) -> dict[str, str]:
    run_id = str(outcome["run_id"])
    (files.folder(run_id) / "server.log").write_text("a log\n", encoding="utf-8")
    if outcome["measures"] is not None:
        files.write_samples(run_id, [sample(index) for index in range(50)])
    return files.hashes(run_id)


def assay(*words: str, cwd: Path | None = None, **changes: object) -> subprocess.CompletedProcess[str]:
    """`python -m assay ...` as a user starts it, away from any terminal."""
    settings: dict[str, object] = {"stdin": subprocess.DEVNULL, "timeout": 120, "cwd": cwd, **changes}
    environment = {**os.environ, "COLUMNS": "100"}
    command = [sys.executable, "-m", "assay", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, **settings)


def modules_loaded_by(words: Sequence[str]) -> set[str]:
    """Top-level packages that a Python command line imports."""
    command = [sys.executable, "-X", "importtime", *words]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stderr
    lines = [line for line in listed.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in lines}


def told(text: str) -> dict[str, object]:
    """An error as JSON."""
    document = json.loads(text)
    assert set(document) == {"error", "hint", "exit_code"}
    return document
