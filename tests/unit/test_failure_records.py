"""One vocabulary of failures: older records are read in it, and every adapter writes it."""

from __future__ import annotations

import signal

import pytest
from pydantic import ValidationError

from assay.engines.failure import failure_of
from assay.failures import Log
from assay.records.failure import Cause
from assay.records.run import Failure


@pytest.mark.parametrize(
    ("old", "today"),
    [
        (("load", "oom"), ("load", "oom-at-load")),
        (("under-load", "oom"), ("under-load", "oom-under-load")),
        (("load", "incompatible"), ("load", "incompatible-combination")),
        (("load", "compile"), ("load", "jit-compile-failure")),
        (("under-load", "illegal-access"), ("under-load", "illegal-memory-access")),
        (("ready", "port-in-use"), ("load", "port-in-use")),
        (("ready", "requests-refused"), ("under-load", "requests-refused")),
        (("artifact", "artifact"), ("artifact", "artifact")),
        (("graph-capture", "graph-break"), ("graph-capture", "graph-break")),
    ],
)
def test_a_record_in_older_words_is_read_in_todays(old: tuple[str, str], today: tuple[str, str]) -> None:
    failure = Failure.model_validate({"stage": old[0], "cause": old[1], "line": "x", "log": "server.log"})

    assert (failure.stage, failure.cause) == today
    assert Failure.model_validate_json(failure.model_dump_json()) == failure


def test_a_word_that_was_never_one_is_refused() -> None:
    with pytest.raises(ValidationError):
        Failure.model_validate({"stage": "load", "cause": "bad luck", "line": "x", "log": "server.log"})


def test_what_was_said_before_the_server_was_ready_is_no_evidence_for_what_comes_after() -> None:
    log = "ValueError: Free memory on device (1/9 GiB) on startup is less than desired\nApplication startup complete.\n"
    failure = failure_of(f"{log}torch.OutOfMemoryError: CUDA out of memory.\n", "server.log", 1, was_ready=True)

    assert (failure.stage, failure.cause) == ("under-load", Cause.OOM_UNDER_LOAD)
    assert failure.line == "torch.OutOfMemoryError: CUDA out of memory."


def test_the_line_is_the_engines_own_without_time_process_and_level() -> None:
    line = "(EngineCore_DP0 pid=7) ERROR 01-01 10:00:00 [core.py:718] ValueError: Unsupported kv_cache_dtype: int3"

    assert failure_of(line, "server.log", 1).line == "ValueError: Unsupported kv_cache_dtype: int3"


def test_both_streams_are_read() -> None:
    logs = [Log("out", ["loading"]), Log("err", ["vllm serve: error: unrecognized arguments: --warp"])]
    failure = failure_of(logs, "server.log", 2, "vllm")

    assert (failure.cause, failure.implies[0].knob) == (Cause.UNKNOWN_FLAG, "--warp")


def test_a_start_that_took_too_long_is_a_timeout_unless_the_log_says_more() -> None:
    hung = "(E pid=1) INFO 01-01 10:00:00 [x.py:1] Starting to load model x\n"
    told = f"{hung}OSError: [Errno 28] No space left on device\n"

    assert failure_of(hung, "server.log", None, timed_out=True).cause is Cause.TIMEOUT
    assert failure_of(told, "server.log", None, timed_out=True).cause is Cause.DISK_FULL


def test_an_engines_guesses_about_itself_state_nothing() -> None:
    line = "ActorDiedError: The actor is dead. Some common causes include: (1) killed by the OOM killer, (2) SIGSEGV"

    assert failure_of(line, "server.log", 1).cause is Cause.UNKNOWN


def test_a_silent_end_is_told_by_its_signal_with_the_last_line() -> None:
    failure = failure_of("loading\n\n", "server.log", -signal.SIGKILL)

    assert (failure.cause, failure.line) == (Cause.KILLED, "loading (exit code -9)")
