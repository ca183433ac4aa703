"""The folder of a comparison: its question, its runs, and whether it may be carried on.

A run is whole when its result.json is there (it is written last), and counts from then on. A run that was cut keeps its
log and its number; it is made again under the next one, with prompts that the server has not seen.
"""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import RecordError, UsageError

if TYPE_CHECKING:
    from assay.records.bench import BenchResult
    from assay.records.compare import CompareQuestion

QUESTION = "question.json"
ANSWER = "comparison.json"
BEGUN = "runs.jsonl"
"""A line for every run that was begun: its number is used up, and with it the prompts that a server may remember."""
NAME = re.compile(r"(\d{3,})-(.+)")
NEW = "name a new folder; results are never overwritten"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A whole run of an earlier process."""

    number: int
    label: str
    path: Path
    """Of its result."""


class Runs:
    """The runs of one comparison, those of earlier processes first."""

    def __init__(self, folder: Path, targets: list[str], question: CompareQuestion) -> None:
        """Begin a folder, or carry on where the same question was asked in it.

        Raises:
            UsageError: it holds something else, or whole runs of another question, or an answer.
            RecordError: it cannot be written.
        """
        asked = _asked(targets, question)
        self._folder = folder
        numbers, kept = _runs_in(folder)
        _check(folder, asked, len(kept))
        self.num_kept = len(kept)
        """How many whole runs were there at the beginning."""
        self._kept = deque(kept)
        self._number = max(numbers, default=0)
        self._is_first = True
        self._write(asked)

    def take(self, label: str) -> BenchResult | None:
        """The next run of an earlier process; None when all are taken.

        Raises:
            RecordError: it cannot be read, or is of another side: somebody changed the folder.
        """
        if not self._kept:
            return None
        from assay.records.bench import BenchResult

        kept = self._kept.popleft()
        if kept.label != label:
            message = f"{kept.path.parent} is a run of {kept.label} where one of {label} was next"
            raise RecordError(message, hint="was a run removed from the folder? compare in a new one")
        try:
            return BenchResult.model_validate_json(kept.path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RecordError(f"{kept.path} cannot be read: {error}", hint="remove that run's folder") from error

    def begin(self, label: str) -> tuple[int, Path]:
        """Number and folder of a run that is made now."""
        self._number += 1
        self._is_first = False
        folder = self._folder / f"{self._number:03d}-{label}"
        folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / BEGUN).open("a", encoding="utf-8") as begun:
            begun.write(json.dumps({"run": self._number, "side": label}) + "\n")
        return self._number, folder

    def wants_reference(self, reference: str) -> bool:
        """Whether the reference is to be measured before the next side: a pause lies between, or did when it was made.

        A run is held against its neighbours; one from before the pause is no neighbour.
        """
        if self._kept:
            return self._kept[0].label == reference
        return self.num_kept > 0 and self._is_first

    def _write(self, asked: dict[str, Any]) -> None:
        from assay.store.atomic import atomic_write

        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            atomic_write(self._folder / QUESTION, json.dumps(asked, indent=2).encode())
        except OSError as error:
            hint = "free disk space, or give another --folder"
            raise RecordError(f"cannot write {self._folder}: {error}", hint=hint) from error


def _asked(targets: list[str], question: CompareQuestion) -> dict[str, Any]:
    from assay.store.redact import redact

    return {
        "assay_version": version("assay"),
        "targets": [str(redact(target)) for target in targets],
        "question": question.model_dump(mode="json"),
    }


def _runs_in(folder: Path) -> tuple[list[int], list[_Kept]]:
    """The numbers that are taken, and the whole runs in their order."""
    numbers, kept = [], []
    for path in folder.iterdir() if folder.is_dir() else ():
        if found := NAME.fullmatch(path.name):
            numbers.append(int(found[1]))
            if (result := path / "result.json").is_file():
                kept.append(_Kept(number=int(found[1]), label=found[2], path=result))
    if (begun := folder / BEGUN).is_file():
        numbers.append(begun.read_bytes().count(b"\n"))
    return numbers, sorted(kept, key=lambda one: one.number)


def _check(folder: Path, asked: dict[str, Any], num_whole: int) -> None:
    if not folder.exists() or not any(folder.iterdir()):
        return
    if (folder / ANSWER).exists():
        raise UsageError(f"{folder} is not empty: it holds a comparison that has its answer", hint=NEW)
    try:
        before = json.loads((folder / QUESTION).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{folder} is not empty", hint=NEW) from None
    except (OSError, ValueError):
        before = None
    if num_whole and before != asked:
        runs = f"{num_whole} whole run{'s' if num_whole > 1 else ''}"
        message = f"{folder} holds {runs} of a comparison that was asked otherwise"
        raise UsageError(message, hint=f"repeat the command that began it ({QUESTION} has its options), or {NEW}")
