"""The runs of a record against one another and against their files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.errors import RecordError
from assay.records.event import EventKind
from assay.records.run import RunOutcome, RunStatus
from assay.store.files import SAMPLES_NAME, CampaignFolder, file_sha256


class Evidence:
    """What a verification has seen of the runs so far; fed the events in order."""

    def __init__(self, folder: CampaignFolder) -> None:
        self._folder = folder
        self._intended: set[str] = set()
        self._ended: set[str] = set()

    @property
    def num_runs(self) -> int:
        """Runs that were intended."""
        return len(self._intended)

    def check(self, seq: int, kind: EventKind, parts: dict[str, Any]) -> list[str]:
        """Take in one event; say what in it contradicts the events before it or the files on disk."""
        return [f"event {seq} ({kind}): {problem}" for problem in self._problems(kind, parts)]

    def strays(self) -> list[str]:
        """Folders of runs that no event speaks of: the record's end was cut off, or they were put there."""
        runs = self._folder.runs
        names = sorted(path.name for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []
        return [
            f"{runs / name}: expected an event {EventKind.RUN_INTENDED} for this folder, found none"
            for name in names
            if name not in self._intended
        ]

    def _problems(self, kind: EventKind, parts: dict[str, Any]) -> Iterator[str]:
        match kind:
            case EventKind.RUN_INTENDED if "intent" in parts:
                run_id = parts["intent"].run_id
                if run_id in self._intended:
                    yield f"expected a new run, found run {run_id} a second time"
                self._intended.add(run_id)
            case EventKind.SERVER_STARTED if "run_id" in parts:
                yield from self._unknown([parts["run_id"]])
            case EventKind.RUN_MEASURED if "outcome" in parts:
                yield from self._unknown([parts["outcome"].run_id])
            case EventKind.RUN_ENDED if "outcome" in parts:
                yield from self._ended_run(parts["outcome"], parts.get("files", {}))
            case EventKind.VERDICT_REACHED if "verdict" in parts:
                yield from self._unknown(parts["verdict"].runs)
            case EventKind.DIAL_SETTLED if "result" in parts:
                yield from self._unknown(parts["result"].runs)
            case EventKind.ABLATED if "ablation" in parts:
                yield from self._unknown(parts["ablation"].runs)
            case EventKind.CAMPAIGN_FINISHED if "headline" in parts:
                yield from self._unknown(parts["headline"].runs)

    def _unknown(self, run_ids: list[str]) -> Iterator[str]:
        for run_id in run_ids:
            if run_id not in self._intended:
                yield f"expected an intent of run {run_id} before it, found none"

    def _ended_run(self, outcome: RunOutcome, files: dict[str, str]) -> Iterator[str]:
        yield from self._unknown([outcome.run_id])
        if outcome.run_id in self._ended:
            yield f"expected one end of run {outcome.run_id}, found another"
        self._ended.add(outcome.run_id)
        folder = self._folder.runs / outcome.run_id
        damaged = {name: problem for name, digest in files.items() if (problem := _file_problem(folder, name, digest))}
        yield from damaged.values()
        if outcome.status is RunStatus.OK and SAMPLES_NAME not in files:
            yield f"expected the hash of {SAMPLES_NAME} for the ok run {outcome.run_id}, found {sorted(files)}"
        elif outcome.measures and SAMPLES_NAME in files and SAMPLES_NAME not in damaged:
            yield from self._too_few_samples(outcome.run_id, outcome.measures.requests_completed)

    def _too_few_samples(self, run_id: str, completed: int) -> Iterator[str]:
        """Every request completed in the measured windows is a row without an error; warm-up and drain add rows."""
        path = self._folder.runs / run_id / SAMPLES_NAME
        try:
            samples = self._folder.read_samples(run_id)
        except RecordError as error:
            yield f"expected a readable table of samples, found: {error.message}"
            return
        succeeded = sum(sample.error is None for sample in samples)
        if succeeded < completed or not samples:
            yield f"{path}: expected at least {max(completed, 1)} completed requests, found {succeeded}"


def _file_problem(folder: Path, name: str, expected: str) -> str | None:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        return f"expected a file of the run, found {name!r}, outside its folder"
    if not path.is_file():
        return f"{path}: expected a file with SHA-256 {expected}, found no file"
    found = file_sha256(path)
    return None if found == expected else f"{path}: expected SHA-256 {expected}, found {found}"
