"""Why a simulated server did not start or died: rules over its log, first match wins, and its exit code after that."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from assay.records.run import Failure

STAMP = re.compile(r"^\[[\d :-]+\] (?:INFO|WARN|ERROR) ")
REMARK = re.compile(r"^\[[\d :-]+\] (?:INFO|WARN) ")
READY = "The server is ready on "
STAGES = (
    (re.compile(r"^Capture cuda graph begin"), "capturing graphs"),
    (re.compile(r"^Load weight end"), "allocating the cache"),
    (re.compile(r"^Load weight begin"), "loading weights"),
)
"""What it was doing, by the last of these lines; the stage of all three is `load`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A shape of message, and what it means."""

    pattern: re.Pattern[str]
    cause: str


def _rule(pattern: str, cause: str) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), cause)


ARGUMENTS = (
    _rule(r"unrecognized arguments?:", "unknown-flag"),
    _rule(r"layout .* is impossible", "incompatible"),
    _rule(r"is no file and no model", "model-not-found"),
    _rule(r"error: ", "bad-value"),
)
RULES = (
    _rule(r"address already in use|cannot listen", "port-in-use"),
    _rule(r"watchdog", "hang"),
    _rule(r"not enough memory for the kv cache|kv cache .*(?:too small|larger than)", "kv-cache-too-small"),
    _rule(r"out of ?memory", "oom"),
    _rule(r"illegal memory access|illegal instruction", "illegal-access"),
    _rule(r"torch\._dynamo|torch\.compile|fullgraph|cannot trace|graph break|ptxas|nvcc|JIT", "compile"),
    _rule(r"nccl|communicator", "communication"),
    _rule(r"not (?:supported|compatible)|unsupported|cannot load|incompatible|requires", "incompatible"),
)
EXCEPTION = re.compile(r"^[\w.]*(?:Error|Exception|Unsupported)\b")
"""How the line of a traceback begins that says what happened."""
VAGUE = re.compile(r"error|exception|failed|assert", re.IGNORECASE)
FATAL = re.compile(r"^(?:\[[\d :-]+\] ERROR |\S+: error: )")
"""Lines after which it will not become ready."""


def classify(log: str, log_name: str, exit_code: int | None, *, was_ready: bool, timed_out: bool = False) -> Failure:
    """Find stage, cause and the line to quote. Never raises.

    Args:
        log: the server's output so far.
        log_name: path of it relative to the campaign.
        exit_code: None while it lives; negative: ended by that signal.
        was_ready: whether it had served before.
        timed_out: whether it was given up because the time for starting ran out.
    """
    lines = [line for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if not REMARK.match(line)]
    if not was_ready and (found := _match(ARGUMENTS, [line for line in telling if ": error: " in line])):
        return Failure(stage="arguments", cause=found[0], line=found[1], log=log_name, exit_code=exit_code)
    found = _match(RULES, telling)
    cause = found[0] if found else "timeout" if timed_out else _from_exit_code(exit_code)
    line = found[1] if found else _line_to_quote(lines, telling, exit_code)
    line += f" (while {stage})" if not was_ready and (stage := doing(log)) else ""
    return Failure.model_validate(
        {
            "stage": "under-load" if was_ready else "load",
            "cause": cause,
            "line": line,
            "log": log_name,
            "exit_code": exit_code,
        }
    )


def doing(log: str) -> str | None:
    """What a server that starts was doing last; None once it is ready, or before it began."""
    lines = [plain(line) for line in log.splitlines()]
    if any(line.startswith(READY) for line in lines):
        return None
    return next((words for pattern, words in STAGES if any(pattern.match(line) for line in lines)), None)


def plain(line: str) -> str:
    """The line without its stamp."""
    return STAMP.sub("", line).strip()


def _match(rules: tuple[Rule, ...], lines: list[str]) -> tuple[str, str] | None:
    """The first rule that a line fits, with the line; of several the one that names an exception."""
    for rule in rules:
        fitting = [plain(line) for line in lines if rule.pattern.search(plain(line))]
        if fitting:
            return rule.cause, next((line for line in fitting if EXCEPTION.match(line)), fitting[0])
    return None


def _from_exit_code(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return "unknown" if exit_code in {None, 0} else "crashed"
    return "killed" if -exit_code in {signal.SIGKILL, signal.SIGTERM, signal.SIGINT} else "crashed"


def _line_to_quote(lines: list[str], telling: list[str], exit_code: int | None) -> str:
    ended = f"exit code {exit_code}" if exit_code is not None else "still running"
    chosen = next((line for line in telling if VAGUE.search(line)), lines[-1] if lines else "no output at all")
    return f"{plain(chosen)} ({ended})"
