"""What will spoil or bound a measurement on this machine: facts in, findings out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.records.machine import Finding
from assay.units import GIB_BYTES, MIB_BYTES

CORES_WANTED = 2
BUSY_LOAD_PER_CORE = 0.5
SWAP_IN_USE_BYTES = 64 * MIB_BYTES
MEMORY_WANTED_BYTES = GIB_BYTES
DISK_WANTED_BYTES = GIB_BYTES
DISK_NEEDED_BYTES = 64 * MIB_BYTES
_SELF_GOVERNING = {"intel_pstate", "amd-pstate-epp"}
"""Drivers whose "powersave" still raises the clock under load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How the machine is right now; None where it cannot be known, and then nothing is said about it."""

    logical_cores: int
    affinity_cores: int
    quota_cores: float | None
    load_1m: float | None
    governors: frozenset[str]
    frequency_driver: str | None
    swap_used_bytes: int | None
    available_memory_bytes: int | None
    free_disk_bytes: int | None
    folder: str
    servers: list[tuple[int, str]]
    """Process id and program of inference servers that are not ours."""


def usable_cores(logical: int, affinity: int, quota: float | None) -> int:
    """Whole cores that this process can keep busy, at least one."""
    allowed = min(logical, affinity)
    return max(1, allowed if quota is None else min(allowed, int(quota)))


def findings(now: Conditions) -> list[Finding]:
    """Everything worth a line, blockers first."""
    order = {"blocker": 0, "warning": 1, "note": 2}
    every = [*_processors(now), *_clock(now), *_memory(now), *_disk(now), *_servers(now)]
    return sorted(every, key=lambda finding: order[finding.severity])


def _processors(now: Conditions) -> Iterator[Finding]:
    usable = usable_cores(now.logical_cores, now.affinity_cores, now.quota_cores)
    if usable < CORES_WANTED:
        yield Finding(
            severity="warning",
            title="The load generator and the server share one core",
            evidence=f"usable cores: {usable} (of {now.logical_cores} logical; affinity {now.affinity_cores})",
            remedy="Use a machine, or a container limit, with at least 2 cores; else expect invalid runs.",
        )
    if now.quota_cores is not None and now.quota_cores < min(now.logical_cores, now.affinity_cores):
        yield Finding(
            severity="warning",
            title="A container quota throttles the CPU",
            evidence=f"quota: {now.quota_cores:g} cores, processors in sight: {now.affinity_cores}",
            remedy="Raise the quota to whole cores, or pin cores (cpuset) instead: a quota stops threads in mid-step.",
        )
    if now.load_1m is not None and now.load_1m > BUSY_LOAD_PER_CORE * usable:
        yield Finding(
            severity="warning",
            title="The machine is busy",
            evidence=f"load over the last minute: {now.load_1m:.2f} on {usable} usable cores",
            remedy="End other work, or wait, before a campaign; foreign CPU time invalidates runs.",
        )


def _clock(now: Conditions) -> Iterator[Finding]:
    if "powersave" in now.governors:
        harmless = now.frequency_driver in _SELF_GOVERNING
        yield Finding(
            severity="note" if harmless else "warning",
            title="The frequency governor saves power",
            evidence=f"governor: {', '.join(sorted(now.governors))}; driver: {now.frequency_driver or 'unknown'}",
            remedy="For steadier numbers: `cpupower frequency-set -g performance` (root).",
        )


def _memory(now: Conditions) -> Iterator[Finding]:
    if now.swap_used_bytes is not None and now.swap_used_bytes > SWAP_IN_USE_BYTES:
        yield Finding(
            severity="warning",
            title="Swap is in use",
            evidence=f"swapped out: {_mib(now.swap_used_bytes)}",
            remedy="End what does not fit into memory; a page of the model read from swap stalls a whole step.",
        )
    if now.available_memory_bytes is not None and now.available_memory_bytes < MEMORY_WANTED_BYTES:
        yield Finding(
            severity="warning",
            title="Little memory is available",
            evidence=f"available: {_mib(now.available_memory_bytes)}",
            remedy="The model, its KV cache and Assay (250 MiB) have to fit: end programs, or take a smaller model.",
        )


def _disk(now: Conditions) -> Iterator[Finding]:
    if now.free_disk_bytes is not None and now.free_disk_bytes < DISK_WANTED_BYTES:
        yield Finding(
            severity="blocker" if now.free_disk_bytes < DISK_NEEDED_BYTES else "warning",
            title="Little disk space is left",
            evidence=f"free at {now.folder}: {_mib(now.free_disk_bytes)}",
            remedy="Free some space, or put the campaign elsewhere (`--folder`).",
        )


def _servers(now: Conditions) -> Iterator[Finding]:
    for pid, program in now.servers:
        yield Finding(
            severity="warning",
            title="Another inference server is running",
            evidence=f"process {pid}: {program}",
            remedy=f"Stop it if it is yours (`kill -INT {pid}`): it competes for memory bandwidth even when it is idle "
            "on the CPU meter.",
        )


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB_BYTES:.0f} MiB"
