"""From what a server said to the failure that a run is recorded with: the one way for every adapter.

The rules are those of `assay explain` (`assay.failures`); here they meet what an adapter knows besides the log: whether
the server had been ready, whether its time ran out, and how its process ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.failures import Log, after_ready, explain, plain_line
from assay.records.failure import Cause, Explanation, Stage
from assay.records.run import Failure

OOM = frozenset({Cause.OOM_AT_LOAD, Cause.OOM_AT_CAPTURE})
LONGEST_LINE = 600
SILENT = "no output at all"


def failure_of(
    said: str | Sequence[Log],
    log_name: str,
    exit_code: int | None,
    engine: str | None = None,
    *,
    timed_out: bool = False,
    was_ready: bool = False,
) -> Failure:
    """Find stage, cause and the line to quote. Never raises.

    Args:
        said: the server's output so far, or its logs where stdout and stderr went to two files.
        log_name: path of the log relative to the campaign.
        exit_code: None while it lives; negative, or above 128: ended by that signal.
        engine: name of the adapter, for rules that count for one engine only.
        timed_out: whether it was given up because the time for starting ran out.
        was_ready: whether it had served before: then only what it said since is evidence.
    """
    logs = [Log(log_name, said.splitlines())] if isinstance(said, str) else list(said)
    if was_ready:
        logs = [Log(log.name, after_ready(log.lines)) for log in logs]
    # An echo (a warning that locking memory failed) is no reason to call a campaign's arm impossible.
    found = explain(logs, exit_code, engine=engine, least="symptom")
    cause = _cause(found, timed_out=timed_out, was_ready=was_ready)
    return Failure(
        stage=_stage(found, was_ready=was_ready),
        cause=cause,
        line=_line(found, _last(logs), exit_code),
        log=log_name,
        exit_code=exit_code,
        remedy=found.remedy if cause is found.cause else "",
        implies=found.implies if cause is found.cause else [],
    )


def _stage(found: Explanation, *, was_ready: bool) -> Stage:
    if was_ready:
        return "shutdown" if found.stage == "shutdown" else "under-load"
    return "load" if found.stage in {"unknown", "under-load"} else found.stage


def _cause(found: Explanation, *, timed_out: bool, was_ready: bool) -> Cause:
    if found.cause in {Cause.UNKNOWN, Cause.NONE}:
        return Cause.TIMEOUT if timed_out else Cause.UNKNOWN
    return Cause.OOM_UNDER_LOAD if was_ready and found.cause in OOM else found.cause


def _last(logs: Sequence[Log]) -> str:
    """The last line that says anything."""
    return next((line for log in reversed(logs) for line in reversed(list(log.lines)) if line.strip()), "")


def _line(found: Explanation, last: str, exit_code: int | None) -> str:
    """The engine's own words without stamp and level; how it ended, where they do not say why."""
    line = plain_line(found.quote or last)[:LONGEST_LINE] or SILENT
    ended = f"exit code {exit_code}" if exit_code is not None else "still running"
    return line if found.rule else f"{line} ({ended})"
