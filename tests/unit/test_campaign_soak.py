"""What a load that passed says of the server that was soaked by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.campaign.soak import Looked, cut_short, judged
from assay.plan.soak_words import told
from assay.probes.machine import MachineProbe
from assay.records.load import LoadResult, RequestSample
from assay.records.run import Gate
from assay.records.soak import Soak
from assay.records.spec import Gates, Workload
from assay.units import GIB_BYTES, MIB_BYTES, NS_PER_S
from tests.unit import fake_nvml

SECONDS = 60
LOAD = Workload(concurrency=4)


def request(at_s: int, *, error: str | None = None, phase: str = "measured") -> RequestSample:
    sent = at_s * NS_PER_S
    return RequestSample(
        index=at_s, stream=0, intended_ns=sent, sent_ns=sent, first_content_ns=sent + 1,
        chunk_ns=[sent + NS_PER_S // 2], ended_ns=sent + NS_PER_S, input_tokens=8, output_tokens=8, cached_tokens=0,
        wanted_output_tokens=8, status=200, finish_reason="length", first_text="a", error=error, phase=phase,
    )  # fmt: skip


def soak(samples: list[RequestSample], held: list[int | None], gpu: list[int | None] | None = None) -> Soak:
    looked = Looked(at_ns=[at * NS_PER_S for at in range(1, len(held) + 1)])
    looked.held = {"server": held, "GPU": gpu or [None] * len(held)}
    steady = Gate(name="steady", passed=False, evidence="chunks: 1, 9, 3")
    began_ns = min((one.sent_ns for one in samples if one.phase != "warm-up"), default=None)
    result = LoadResult(samples=samples, measures=None, gates=[steady], load_began_ns=0, windows_began_ns=began_ns)
    return judged("main", LOAD, result, looked, Gates())


LOADED = [request(at) for at in range(1, SECONDS)]
FLAT: list[int | None] = [GIB_BYTES] * SECONDS
GROWING: list[int | None] = [GIB_BYTES + at * MIB_BYTES for at in range(SECONDS)]


def test_memory_that_stays_passes_and_memory_that_grows_does_not() -> None:
    assert soak(LOADED, FLAT).passed
    found = soak(LOADED, GROWING)
    assert found.passed is False
    assert "memory of the server grows (+60 MiB/min" in told(found)


def test_growth_below_what_an_allocator_takes_at_once_is_not_called_growth() -> None:
    page = MIB_BYTES // 64  # 1 KiB/s would be 3.5% an hour; 16 KiB/s is 56%, and still below 2 MiB within the soak
    assert soak(LOADED, [GIB_BYTES // 10 + at * page for at in range(SECONDS)]).passed


def test_a_large_server_may_grow_by_a_share_of_itself() -> None:
    step = round(0.08 * 100 * GIB_BYTES / 3600)
    assert soak(LOADED, [100 * GIB_BYTES + at * step for at in range(SECONDS)]).passed
    assert soak(LOADED, [100 * GIB_BYTES + at * 2 * step for at in range(SECONDS)]).passed is False


def test_the_memory_of_gpus_is_judged_where_the_probe_has_it() -> None:
    found = soak(LOADED, FLAT, gpu=GROWING)
    assert found.passed is False
    assert [trend.where for trend in found.memory if trend.grows] == ["GPU"]


def test_what_is_not_known_is_said() -> None:
    found = soak(LOADED, [None] * SECONDS)
    assert found.passed
    assert "memory of the server is not known" in told(found)


def test_a_failed_request_fails_it_and_one_that_the_drain_cut_does_not() -> None:
    assert soak([*LOADED, request(30, error="http-500")], FLAT).passed is False
    assert soak([*LOADED, request(59, error="cut", phase="drain")], FLAT).passed


def test_a_server_that_falls_silent_for_good_fails_it() -> None:
    found = soak([request(at) for at in range(1, SECONDS // 3)], FLAT)
    assert found.passed is False
    assert "no token came for the last 40 s" in told(found)


def test_answers_longer_than_the_soak_are_no_silence() -> None:
    long = request(1, error="cut", phase="drain")
    long = replace(long, chunk_ns=[at * NS_PER_S for at in range(1, SECONDS)], ended_ns=SECONDS * NS_PER_S)
    found = soak([long], FLAT)
    assert found.passed
    assert found.soaked_s > 50


def test_a_load_that_never_became_steady_says_nothing() -> None:
    found = soak([request(at, phase="warm-up") for at in range(SECONDS)], GROWING)
    assert found.passed is None
    assert told(found) == "not soaked: steady: chunks: 1, 9, 3"


@pytest.mark.parametrize("boards", [0, 2])
def test_memory_in_use_is_summed_over_the_gpus(boards: int) -> None:
    nvml = fake_nvml.FakeNvml(boards=[fake_nvml.h200(number) for number in range(boards)])
    each = nvml.nvmlDeviceGetMemoryInfo(nvml.boards[0]).used if boards else None

    assert MachineProbe(nvml=nvml).gpu_memory_bytes() == (2 * each if each is not None else None)


def test_a_soak_that_a_dying_server_ends_is_told_with_one_time() -> None:
    found = soak([request(1, phase="warm-up")], FLAT[:1]).model_copy(
        update={"died": "host-oom at stage under-load: Killed, 1 s into a soak at peak load"}
    )

    assert found.soaked_s == 0
    assert told(found) == (
        "soaked at 4 streams: 1 request, none failed, and then the server died: host-oom at stage under-load: "
        "Killed, 1 s into a soak at peak load; memory was not looked at"
    )


def test_ctrl_c_beside_a_dead_server_keeps_the_seconds_that_passed_and_counts_no_requests() -> None:
    found = cut_short(LOAD, 42.0).model_copy(update={"died": "host-oom, 42 s into a soak at peak load"})

    assert found.soaked_s == 42.0
    assert found.passed is False
    assert "soaked at 4 streams: interrupted by Ctrl-C before its requests were counted, and then" in told(found)
