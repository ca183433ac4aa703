"""A dead server's log becomes a stage, a cause, and the line a good engineer would quote."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.engines.llamacpp_failures import classify

LOGS = {
    "unknown-flag": ("arguments", "error: invalid argument: --frobnicate\n", "--frobnicate"),
    "bad-value": (
        "arguments",
        'error while handling argument "--cache": Unsupported type: q9\n\nusage:\n--cache T\n',
        "q9",
    ),
    "model-not-found": (
        "load",
        "0.01 I srv load_model: loading model 'x.gguf'\n"
        "0.02 E gguf_init_from_file: failed to open GGUF file 'x.gguf' (No such file or directory)\n"
        "0.03 E srv load_model: failed to load model, 'x.gguf'\nTraceback (most recent call last):\nRuntimeError: no\n",
        "failed to open GGUF file",
    ),
    "model-corrupt": (
        "weights",
        "0.1 E llama_model_load: tensor 'a' data is not within the file bounds, model is corrupted or incomplete\n"
        "0.2 E srv load_model: failed to load model\n",
        "not within the file bounds",
    ),
    "oom-at-load": (
        "kv-cache",
        "0.1 E ggml_aligned_malloc: insufficient memory (attempted to allocate 9000000.00 MB)\n"
        "0.2 E llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache\n",
        "insufficient memory",
    ),
    "port-in-use": (
        "load",
        "0.1 E srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 1\n",
        "bind",
    ),
    "incompatible-combination": (
        "load",
        "0.1 E llama_init_from_model: quantized V cache requires flash_attn to be enabled\n"
        "0.2 E cmn common_init_: failed to create context with model 'x'\n"
        "0.3 E srv init: exiting due to model loading error\n",
        "requires flash_attn",
    ),
}


@pytest.mark.parametrize("cause", LOGS)
def test_the_root_cause_is_named_and_its_line_quoted(cause: str) -> None:
    stage, log, quoted = LOGS[cause]
    failure = classify(log, "server.log", 1, was_ready=False)
    assert (failure.stage, failure.cause) == (stage, cause)
    assert quoted in failure.line
    assert "Traceback" not in failure.line


@pytest.mark.parametrize(
    ("exit_code", "cause"),
    [
        (-signal.SIGILL, "illegal-instruction"),
        (-signal.SIGKILL, "killed"),
        (-signal.SIGSEGV, "crashed"),
        (-signal.SIGTERM, "killed"),
        (128 + signal.SIGKILL, "killed"),
        (128 + signal.SIGILL, "illegal-instruction"),
        (7, "unknown"),
    ],
)
def test_a_silent_death_is_judged_by_its_exit_code(exit_code: int, cause: str) -> None:
    failure = classify("0.1 I srv load_model: loading model\n", "server.log", exit_code, was_ready=False)
    assert failure.cause == cause
    assert str(exit_code) in failure.line


def test_a_server_that_dies_after_it_served_failed_under_load() -> None:
    failure = classify("0.1 I srv init: model loaded\nGGML_ASSERT(n > 0) failed\n", "server.log", -6, was_ready=True)
    assert (failure.stage, failure.cause) == ("under-load", "engine-assertion")


def test_a_warning_is_never_the_cause() -> None:
    log = (
        "0.1 I loading\nwarning: failed to mlock 9-byte buffer: Cannot allocate memory\n"
        "0.00.000.002 W srv init: cache.json: No such file or directory\n"
    )
    assert classify(log, "server.log", -signal.SIGSEGV, was_ready=False).cause == "crashed"
    assert classify(log, "server.log", 1, was_ready=False).cause == "unknown"


def test_trouble_that_the_server_overcame_is_not_what_killed_it() -> None:
    log = (
        "0.00.000.001 E gguf_init_from_file: failed to open GGUF file 'draft' (No such file or directory)\n"
        "0.00.000.002 I srv init: model loaded\n0.00.000.003 I slot launch_slot_: processing task\n"
    )
    failure = classify(log, "server.log", -signal.SIGKILL, was_ready=True)
    assert (failure.stage, failure.cause) == ("under-load", "killed")
    assert "processing task" in failure.line


def test_an_error_without_a_rule_is_quoted_rather_than_the_last_line() -> None:
    log = "0.00.000.001 E srv init: failed to frobnicate\n0.00.000.002 I srv: cleaning up\nembedded server: no\n"
    failure = classify(log, "server.log", 1, was_ready=False)
    assert failure.cause == "unknown"
    assert "frobnicate" in failure.line


def test_a_start_that_takes_too_long_is_a_timeout() -> None:
    assert classify("0.1 I loading\n", "server.log", None, was_ready=False, timed_out=True).cause == "timeout"


@given(st.text(max_size=300), st.one_of(st.none(), st.integers(-64, 255)), st.booleans())
def test_arbitrary_logs_always_give_a_failure_with_a_line(log: str, exit_code: int | None, ready: bool) -> None:
    failure = classify(log, "server.log", exit_code, was_ready=ready)
    assert failure.cause
    assert failure.line
