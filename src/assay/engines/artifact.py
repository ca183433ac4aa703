"""Model artifacts: made once from a model, in a process of their own, and found again by what they were made from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from assay.errors import EngineError
from assay.ports import LaunchFailed
from assay.process import run_quiet
from assay.records.failure import Cause
from assay.records.hypothesis import Requantize
from assay.records.machine import ModelFacts
from assay.records.run import Failure

TIMEOUT_S = 3600.0


def make_artifact(model: ModelFacts, artifact: Requantize, folder: Path) -> str:
    """Requantize, or find what was made before.

    Raises:
        LaunchFailed: it cannot be made; stage "artifact".
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{Path(model.path).stem}-{model.sha256[:12]}-{artifact.type}"
    path = folder / f"{name}.gguf"
    if path.exists():
        return str(path)
    for stale in folder.glob(f"{name}.*.partial"):
        stale.unlink(missing_ok=True)  # of an Assay that was killed; its converter ends when it sees that
    scratch = folder / f"{name}.{os.getpid()}.partial"
    try:
        _convert(Path(model.path), scratch, artifact.type)
        _sync(scratch)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    return str(path)


def _convert(source: Path, target: Path, kind: str) -> None:
    argv = [sys.executable, "-m", "assay.engines.requantize", str(source), str(target), kind]
    try:
        done = run_quiet(argv, timeout_s=TIMEOUT_S)
    except EngineError as error:
        raise LaunchFailed(_failure(error.message, None)) from error
    if done.exit_code != 0:
        line = (done.output.strip().splitlines() or ["no output"])[-1]
        raise LaunchFailed(_failure(line, done.exit_code))


def _failure(line: str, exit_code: int | None) -> Failure:
    return Failure(stage="artifact", cause=Cause.ARTIFACT, line=line, log="", exit_code=exit_code)


def _sync(path: Path) -> None:
    """Onto the disk before it gets its name: a file with that name is taken to be whole."""
    with path.open("rb") as made:
        os.fsync(made.fileno())
