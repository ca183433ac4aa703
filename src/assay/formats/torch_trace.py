"""torch-profiler's Chrome trace: a JSON object whose `traceEvents` hold kernels as complete events ("ph": "X").

Source of the fields: the Trace Event Format, and the categories that PyTorch's Kineto writes (`kernel`, `gpu_memcpy`,
`gpu_memset`; `args.device`, `args.stream`, `args.correlation`; `cuda_runtime` and `cuda_driver`, whose calls have the
correlations of what they launched; `user_annotation`, and `gpu_user_annotation` for each stream). Times are
microseconds.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from assay.errors import UsageError
from assay.formats import trace_steps
from assay.formats.trace_spans import GAP_LIMIT_S, Kernels, summary
from assay.formats.trace_steps import DeviceWork, Span
from assay.records.attribution import TraceFacts
from assay.records.traced_step import TracedSteps

MOST_BYTES = 1 << 30
"""Of JSON, unpacked: it is held in memory while it is read."""
ON_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
LAUNCHES = frozenset({"cuda_runtime", "cuda_driver"})
LARGEST_ID = 1 << 62
US_NS = 1000.0
LARGEST_US = 4e15
"""A century and more: an event beyond it would overflow the clock in nanoseconds."""
DAMAGED = "was the profiler stopped before it had written everything? profile a few steps again"
SMALLER = "profile fewer steps: a handful of decode steps is enough"


class _Event(msgspec.Struct):
    """Of a trace event what is needed; everything else stays unparsed."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float | str = 0.0
    dur: float = 0.0
    pid: msgspec.Raw = msgspec.Raw(b"")
    tid: msgspec.Raw = msgspec.Raw(b"")
    args: msgspec.Raw = msgspec.Raw(b"")


class _Args(msgspec.Struct):
    device: int | None = None
    stream: int | str | None = None
    correlation: int | None = None


class _Device(msgspec.Struct):
    name: str = ""


class _Trace(msgspec.Struct):
    traceEvents: list[_Event]  # noqa: N815 - the file's spelling
    deviceProperties: list[_Device] = []  # noqa: N815 - the same; msgspec copies it


def read_torch(path: Path, *, gzipped: bool, most_bytes: int = MOST_BYTES) -> TraceFacts:
    """Where the devices' time went.

    Args:
        path: the trace.
        gzipped: whether it is packed.
        most_bytes: of JSON, unpacked, that are read.

    Raises:
        UsageError: it is cut short, damaged, too large, not such a trace, or without device activity.
    """
    raw = _content(path, most_bytes, gzipped=gzipped)
    try:
        trace = msgspec.json.decode(raw, type=_Trace) if raw.lstrip()[:1] == b"{" else _bare(raw)
        kernels, ids = _kernels(path, trace.traceEvents)
        decode = _decode(kernels, ids, trace.traceEvents)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{path}: this is no torch-profiler trace: {error}", hint="give the file that the profiler wrote, unedited"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: this is not whole JSON: {error}", hint=DAMAGED) from error
    name = trace.deviceProperties[0].name if trace.deviceProperties else ""
    notes = _notes(trace.traceEvents)
    return summary(kernels, "torch-profiler", str(path), device_name=name, notes=notes, decode=decode)


def _bare(raw: bytes) -> _Trace:
    """A list of events without an object around it, as the format allows."""
    return _Trace(traceEvents=msgspec.json.decode(raw, type=list[_Event]))


def _content(path: Path, most_bytes: int, *, gzipped: bool) -> bytes:
    try:
        with gzip.open(path) if gzipped else path.open("rb") as source:
            raw: bytes = source.read(most_bytes + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path}: the compressed trace is cut short or damaged: {error}", hint=DAMAGED) from error
    except (OSError, MemoryError) as error:
        raise UsageError(f"{path}: cannot read it: {error}", hint=SMALLER) from error
    if len(raw) > most_bytes:
        raise UsageError(f"{path}: more than {most_bytes / 2**20:g} MiB of JSON", hint=SMALLER)
    return raw


def _kernels(path: Path, events: Iterable[_Event]) -> tuple[Kernels, np.ndarray]:
    """What ran on devices, and of each the correlation of its launch and its stream."""
    numbers: dict[str, int] = {}
    rows: list[tuple[int, ...]] = []
    for event in events:
        if event.ph != "X" or event.cat not in ON_DEVICE:
            continue
        begin_us = event.ts if isinstance(event.ts, float) else _float(path, event)
        if not (0 <= begin_us <= LARGEST_US and 0 <= event.dur <= LARGEST_US):
            _impossible(path, event)
        begin_ns = round(begin_us * US_NS)
        name = numbers.setdefault(event.name, len(numbers))
        args = _args(event)
        ids = _id(args.correlation), _id(args.stream)
        rows.append((_device(event, args), begin_ns, begin_ns + round(event.dur * US_NS), name, *ids))
    table = np.array(rows, np.int64).reshape(-1, 6)
    return Kernels(table[:, 0], table[:, 1], table[:, 2], table[:, 3], list(numbers)), table[:, 4:]


def _decode(kernels: Kernels, ids: np.ndarray, events: Sequence[_Event]) -> TracedSteps | None:
    """The decode steps of the device with the most kernels."""
    if not len(kernels.begin_ns):
        return None
    devices, counts = np.unique(kernels.device, return_counts=True)
    mine = np.flatnonzero(kernels.device == devices[np.argmax(counts)])
    mine = mine[np.argsort(kernels.begin_ns[mine], kind="stable")]
    work = DeviceWork(
        kernels.begin_ns[mine], kernels.end_ns[mine], kernels.name[mine], ids[mine, 0], ids[mine, 1], kernels.names
    )
    launches = [span for event in events if event.cat in LAUNCHES for span in _span(event, launch=True)]
    marks = trace_steps.marks_of(work, _annotations(events, "user_annotation"), launches)
    marks = marks or trace_steps.marks_on_device(_annotations(events, "gpu_user_annotation"))
    if marks:
        return trace_steps.decode_steps(work, marks, GAP_LIMIT_S, "engine")
    return trace_steps.decode_steps(work, trace_steps.marks_of_graphs(work, launches), GAP_LIMIT_S, "graph launches")


def _annotations(events: Iterable[_Event], category: str) -> list[Span]:
    found = (event for event in events if event.cat == category and trace_steps.annotated(event.name))
    return [span for event in found for span in _span(event, launch=False)]


def _span(event: _Event, *, launch: bool) -> list[Span]:
    """One span, or none where its times are none: the host's events are evidence beside the devices'."""
    try:
        begin_us = float(event.ts)
    except ValueError:
        return []
    if event.ph != "X" or not (0 <= begin_us <= LARGEST_US and 0 <= event.dur <= LARGEST_US):
        return []
    begin_ns = round(begin_us * US_NS)
    correlation = _id(_args(event).correlation) if launch else -1
    thread = bytes(event.pid), bytes(event.tid)
    return [Span(event.name, begin_ns, begin_ns + round(event.dur * US_NS), thread, correlation)]


def _args(event: _Event) -> _Args:
    """What is no small number is refused by the parser."""
    return msgspec.json.decode(event.args, type=_Args) if event.args else _Args()


def _id(told: int | str | None) -> int:
    """-1 where it is not told, or is none."""
    return told if isinstance(told, int) and 0 <= told < LARGEST_ID else -1


def _device(event: _Event, args: _Args) -> int:
    """0 where the event does not say."""
    found = args.device
    if found is not None and not -1 <= found < 1 << 16:
        raise msgspec.ValidationError(f"`args.device` of {event.name[:60]!r} is {found}")
    return found or 0


def _float(path: Path, event: _Event) -> float:
    try:
        return float(event.ts)
    except ValueError:
        _impossible(path, event)


def _impossible(path: Path, event: _Event) -> NoReturn:
    raise UsageError(
        f"{path}: {event.name[:60]!r} has ts = {event.ts!r}, dur = {event.dur!r}: no microseconds", hint=DAMAGED
    )


def _notes(events: Iterable[_Event]) -> list[str]:
    """What of the trace makes its times other than those of serving."""
    notes: list[str] = []
    found: set[Any] = {event.cat for event in events}
    if "python_function" in found:
        notes.append("recorded with Python stacks: the host was slowed down, and idle times are too long")
    return notes
