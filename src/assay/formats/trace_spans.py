"""Times of kernels on devices, as sums that do not count twice: what ran, what communicated, what did not run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.errors import UsageError
from assay.formats.fields import clean
from assay.records.attribution import KernelTime, TraceFacts

GAP_LIMIT_S = 20e-6
"""A pause up to here is a launch gap: one launch takes 4 to 10 microseconds; a longer one is the host at other work."""
TOP = 12
_COMMUNICATION = re.compile(
    r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device|one_?shot|two_?shot|mscclpp|deep_?ep"
    r"|nvshmem|symm_?mem|custom_ar|quick_?reduce",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Kernels:
    """Everything that ran on devices: one entry an activity, in any order."""

    device: np.ndarray
    begin_ns: np.ndarray
    end_ns: np.ndarray
    name: np.ndarray
    """Index into `names`."""
    names: Sequence[str]


def is_communication(name: str) -> bool:
    """Whether a kernel's name is that of a collective or of a library that makes them."""
    return _COMMUNICATION.search(name) is not None


def summary(
    kernels: Kernels, tool: Literal["torch-profiler", "nsys"], file: str, *, device_name: str, notes: Iterable[str] = ()
) -> TraceFacts:
    """The times of one device, as the mean over devices.

    Raises:
        UsageError: there is no device activity, or its times are impossible.
    """
    if not len(kernels.begin_ns):
        raise UsageError(
            f"{file}: no kernel ran on any device in this trace",
            hint="profile with device activity: ProfilerActivity.CUDA, or `nsys profile --trace cuda`",
        )
    if bool(np.any(kernels.end_ns < kernels.begin_ns)):
        raise UsageError(f"{file}: a kernel ends before it begins", hint="the trace is damaged: write it again")
    communicates = np.array([is_communication(name) for name in kernels.names], bool)[kernels.name]
    devices = np.unique(kernels.device)
    times = np.array([_device(kernels, kernels.device == device, communicates) for device in devices])
    span, computing, alone, both, short, long = (times.mean(axis=0) / 1e9).tolist()
    if span <= 0:
        raise UsageError(f"{file}: all kernels together take no time", hint="profile several steps")
    return TraceFacts(
        tool=tool,
        file=file,
        devices=len(devices),
        device_name=clean(device_name),
        span_s=span,
        kernels_s=computing,
        communication_s=alone,
        overlapped_s=both,
        launch_gaps_s=short,
        idle_s=long,
        gap_limit_s=GAP_LIMIT_S,
        num_kernels=len(kernels.begin_ns),
        top=_top(kernels),
        notes=list(notes),
    )


def _device(kernels: Kernels, mine: np.ndarray, communicates: np.ndarray) -> tuple[float, ...]:
    """Span, computing, communicating alone, both at once, short pauses, long pauses; nanoseconds."""
    everything = _union(kernels.begin_ns[mine], kernels.end_ns[mine])
    computing = _union(kernels.begin_ns[mine & ~communicates], kernels.end_ns[mine & ~communicates])
    talking = _union(kernels.begin_ns[mine & communicates], kernels.end_ns[mine & communicates])
    busy, computed, talked = _length(everything), _length(computing), _length(talking)
    pauses = everything[1:, 0] - everything[:-1, 1]
    short = pauses <= GAP_LIMIT_S * 1e9
    span = float(everything[-1, 1] - everything[0, 0])
    alone = busy - computed
    return span, computed, alone, talked - alone, float(pauses[short].sum()), float(pauses[~short].sum())


def _union(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Disjoint intervals (begin, end) in order: streams overlap, and time runs once."""
    if not len(begin):
        return np.empty((0, 2), np.int64)
    order = np.argsort(begin, kind="stable")
    begins, ends = begin[order], np.maximum.accumulate(end[order])
    starts = np.concatenate(([True], begins[1:] > ends[:-1]))
    last = np.concatenate((np.flatnonzero(starts)[1:] - 1, [len(begins) - 1]))
    return np.stack((begins[starts], ends[last]), axis=1)


def _length(intervals: np.ndarray) -> float:
    return float((intervals[:, 1] - intervals[:, 0]).sum())


def _top(kernels: Kernels) -> list[KernelTime]:
    took = (kernels.end_ns - kernels.begin_ns).astype(float)
    seconds = np.bincount(kernels.name, weights=took, minlength=len(kernels.names)) / 1e9
    calls = np.bincount(kernels.name, minlength=len(kernels.names))
    longest = np.argsort(-seconds, kind="stable")[:TOP]
    return [
        KernelTime(name=clean(kernels.names[place]), seconds=float(seconds[place]), calls=int(calls[place]))
        for place in longest
        if calls[place]
    ]
