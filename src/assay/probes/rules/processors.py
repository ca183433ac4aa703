"""Rules about processors: how many, how free, how fast."""

from __future__ import annotations

from assay.probes.rules.say import note, warning
from assay.records.machine import Finding
from assay.records.snapshot import MachineSnapshot

CORES_WANTED = 2
CORES_BESIDE_GPUS = 2
"""An API server and a scheduler, beside one worker for each GPU, all of which poll."""
BUSY_LOAD_PER_CORE = 0.5
STEAL_SHARE = 0.01
_SELF_GOVERNING = {"intel_pstate", "amd-pstate-epp"}
"""Drivers whose "powersave" still raises the clock under load."""


def few_cores(seen: MachineSnapshot) -> Finding | None:
    """Too few to load a server without slowing it."""
    machine = seen.machine
    if machine.usable_cores >= CORES_WANTED:
        return None
    return warning(
        "The load generator and the server share one core",
        f"usable cores: {machine.usable_cores} (of {machine.logical_cores} logical; "
        f"affinity {seen.cpu.affinity_cores})",
        "Use a machine, or a container limit, with at least 2 cores; else expect invalid runs.",
    )


def cores_for_gpus(seen: MachineSnapshot) -> Finding | None:
    """Fewer cores than a serving engine has threads that poll."""
    num_gpus, usable = len(seen.gpu.gpus), seen.machine.usable_cores
    wanted = num_gpus + CORES_BESIDE_GPUS
    if not num_gpus or usable >= wanted:
        return None
    return warning(
        "Cores are oversubscribed",
        f"usable cores: {usable}; wanted: {wanted} (a worker for each of {num_gpus} GPUs, a scheduler, an API server)",
        "Give the server more cores: workers that wait for one leave their GPU idle between steps.",
    )


def quota(seen: MachineSnapshot) -> Finding | None:
    """A control group that stops threads in mid-step."""
    limit, in_sight = seen.cpu.quota_cores, min(seen.machine.logical_cores, seen.cpu.affinity_cores)
    if limit is None or limit >= in_sight:
        return None
    return warning(
        "A container quota throttles the CPU",
        f"quota: {limit:g} cores, processors in sight: {in_sight}",
        "Raise the quota to whole cores, or pin cores (cpuset) instead: a quota stops threads in mid-step.",
    )


def busy(seen: MachineSnapshot) -> Finding | None:
    """Others are at work."""
    load_1m, usable = seen.cpu.load_1m, seen.machine.usable_cores
    if load_1m is None or load_1m <= BUSY_LOAD_PER_CORE * usable:
        return None
    return warning(
        "The machine is busy",
        f"load over the last minute: {load_1m:.2f} on {usable} usable cores",
        "End other work, or wait, before a campaign; foreign CPU time invalidates runs.",
    )


def steal(seen: MachineSnapshot) -> Finding | None:
    """The hypervisor gives our time to others."""
    share = seen.cpu.steal_share
    if share is None or share <= STEAL_SHARE:
        return None
    return warning(
        "The hypervisor takes CPU time away",
        f"stolen since boot: {share:.1%} of all CPU time",
        "Ask for dedicated cores; runs with too much steal are invalid.",
    )


def pinned(seen: MachineSnapshot) -> Finding | None:
    """Assay itself may use only a part of the cores, and servers inherit that."""
    if seen.cpu.affinity_cores >= seen.machine.logical_cores:
        return None
    return note(
        "This process is pinned to a part of the cores",
        f"may run on {seen.cpu.affinity_cores} of {seen.machine.logical_cores}: {seen.cpu.affinity or 'unknown which'}",
        "Servers inherit it: start Assay without `taskset`, or with a larger cpuset, if that is not meant.",
    )


def governor(seen: MachineSnapshot) -> Finding | None:
    """Clocks that rise late, or not at all."""
    if "powersave" not in seen.cpu.governors:
        return None
    say = note if seen.cpu.frequency_driver in _SELF_GOVERNING else warning
    return say(
        "The frequency governor saves power",
        f"governor: {', '.join(seen.cpu.governors)}; driver: {seen.cpu.frequency_driver or 'unknown'}",
        "For steadier numbers: `cpupower frequency-set -g performance` (root).",
    )
