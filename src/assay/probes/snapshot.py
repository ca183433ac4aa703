"""Taking stock: everything about this machine at one moment, as one record."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from assay.probes import gpus, host, topology
from assay.probes.cgroup import quota_cores, usable_cores
from assay.probes.cpu import CpuInfo, parse_cpuinfo, parse_meminfo
from assay.probes.disks import read_disks
from assay.probes.files import Files
from assay.probes.limits import read_limits
from assay.probes.memory import read_memory
from assay.probes.servers import servers
from assay.probes.software import read_software
from assay.probes.usage import load_1m, read_usage
from assay.records.gpu import GpuReading
from assay.records.machine import Machine
from assay.records.snapshot import Cpu, MachineSnapshot

_KHZ_HZ = 1000.0


def take(files: Files, folder: Path, nvml: Any = None) -> MachineSnapshot:
    """Look at everything once.

    Args:
        files: where proc/ and sys/ lie.
        folder: the campaign's, whose disk matters.
        nvml: the module to ask instead of `pynvml`.
    """
    reading = gpus.read_gpus(files, nvml)
    machine = read_machine(files, reading)
    return MachineSnapshot(
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        host_hash=hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8],
        machine=machine,
        cpu=_cpu(files, machine),
        memory=read_memory(files),
        disks=read_disks(files, folder),
        limits=read_limits(),
        platform=host.read_platform(files, is_virtual=machine.hypervisor),
        gpu=reading,
        software=read_software(files),
        servers=servers(),
    )


def read_machine(files: Files, reading: GpuReading) -> Machine:
    """What it is: the part that numbers belong to."""
    cpu = cpu_info(files)
    logical = cpu.logical_cores or psutil.cpu_count() or 1
    return Machine(
        cpu_model=cpu.model or platform.processor() or platform.machine() or "unknown",
        physical_cores=cpu.physical_cores or psutil.cpu_count(logical=False) or logical,
        logical_cores=logical,
        usable_cores=usable_cores(logical, len(_affinity(logical)), quota_cores(files.root)),
        isa=cpu.isa,
        memory_bytes=_kernel_memory(files).get("MemTotal") or psutil.virtual_memory().total,
        numa_nodes=len(topology.numa_nodes(files)) or 1,
        kernel=f"{platform.system()} {platform.release()}",
        os=_os_name(),
        python=platform.python_version(),
        hypervisor=cpu.hypervisor,
        gpus=[gpus.identity(gpu) for gpu in reading.gpus],
        gpu_driver_major=gpus.driver_major(reading.driver),
    )


def cpu_info(files: Files) -> CpuInfo:
    """/proc/cpuinfo, read."""
    return parse_cpuinfo(files.text("proc/cpuinfo") or "")


def frequency_hz(files: Files) -> float | None:
    """Mean clock of the cores right now."""
    speeds = [float(text) * _KHZ_HZ for text in _cpufreq(files, "scaling_cur_freq") if text.isdigit()]
    return sum(speeds) / len(speeds) if speeds else cpu_info(files).frequency_hz


def _cpu(files: Files, machine: Machine) -> Cpu:
    affinity = _affinity(machine.logical_cores)
    usage = read_usage(None)
    return Cpu(
        sockets=topology.sockets(files),
        nodes=topology.numa_nodes(files),
        caches=topology.caches(files),
        affinity_cores=len(affinity),
        affinity=topology.list_of(affinity),
        quota_cores=quota_cores(files.root),
        frequency_hz=frequency_hz(files),
        governors=sorted(set(_cpufreq(files, "scaling_governor"))),
        frequency_driver=next(iter(_cpufreq(files, "scaling_driver")), None),
        load_1m=load_1m(),
        steal_share=usage.steal_s / usage.total_s if usage.steal_s is not None and usage.total_s > 0 else None,
    )


def _cpufreq(files: Files, name: str) -> list[str]:
    paths = files.folders(f"sys/devices/system/cpu/cpu[0-9]*/cpufreq/{name}")
    return [text for path in paths if (text := files.text(path))]


def _kernel_memory(files: Files) -> dict[str, int]:
    return parse_meminfo(files.text("proc/meminfo") or "")


def _affinity(logical: int) -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(logical))


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()
