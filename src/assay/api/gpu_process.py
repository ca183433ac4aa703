"""A program on the GPU as a process: started, watched by the lines it writes, ended."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import MeasurementError

POLL_S = 0.2
LINES_OF_LOG = 3
NO_DEVICE = "PyTorch sees no CUDA device here"
NO_TORCH = "No module named 'torch'"

UNMEASURED = "nothing was measured: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a program left."""

    rows: list[dict[str, Any]]
    problem: str | None
    """Why it ended before it was done; what it wrote until then is in `rows`."""


def run_program(
    module: str,
    job: Mapping[str, Any],
    folder: Path,
    *,
    limit_s: float,
    watch: Callable[[Mapping[str, Any]], None] = lambda row: None,  # noqa: ARG005 - nobody watches
) -> Ran:
    """Run `python -m module JOB RESULTS` in a folder.

    Args:
        module: of `assay.lab.on_gpu`.
        job: what it is asked.
        folder: where job, results and log are kept; results of an earlier run get a number. One that was not there
            is gone again where there is nothing to measure on.
        limit_s: it is ended after so long.
        watch: told every line as it comes.

    Raises:
        MeasurementError: there is no GPU that PyTorch sees, or no PyTorch.
    """
    from assay.process import start

    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    asked, results, log = folder / "job.json", folder / "results.jsonl", folder / "program.log"
    asked.write_text(json.dumps(job), encoding="utf-8")
    _set_aside(results)
    results.write_bytes(b"")
    log.write_bytes(b"")
    child = start([sys.executable, "-m", module, str(asked), str(results)], {}, log)
    rows: list[dict[str, Any]] = []
    until_s, problem = time.monotonic() + limit_s, None
    try:
        with results.open(encoding="utf-8") as file:
            while True:
                ended = child.exit_code()
                for line in _whole_lines(file):
                    rows.append(line)
                    watch(line)
                if ended is not None:
                    break
                if time.monotonic() > until_s:
                    problem = f"it was ended after {limit_s:.0f} s"
                    break
                time.sleep(POLL_S)
    finally:
        code = child.exit_code()
        child.end()
    if problem is None and code:
        try:
            problem = _why(log, code)
        except MeasurementError:
            if made:  # nothing was measured: nothing is left behind
                for path in (asked, results, log):
                    path.unlink(missing_ok=True)
            with suppress(OSError):  # something else was put there meanwhile: it stays
                for path in made:
                    path.rmdir()
            raise
    return Ran(rows=rows, problem=problem)


def _set_aside(results: Path) -> None:
    """What an earlier run measured stays, under a number, beside what this one will measure."""
    if not results.exists() or not results.stat().st_size:
        return
    number = 1
    while (kept := results.with_suffix(f".{number}{results.suffix}")).exists():
        number += 1
    results.replace(kept)


def _whole_lines(file: Any) -> list[dict[str, Any]]:
    """Those that end; the rest of one that is being written is read next time."""
    found: list[dict[str, Any]] = []
    while True:
        place = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(place)
            return found
        found.append(json.loads(line))


def _why(log: Path, code: int) -> str:
    text = log.read_text(encoding="utf-8", errors="replace")
    for said, words in ((NO_DEVICE, NO_DEVICE), (NO_TORCH, "PyTorch is not installed beside Assay")):
        if said in text:
            raise MeasurementError(
                f"{UNMEASURED}{words}",
                hint="run it where the GPU and the engine are",
            )
    last = [line for line in text.splitlines() if line.strip()][-LINES_OF_LOG:]
    if code == -signal.SIGKILL:
        last.append("something killed it (memory?)")
    return f"it ended with {code}: {' | '.join(last)[-500:]}"


__all__ = ["UNMEASURED", "Ran", "run_program"]
