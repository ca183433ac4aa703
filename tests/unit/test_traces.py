"""Profilers' traces: what is read of them, and what damaged ones are refused with."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.formats.torch_trace import read_torch
from assay.formats.trace_spans import is_communication
from assay.formats.traces import read_trace
from assay.records.attribution import TraceFacts

GEMM, ATTENTION = "void cutlass::Kernel2<cutlass_80_tensorop>", "flash_fwd_kernel"
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
Span = tuple[str, float, float, int]
"""Name, begin and end in microseconds, device."""
STEP: list[Span] = [
    (GEMM, 0, 100, 0),
    (REDUCE, 80, 180, 0),  # 20 us beside the product, 80 us alone
    (ATTENTION, 190, 290, 0),  # after a launch gap of 10 us
    (GEMM, 790, 1000, 0),  # after 500 us of nothing
]


def event(name: str, begin_us: float, end_us: float, device: int = 0, **changes: Any) -> dict[str, Any]:
    fields = {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": 7, "ts": begin_us}
    return {**fields, "dur": end_us - begin_us, "args": {"device": device, "stream": 7}, **changes}


def host_events() -> list[dict[str, Any]]:
    """What else stands in such a file: all of it is to be passed over."""
    return [
        {"ph": "M", "name": "process_name", "pid": "Spans", "tid": 0, "args": {"name": "python"}},
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": 1,
            "tid": 1,
            "ts": 5,
            "dur": 3,
            "args": {"Ev Idx": "x"},
        },
        {"ph": "i", "s": "t", "name": "instant", "pid": 1, "tid": 1, "ts": 9},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": -5, "dur": 1e4},
    ]


def torch_file(folder: Path, spans: Sequence[Span], name: str = "trace.json") -> Path:
    content = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 1}],
        "traceEvents": [*host_events(), *(event(*span) for span in spans)],
    }
    path = folder / name
    raw = json.dumps(content).encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def nsys_file(folder: Path, spans: Sequence[Span]) -> Path:
    path = folder / "trace.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        connection.execute("CREATE TABLE TARGET_INFO_GPU (name TEXT)")
        connection.execute("INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA H100')")
        connection.execute(
            'CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, "end" INT, deviceId INT, streamId INT, shortName INT)'
        )
        names = sorted({span[0] for span in spans})
        connection.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names))
        rows = [(1000 * begin, 1000 * end, device, 7, names.index(name)) for name, begin, end, device in spans]
        connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?)", rows)
        connection.commit()
    return path


def parts_us(found: TraceFacts) -> list[float]:
    parts = (found.kernels_s, found.communication_s, found.overlapped_s, found.launch_gaps_s, found.idle_s)
    return [1e6 * part for part in parts]


def trouble(path: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_trace(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("kind", ["json", "json.gz", "nsys"])
def test_the_time_of_a_device_is_split_without_counting_any_of_it_twice(tmp_path: Path, kind: str) -> None:
    path = nsys_file(tmp_path, STEP) if kind == "nsys" else torch_file(tmp_path, STEP, f"trace.{kind}")

    found = read_trace(path)

    assert found.tool == ("nsys" if kind == "nsys" else "torch-profiler")
    assert (found.devices, found.device_name, found.num_kernels) == (1, "NVIDIA H100", 4)
    assert 1e6 * found.span_s == pytest.approx(1000)
    assert parts_us(found) == pytest.approx([410, 80, 20, 10, 500])
    assert (found.top[0].name, found.top[0].calls, 1e6 * found.top[0].seconds) == (GEMM, 2, pytest.approx(310))
    assert {kernel.name for kernel in found.top[1:]} == {ATTENTION, REDUCE}


@pytest.mark.parametrize("kind", ["json", "nsys"])
def test_several_devices_are_told_as_their_mean(tmp_path: Path, kind: str) -> None:
    spans = [*STEP, (GEMM, 0, 600, 1), (GEMM, 900, 1000, 1)]
    path = nsys_file(tmp_path, spans) if kind == "nsys" else torch_file(tmp_path, spans)

    found = read_trace(path)

    assert found.devices == 2
    assert parts_us(found) == pytest.approx([(410 + 700) / 2, 40, 10, 5, (500 + 300) / 2])


def test_kernels_of_several_streams_that_overlap_count_once(tmp_path: Path) -> None:
    found = read_trace(torch_file(tmp_path, [(GEMM, 0, 100, 0), (ATTENTION, 50, 150, 0), (GEMM, 60, 70, 0)]))

    assert parts_us(found) == pytest.approx([150, 0, 0, 0, 0])


def test_a_list_of_events_without_an_object_around_it_is_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "bare.json"
    path.write_text(json.dumps([event(*span) for span in STEP]), encoding="utf-8")

    assert parts_us(read_trace(path)) == pytest.approx([410, 80, 20, 10, 500])


def test_a_trace_with_python_stacks_says_that_they_slow_the_host(tmp_path: Path) -> None:
    path = tmp_path / "stacks.json"
    events = [event(*span) for span in STEP] + [event("f", 0, 5, cat="python_function")]
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")

    assert "Python stacks" in read_trace(path).notes[0]


@pytest.mark.parametrize(
    ("name", "communicates"),
    [
        (REDUCE, True),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", True),
        ("mscclpp_allreduce", True),
        ("triton_red_fused_add_mul", False),
        ("reduce_kernel<512, 1>", False),
        (GEMM, False),
    ],
)
def test_collectives_are_told_by_their_names(name: str, *, communicates: bool) -> None:
    assert is_communication(name) is communicates


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no trace that is read"),
        (b"PK\x03\x04 a zip", "no trace that is read"),
        (b"{", "not whole JSON"),
        (b"[]", "no kernel ran"),
        (b"{}", "no torch-profiler trace"),
        (b'{"traceEvents": {}}', "no torch-profiler trace"),
        (b'{"traceEvents": [1]}', "no torch-profiler trace"),
        (b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": 5}]}', "no torch-profiler trace"),
        (b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "soon", "dur": 1}]}', "no microseconds"),
        (b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": -1}]}', "no microseconds"),
        (b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1e300, "dur": 1}]}', "no microseconds"),
        (b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 0}]}', "take no time"),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"device": 1e9}}]}',
            "no torch-profiler trace",
        ),
        (b'{"traceEvents": [], "other": [' + b"[" * 100_000, "not whole JSON"),
        (b"\x1f\x8b" + b"not gzip at all", "cut short or damaged"),
        (b"SQLite format 3\x00" + b"and nothing more", "damaged or cut short"),
    ],
)
def test_what_is_no_whole_trace_is_refused_with_what_to_do(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)

    assert said in trouble(path).message


def test_a_report_of_nsys_is_refused_with_the_command_that_exports_it(tmp_path: Path) -> None:
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(b"\x00\x01\x02")

    assert f"nsys export --type sqlite {path}" in str(trouble(path).hint)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "cannot read" in trouble(tmp_path / "missing.json").message


def test_a_trace_larger_than_what_fits_into_memory_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * (1 << 20)))

    with pytest.raises(UsageError, match=r"more than 0\.0625 MiB of JSON"):
        read_torch(path, gzipped=True, most_bytes=1 << 16)


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE events (seq INTEGER)")
    assert "no CUDA activity" in trouble(path).message


@pytest.mark.parametrize(
    "columns", ['start INT, "end" TEXT, deviceId INT', "start INT, finish INT, deviceId INT", 'start REAL, "end" REAL']
)
def test_a_database_with_other_columns_is_refused(tmp_path: Path, columns: str) -> None:
    path = tmp_path / "trace.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({columns})")
        marks = ", ".join("?" * (columns.count(",") + 1))
        insert = f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({marks})"  # noqa: S608 - made of question marks
        connection.execute(insert, (1.5, "x", 0)[: marks.count("?")])
        connection.commit()
    trouble(path)


def read_or_refuse(path: Path) -> None:
    """Any content: a result, or an error with a hint, and nothing else."""
    try:
        found = read_trace(path)
    except UsageError as error:
        assert error.hint  # noqa: PT017 - either outcome is right
    else:
        assert found.span_s > 0


FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(data=st.data())
@pytest.mark.parametrize("kind", ["json", "json.gz", "nsys"])
def test_a_damaged_trace_is_read_or_refused_and_nothing_else(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    whole = tmp_path / f"whole-{kind}"
    if not whole.exists():
        made = nsys_file(tmp_path, STEP) if kind == "nsys" else torch_file(tmp_path, STEP, f"trace.{kind}")
        whole.write_bytes(made.read_bytes())
    raw = bytearray(whole.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=8)):
        raw[place] = data.draw(st.integers(0, 255))
    damaged = tmp_path / f"damaged-{kind}"
    damaged.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])

    read_or_refuse(damaged)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=8), inside, max_size=3),
    max_leaves=6,
)


@FUZZ
@given(
    changes=st.lists(
        st.dictionaries(st.sampled_from(["ph", "cat", "name", "ts", "dur", "args", "pid"]), ANY), max_size=4
    )
)
def test_events_with_values_of_any_type_are_read_or_refused(tmp_path: Path, changes: list[dict[str, Any]]) -> None:
    path = tmp_path / "typed.json"
    events = [event(*STEP[0]), *(event(*STEP[1]) | change for change in changes)]
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")

    read_or_refuse(path)
