"""Times of kernels on devices, as sums that do not count twice: what ran, what communicated, what did not run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay.errors import UsageError
from assay.formats.fields import clean
from assay.formats.kernel_kinds import kind_of
from assay.formats.spans import length, union
from assay.records.attribution import KernelTime, TraceFacts
from assay.records.traced_step import TracedSteps

GAP_LIMIT_S = 20e-6
"""A pause up to here is a launch gap: one launch takes 4 to 10 microseconds; a longer one is the host at other work."""
TOP = 12


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
    return kind_of(name) == "communication"


def summary(
    kernels: Kernels,
    tool: Literal["torch-profiler", "nsys"],
    file: str,
    *,
    device_name: str,
    notes: Iterable[str] = (),
    decode: TracedSteps | None = None,
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
        decode=decode,
        notes=list(notes),
    )


def _device(kernels: Kernels, mine: np.ndarray, communicates: np.ndarray) -> tuple[float, ...]:
    """Span, computing, communicating alone, both at once, short pauses, long pauses; nanoseconds."""
    everything = union(kernels.begin_ns[mine], kernels.end_ns[mine])
    computing = union(kernels.begin_ns[mine & ~communicates], kernels.end_ns[mine & ~communicates])
    talking = union(kernels.begin_ns[mine & communicates], kernels.end_ns[mine & communicates])
    busy, computed, talked = length(everything), length(computing), length(talking)
    pauses = everything[1:, 0] - everything[:-1, 1]
    short = pauses <= GAP_LIMIT_S * 1e9
    span = float(everything[-1, 1] - everything[0, 0])
    alone = busy - computed
    return span, computed, alone, talked - alone, float(pauses[short].sum()), float(pauses[~short].sum())


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
