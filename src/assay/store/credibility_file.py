"""Scores of predictions, kept from campaign to campaign: one file a person, in their state folder.

What it holds is worth keeping but decides nothing: with it the first order of a campaign and the ranges it prints start
from what earlier ones taught about this class of machines. It names entries, machine classes and numbers; no prompt,
path or model name is in it. `ASSAY_CREDIBILITY=off` keeps Assay from reading and writing it, and it may be removed at
any time.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from assay.records.scoring import PredictionScore
from assay.store.atomic import atomic_write

FORMAT = 1
"""1: {"format": 1, "scores": [`assay.records.scoring.PredictionScore`, oldest first]}."""
KEPT = 2000
"""Scores beyond this number are dropped, the oldest first."""
SWITCH = "ASSAY_CREDIBILITY"
OFF = frozenset({"off", "0", "no", "false"})


def credibility_path() -> Path:
    """`$XDG_STATE_HOME/assay/credibility.json`, or the same under `~/.local/state`."""
    root = os.environ.get("XDG_STATE_HOME")
    return (Path(root) if root else Path.home() / ".local" / "state") / "assay" / "credibility.json"


def remembered() -> list[PredictionScore]:
    """What earlier campaigns scored, oldest first; nothing when it is switched off, absent, or cannot be read."""
    return ([] if _is_off() else _read(credibility_path())) or []


def remember(scores: Iterable[PredictionScore]) -> str | None:
    """Add scores; those of the same campaign and hypothesis are replaced.

    Returns:
        Why they were not kept, for a note; None when they were. A file that cannot be read (a newer Assay's, or a
        damaged one) is left as it is.
    """
    if _is_off():
        return f"{SWITCH}={os.environ[SWITCH]}"
    path = credibility_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path):
            known = _read(path)
            if known is None:
                return f"{path} is not of a format that this Assay reads: move it away to start a new one"
            atomic_write(path, _text(_merged(known, scores)))
    except OSError as error:
        return f"{path} cannot be written: {error.strerror}"
    return None


def _is_off() -> bool:
    return os.environ.get(SWITCH, "").strip().lower() in OFF


def _read(path: Path) -> list[PredictionScore] | None:
    """None when there is something that cannot be read."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return None
    try:
        return TypeAdapter(list[PredictionScore]).validate_python(content.get("scores"))
    except ValidationError:
        return None


def _merged(known: Iterable[PredictionScore], fresh: Iterable[PredictionScore]) -> list[PredictionScore]:
    by_key = {(one.campaign, one.hypothesis): one for one in known}
    for one in fresh:
        by_key.pop((one.campaign, one.hypothesis), None)  # the newest come last
        by_key[one.campaign, one.hypothesis] = one
    return list(by_key.values())[-KEPT:]


def _text(scores: Iterable[PredictionScore]) -> bytes:
    rows = ",\n".join(one.model_dump_json() for one in scores)
    return f'{{"format": {FORMAT}, "scores": [\n{rows}\n]}}\n'.encode()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Two campaigns that end together must not lose each other's scores; the lock goes with its holder."""
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
