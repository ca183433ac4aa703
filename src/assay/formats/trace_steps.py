"""The decode steps of a trace: where each begins, which are alike, and what their kernels are.

vLLM's worker annotates every step with its requests (`execute_context_0(0)_generation_64(64)`, with sums of tokens
where `detailed_trace_annotation` is on). A step begins with the first kernel that was launched inside of it: kernels of
a replayed graph carry the correlation of the graph's launch, so that this holds with graphs as well. Without such
annotations each launch of a large graph counts as a step. Source: vLLM 0.26.0, v1/worker/gpu_worker.py,
`annotate_profile`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from assay.formats.fields import clean
from assay.formats.kernel_kinds import kind_of
from assay.formats.spans import length, union
from assay.formats.step_operations import operations_of
from assay.records.traced_step import Operation, TracedKernel, TracedOperation, TracedSteps

_ANNOTATION = re.compile(
    r"^execute(?:_\d+)?_context_(\d+)\((?:sq)?\d+[^)]*\)_generation_(\d+)\((?:sq)?(\d+)(?:sk(\d+))?"
)
GRAPH_SHARE = 0.5
"""A graph with fewer of the kernels of the largest one is no step."""
TOP = 4
NS_S = 1e-9


@dataclass(frozen=True, slots=True)
class Mark:
    """The begin of a step on the device."""

    begin_ns: int
    sequences: int | None = None
    context_tokens: float | None = None
    prompts: bool = False
    """Prompts are computed in it, or several tokens of a sequence."""


@dataclass(frozen=True, slots=True)
class Span:
    """What the engine or the driver did on the host, in nanoseconds."""

    name: str
    begin_ns: int
    end_ns: int
    thread: object
    correlation: int = -1
    """-1 where it is none."""


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """The kernels and copies of one device in order of their begins."""

    begin_ns: np.ndarray
    end_ns: np.ndarray
    name: np.ndarray
    """Index into `names`."""
    correlation: np.ndarray
    """-1 where it is not told."""
    stream: np.ndarray
    names: Sequence[str]


def annotated(name: str) -> tuple[int, bool, float | None] | None:
    """Sequences of a step, whether it holds more than one token of each, and their tokens in the cache before it."""
    found = _ANNOTATION.match(name)
    if found is None:
        return None
    prompts, sequences, tokens = (int(each[:9]) for each in found.group(1, 2, 3))
    kept = found.group(4)
    context = (int(kept[:15]) - tokens) / sequences if kept and sequences else None
    return sequences, bool(prompts) or tokens != sequences or not sequences, context


def marks_of(work: DeviceWork, steps: Sequence[Span], launches: Sequence[Span]) -> list[Mark]:
    """Where the annotated steps begin on the device.

    Args:
        work: the device.
        steps: annotations, on the host.
        launches: calls of the driver with the correlations of what they launched.
    """
    first = _first_begins(work)
    ordered = sorted(launches, key=lambda one: one.begin_ns)
    begins = np.array([one.begin_ns for one in ordered], np.int64)
    found: list[Mark] = []
    for step in steps:
        told = annotated(step.name)
        low, high = np.searchsorted(begins, [step.begin_ns, step.end_ns])
        inside = [first[one.correlation] for one in ordered[low:high] if one.correlation in first]
        if told is not None and inside:
            found.append(Mark(min(inside), told[0], told[2], told[1]))
    return sorted(found, key=lambda mark: mark.begin_ns)


def marks_on_device(annotations: Sequence[Span]) -> list[Mark]:
    """Where they begin by the profiler's own copy of the annotations on the device: once for each stream."""
    took: Counter[object] = Counter()
    for span in annotations:
        took[span.thread] += span.end_ns - span.begin_ns
    main = took.most_common(1)[0][0] if took else None
    told = [(span.begin_ns, annotated(span.name)) for span in annotations if span.thread == main]
    return sorted(
        (Mark(begin_ns, one[0], one[2], one[1]) for begin_ns, one in told if one is not None),
        key=lambda mark: mark.begin_ns,
    )


def marks_of_graphs(work: DeviceWork, launches: Sequence[Span]) -> list[Mark]:
    """Each launch of a graph about as large as the largest."""
    graphs = [one.correlation for one in launches if "GraphLaunch" in one.name and one.correlation >= 0]
    kernels = Counter(work.correlation.tolist())
    largest = max((kernels[each] for each in graphs), default=0)
    first = _first_begins(work)
    begins = [first[each] for each in graphs if each in first and kernels[each] >= GRAPH_SHARE * largest]
    return [Mark(begin_ns) for begin_ns in sorted(begins)]


def decode_steps(
    work: DeviceWork, marks: Sequence[Mark], gap_limit_s: float, marked_by: Literal["engine", "graph launches"]
) -> TracedSteps | None:
    """The most frequent kind of decode step; None where no step is whole.

    The last step of a trace has no end and is left out.
    """
    pairs = list(pairwise(marks))
    usual = Counter(mark.sequences for mark, _ in pairs if not mark.prompts).most_common(1)
    if not usual:
        return None
    sequences = usual[0][0]
    alike = [(mark, after) for mark, after in pairs if not mark.prompts and mark.sequences == sequences]
    cuts = np.searchsorted(work.begin_ns, [[mark.begin_ns, after.begin_ns] for mark, after in alike])
    times, rows = [], _Rows(work)
    for (_, after), (low, high) in zip(alike, cuts, strict=True):
        if high > low:
            times.append(_times(work, low, high, after.begin_ns, gap_limit_s))
            rows.add(low, high)
    periods = [after.begin_ns - mark.begin_ns for mark, after in alike]
    if not times or float(np.median(periods)) <= 0:
        return None
    busy, short, long = (np.array(times).mean(axis=0) * NS_S).tolist()
    contexts = [mark.context_tokens for mark, _ in alike if mark.context_tokens is not None]
    return TracedSteps(
        marked_by=marked_by,
        steps=len(times),
        left_out=len(pairs) - len(times),
        sequences=sequences,
        context_tokens=float(np.mean(contexts)) if contexts else None,
        period_s=float(np.median(periods)) * NS_S,
        busy_s=busy,
        short_pauses_s=short,
        long_pauses_s=long,
        operations=rows.operations(len(times)),
    )


def _first_begins(work: DeviceWork) -> dict[int, int]:
    """Of each correlation the first kernel on the busiest stream: copies of the next step may run beside this one."""
    if not len(work.begin_ns):
        return {}
    streams, counts = np.unique(work.stream, return_counts=True)
    main = work.stream == streams[np.argmax(counts)]
    found: dict[int, int] = {}
    for correlation, begin_ns in zip(work.correlation[main].tolist(), work.begin_ns[main].tolist(), strict=True):
        if correlation >= 0:
            found.setdefault(correlation, begin_ns)
    return found


def _times(work: DeviceWork, low: int, high: int, end_ns: int, gap_limit_s: float) -> tuple[float, float, float]:
    """Busy, short pauses, long pauses of one step, the one before the next step included; nanoseconds."""
    intervals = union(work.begin_ns[low:high], work.end_ns[low:high])
    pauses = np.append(intervals[1:, 0], max(end_ns, int(intervals[-1, 1]))) - intervals[:, 1]
    short = pauses <= gap_limit_s * 1e9
    return length(intervals), float(pauses[short].sum()), float(pauses[~short].sum())


class _Rows:
    """Times and calls of operations and of their kernels, over the steps that were added."""

    def __init__(self, work: DeviceWork) -> None:
        self._work = work
        self._seconds: Counter[tuple[Operation, int]] = Counter()
        self._calls: Counter[tuple[Operation, int]] = Counter()

    def add(self, low: int, high: int) -> None:
        """One step's kernels."""
        work = self._work
        names = work.name[low:high].tolist()
        took = ((work.end_ns[low:high] - work.begin_ns[low:high]) * NS_S).tolist()
        operations = operations_of([kind_of(work.names[name]) for name in names])
        for operation, name, seconds in zip(operations, names, took, strict=True):
            self._seconds[operation, name] += seconds
            self._calls[operation, name] += 1

    def operations(self, steps: int) -> list[TracedOperation]:
        """Means of a step, longest first."""
        kernels: dict[Operation, list[TracedKernel]] = {}
        for (operation, name), seconds in self._seconds.most_common():
            calls = self._calls[operation, name] / steps
            one = TracedKernel(name=clean(self._work.names[name]), seconds=seconds / steps, calls=calls)
            kernels.setdefault(operation, []).append(one)
        found = [
            TracedOperation(
                operation=operation,
                seconds=sum(one.seconds for one in each),
                calls=sum(one.calls for one in each),
                kernels=each[:TOP],
            )
            for operation, each in kernels.items()
        ]
        return sorted(found, key=lambda one: -one.seconds)
