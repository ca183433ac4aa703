"""How the scripts here start a program on the GPU: one process, a time-out, results appended to a file as they come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))


def program(module: str, job: dict[str, Any], results: Path, limit_s: float) -> list[dict[str, Any]]:
    """Run `python -m module JOB RESULTS` and read what it wrote, however it ended.

    Results of an earlier call are kept beside the new ones, under a number.
    """
    results.parent.mkdir(parents=True, exist_ok=True)
    asked = results.with_suffix(".job.json")
    asked.write_text(json.dumps(job, indent=1))
    if results.exists():
        number = 1
        while (kept := results.with_suffix(f".{number}.earlier")).exists():
            number += 1
        results.replace(kept)
    ended = run([sys.executable, "-m", module, str(asked), str(results)], results.with_suffix(".log"), limit_s)
    rows = list(lines(results))
    print(f"{results.name}: {len(rows)} lines, {ended}", flush=True)
    return rows


def run(argv: list[str], log: Path, limit_s: float) -> str:
    """In a group of its own, so that what it started ends with it; says how it ended."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    begun_s = time.monotonic()
    with log.open("w") as sink:
        started = subprocess.Popen(
            argv, stdout=sink, stderr=subprocess.STDOUT, env=environment, start_new_session=True, cwd=ROOT
        )
        try:
            ended = f"ended with {started.wait(limit_s)}"
        except subprocess.TimeoutExpired:
            ended = f"stopped after {limit_s:.0f} s"
        finally:
            end(started)
    return f"{ended} in {time.monotonic() - begun_s:.0f} s"


def end(started: subprocess.Popen[bytes]) -> None:
    """The process with all of its group; politely first: a script of ours ends its own program when it is asked."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(started.pid, kind)
        with suppress(subprocess.TimeoutExpired):
            started.wait(5)


def _asked_to_end(*_: object) -> None:
    sys.exit(143)


signal.signal(signal.SIGTERM, _asked_to_end)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            return
