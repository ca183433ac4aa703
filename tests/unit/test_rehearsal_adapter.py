"""The rehearsal adapter without a process: help, failures, what is in force."""

from __future__ import annotations

import pytest

from assay.engines.rehearsal import Rehearsal
from assay.engines.rehearsal_failures import classify, doing
from assay.engines.rehearsal_help import parse_help
from assay.records.machine import EngineBuild
from assay.rehearsal.faults import LAUNCH, UNDER_LOAD
from assay.rehearsal.flags import BUILT_IN, known_flags, parser
from assay.rehearsal.world_file import KnownFlag, WorldFile

STAMP = "[2026-11-30 12:00:00]"
OWN = KnownFlag(name="--runner", choices=["a", "b"], default="a", help="Kernels: faster, or not (default: see below).")


@pytest.fixture
def build() -> EngineBuild:
    text = parser(known_flags(WorldFile(flags=[OWN, KnownFlag(name="--fast", help="Be fast.")]))).format_help()
    return EngineBuild(engine="rehearsal", argv=["x"], version="0", source="simulated", flags=parse_help(text))


def test_the_help_is_read_back_as_the_flags_it_was_made_from(build: EngineBuild) -> None:
    assert [flag.names[0] for flag in build.flags] == [*(flag.name for flag in BUILT_IN), "--runner", "--fast"]
    runner, fast, port = (build.flag(name) for name in ("--runner", "--fast", "--port"))
    assert runner is not None
    assert runner.choices == ["a", "b"]
    assert fast is not None
    assert fast.value is None
    assert port is not None
    assert (port.value, port.default) == ("PORT", "8000")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"--runner": "c"}, "takes one of a, b"),
        ({"--runner": True}, "needs a value"),
        ({"--fast": 3}, "is a switch"),
        ({"--runer": "a"}, "nearest: --runner"),
        ({"--runner": "b", "--fast": True}, None),
        ({"--fast": False}, None),
    ],
)
def test_flags_are_checked_against_the_help(build: EngineBuild, flags: dict[str, object], said: str | None) -> None:
    found = Rehearsal().check_flags(build, flags)  # type: ignore[arg-type]

    assert found is None if said is None else found is not None and said in found


@pytest.mark.parametrize(
    ("effective", "fallbacks", "said"),
    [
        ({"steps": 1}, [], "the server reports --steps = 1"),
        ({"steps": 32.0}, [], None),
        ({}, [], None),
        ({"steps": 32}, ["--steps is not supported here, falling back to 1"], "falling back to 1"),
    ],
)
def test_a_flag_is_not_in_force_by_the_servers_own_word(
    effective: dict[str, object], fallbacks: list[str], said: str | None
) -> None:
    found = Rehearsal().in_force({"--steps": 32}, effective, fallbacks)

    assert found is None if said is None else found is not None and said in found


@pytest.mark.parametrize(
    ("log", "exit_code", "was_ready", "stage", "cause"),
    [
        ("assay-rehearsal: error: unrecognized arguments: --x", 2, False, "arguments", "unknown-flag"),
        ("assay-rehearsal: error: argument --tp-size: invalid int value: 'x'", 2, False, "arguments", "bad-value"),
        ("assay-rehearsal: error: layout tp7 is impossible: ...", 2, False, "arguments", "incompatible-combination"),
        (f"{STAMP} ERROR {LAUNCH['fails-load']}", 1, False, "load", "incompatible-combination"),
        (f"{STAMP} ERROR {LAUNCH['fails-kv-allocation']}", 1, False, "kv-cache", "kv-cache-too-small"),
        (f"{STAMP} ERROR {LAUNCH['fails-graph-capture']}", 1, False, "graph-capture", "graph-break"),
        (f"{STAMP} ERROR {UNDER_LOAD['oom-under-load']}", 1, True, "under-load", "oom-under-load"),
        (f"{STAMP} ERROR {UNDER_LOAD['crash']}", 1, True, "under-load", "illegal-memory-access"),
        (f"{STAMP} ERROR {UNDER_LOAD['hang']}", 1, True, "under-load", "hang"),
        (f"{STAMP} ERROR {UNDER_LOAD['leak']}", -9, True, "under-load", "host-oom"),
        (f"{STAMP} INFO all is well", -9, True, "under-load", "killed"),
        (f"{STAMP} INFO all is well", -11, True, "under-load", "crashed"),
        (f"{STAMP} INFO Load weight begin.", None, False, "weights", "timeout"),
    ],
)
def test_every_way_to_fail_has_its_stage_and_cause(
    log: str, exit_code: int | None, was_ready: bool, stage: str, cause: str
) -> None:
    found = classify(log, "server.log", exit_code, was_ready=was_ready, timed_out=exit_code is None)

    assert (found.stage, found.cause) == (stage, cause)
    assert found.line


def test_the_quoted_line_is_the_engines_own_without_its_stamp() -> None:
    log = f"{STAMP} INFO Load weight begin.\n{STAMP} ERROR Traceback (most recent call last):\n"
    log += f"{STAMP} ERROR RuntimeError: CUDA out of memory\n"

    assert classify(log, "server.log", 1, was_ready=False).line == (
        "RuntimeError: CUDA out of memory (while loading weights)"
    )


def test_what_a_server_that_starts_is_doing_is_read_from_its_log() -> None:
    assert doing(f"{STAMP} INFO Load weight begin.") == "loading weights"
    assert doing(f"{STAMP} INFO Load weight begin.\n{STAMP} INFO Capture cuda graph begin.") == "capturing graphs"
    assert doing(f"{STAMP} INFO The server is ready on http://x") is None
