"""Why a llama.cpp server did not start or died: rules over its log, first match wins.

The embedded wheel exits 1 for every failure, so the log decides; the exit code only where the log is silent. Lines of
information and warnings are never a root cause: a server that cannot lock its memory says so and serves.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Literal

from assay.engines.llamacpp_log import is_remark, plain
from assay.records.run import Failure

Stage = Literal["arguments", "load", "ready", "warm-up", "under-load", "shutdown", "artifact"]
READY = re.compile(r"\b(?:model loaded|server is listening|listening on http)")
SHELL_SIGNAL = 128
"""A shell reports a child ended by signal n as 128 + n."""
ENDED_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
NOISE = re.compile(r"^(?:Traceback|embedded server: |\s+File |to show complete usage)")


@dataclass(frozen=True, slots=True)
class Rule:
    """A shape of message, and what it means."""

    pattern: re.Pattern[str]
    stage: Stage
    cause: str


def _rule(pattern: str, stage: Stage, cause: str) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), stage, cause)


RULES = (
    _rule(r"error: invalid argument:", "arguments", "unknown-flag"),
    _rule(r"the argument has been removed", "arguments", "unknown-flag"),
    _rule(r"error while handling argument", "arguments", "bad-value"),
    _rule(r"error: .*(?:expected|requires) (?:a )?value", "arguments", "bad-value"),
    _rule(r"could(?:n't| not) bind|failed to bind|address already in use", "ready", "port-in-use"),
    _rule(r"AMX is not ready|illegal instruction|SIGILL", "load", "illegal-instruction"),
    _rule(r"error while loading shared libraries|symbol lookup error|version `\S+' not found", "load", "incompatible"),
    _rule(r"failed to open (?:GGUF )?file|no such file or directory", "load", "model-not-found"),
    _rule(
        r"corrupted or incomplete|not within the file bounds|(?:invalid|bad) magic|unexpectedly reached end|"
        r"failed to read (?:magic|key-value|tensor)",
        "load",
        "model-corrupt",
    ),
    _rule(
        r"^(?!.*mlock).*(?:insufficient memory|failed to allocate|out of memory|OutOf(?:Device|Host)Memory|bad_alloc|"
        r"cannot allocate memory)",
        "load",
        "oom",
    ),
    _rule(r"cache .*requires|requires \w+ to be (?:enabled|disabled)|requires flash", "load", "incompatible"),
    _rule(r"not (?:supported|compatible) with|incompatible|no kernel image", "load", "incompatible"),
    _rule(
        r"(?:requires|without|no) (?:a )?draft (?:model|context)|draft model .* (?:required|not)",
        "load",
        "incompatible",
    ),
    _rule(r"unknown (?:model )?architecture|unsupported model", "load", "incompatible"),
    _rule(r"failed to initialize (?:CUDA|ROCm|HIP|Vulkan|Metal|SYCL)", "load", "incompatible"),
    _rule(r"GGML_ASSERT|(?:CUDA|HIP|ROCm) error: |terminate called|Segmentation fault|Aborted", "load", "crashed"),
    _rule(r"^Killed$", "load", "killed"),
)
VAGUE = re.compile(r"\bfailed to |\berror\b|\bunable to ", re.IGNORECASE)
"""A line to quote where no rule knows the cause."""
FATAL = re.compile(
    r"error: invalid argument|error while handling argument|the argument has been removed|exiting due to|"
    r"GGML_ASSERT|terminate called|embedded server: |embedded engine is"
)
"""Lines after which a server that still lives will not become ready."""


def classify(log: str, log_name: str, exit_code: int | None, *, was_ready: bool, timed_out: bool = False) -> Failure:
    """Find stage, cause and the line to quote. Never raises.

    Args:
        log: the server's output so far.
        log_name: path of it relative to the campaign.
        exit_code: None while it lives; negative: ended by that signal.
        was_ready: whether it had served before: then only what it said since is evidence.
        timed_out: whether it was given up because the time for starting ran out.
    """
    lines = _since_ready(log) if was_ready else log.splitlines()
    lines = [line for line in lines if line.strip()]
    found = _first_match([line for line in lines if not is_remark(line)])
    stage: Stage = "under-load" if was_ready else found[0].stage if found else "load"
    cause = found[0].cause if found else "timeout" if timed_out else _from_exit_code(exit_code)
    line = plain(found[1]) if found else _line_to_quote(lines, exit_code)
    return Failure(stage=stage, cause=cause, line=line, log=log_name, exit_code=exit_code)


def _since_ready(log: str) -> list[str]:
    """What follows the last line that says it serves; all of it when no such line is there."""
    lines = log.splitlines()
    last = max((i for i, line in enumerate(lines) if READY.search(line)), default=-1)
    return lines[last + 1 :] or lines[-1:]


def _first_match(lines: list[str]) -> tuple[Rule, str] | None:
    for rule in RULES:
        for line in lines:
            if rule.pattern.search(plain(line)):
                return rule, line
    return None


def _signal_of(exit_code: int | None) -> int | None:
    if exit_code is None or 0 <= exit_code <= SHELL_SIGNAL:
        return None
    return -exit_code if exit_code < 0 else exit_code - SHELL_SIGNAL


def _from_exit_code(exit_code: int | None) -> str:
    number = _signal_of(exit_code)
    if number is None:
        return "unknown"
    if number == signal.SIGILL:
        return "illegal-instruction"
    return "killed" if number in ENDED_FROM_OUTSIDE else "crashed"


def _line_to_quote(lines: list[str], exit_code: int | None) -> str:
    """The first line that tells of an error, unless a signal ended it; else the last that says anything."""
    ended = f"exit code {exit_code}" if exit_code is not None else "still running"
    errors = [line for line in lines if not is_remark(line) and VAGUE.search(line) and not NOISE.match(line)]
    telling = [line for line in lines if not NOISE.match(line)] or lines
    chosen = errors[0] if errors and _signal_of(exit_code) is None else telling[-1] if telling else "no output at all"
    return f"{plain(chosen)} ({ended})"
