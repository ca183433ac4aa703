"""The probe of this machine: what it is, what will disturb a measurement, how it is right now."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import psutil

from assay.ports import Probe
from assay.probes import findings as judged
from assay.probes.cgroup import memory_limit_bytes, quota_cores
from assay.probes.cpu import CpuInfo, parse_cpuinfo, parse_meminfo
from assay.probes.servers import foreign_servers
from assay.probes.usage import Usage, load_1m, read_usage, shares
from assay.records.machine import Finding, Machine

_KHZ_HZ = 1000.0


def create(folder: Path | None = None) -> Probe:
    """The probe of the machine that Assay runs on; "free disk" means the disk of `folder`, else of the current one."""
    return MachineProbe(folder=folder)


class MachineProbe:
    """Reads /proc and /sys where there are any, psutil elsewhere; what neither knows is None."""

    def __init__(self, root: Path = Path("/"), folder: Path | None = None) -> None:
        """Look at a machine.

        Args:
            root: where proc/ and sys/ lie.
            folder: whose disk is meant by "free disk"; the current one when None.
        """
        self._root = root
        self._folder = folder or Path.cwd()
        self._last: Usage | None = None

    def machine(self) -> Machine:
        """What it is."""
        cpu = self._cpu()
        logical = cpu.logical_cores or psutil.cpu_count() or 1
        return Machine(
            cpu_model=cpu.model or platform.processor() or platform.machine() or "unknown",
            physical_cores=cpu.physical_cores or psutil.cpu_count(logical=False) or logical,
            logical_cores=logical,
            usable_cores=judged.usable_cores(logical, _affinity_cores(logical), quota_cores(self._root)),
            isa=cpu.isa,
            memory_bytes=self._memory().get("MemTotal") or psutil.virtual_memory().total,
            numa_nodes=len(list((self._root / "sys/devices/system/node").glob("node[0-9]*"))) or 1,
            kernel=f"{platform.system()} {platform.release()}",
            os=_os_name(),
            python=platform.python_version(),
            hypervisor=cpu.hypervisor,
        )

    def findings(self) -> list[Finding]:
        """What will spoil a measurement here."""
        memory = self._memory()
        swap = {"SwapTotal", "SwapFree"} <= memory.keys()
        logical = self._cpu().logical_cores or psutil.cpu_count() or 1
        return judged.findings(
            judged.Conditions(
                logical_cores=logical,
                affinity_cores=_affinity_cores(logical),
                quota_cores=quota_cores(self._root),
                load_1m=load_1m(),
                governors=frozenset(self._cpufreq("scaling_governor")),
                frequency_driver=next(iter(self._cpufreq("scaling_driver")), None),
                swap_used_bytes=memory["SwapTotal"] - memory["SwapFree"] if swap else None,
                available_memory_bytes=self._available_memory_bytes(),
                free_disk_bytes=self._free_disk_bytes(),
                folder=str(self._folder),
                servers=foreign_servers(),
            )
        )

    def snapshot(self, server_pid: int | None = None) -> dict[str, float | None]:
        """How it is right now; shares are since the last snapshot, None at the first.

        Keys: `foreign_cpu_cores`, busy CPU time that is neither ours nor the server tree's, in cores; `steal_share`, of
        all CPU time; `load_1m`; `available_memory_bytes`, at most the container's limit; `cpu_frequency_hz`, mean over
        the cores; `free_disk_bytes`.
        """
        now = read_usage(server_pid)
        since = shares(self._last, now)
        self._last = now
        return {
            "foreign_cpu_cores": since.foreign_cpu_cores,
            "steal_share": since.steal_share,
            "load_1m": load_1m(),
            "available_memory_bytes": self._available_memory_bytes(),
            "cpu_frequency_hz": self._frequency_hz(),
            "free_disk_bytes": self._free_disk_bytes(),
        }

    def _cpu(self) -> CpuInfo:
        return parse_cpuinfo(self._read("proc/cpuinfo") or "")

    def _memory(self) -> dict[str, int]:
        return parse_meminfo(self._read("proc/meminfo") or "")

    def _available_memory_bytes(self) -> int:
        available = self._memory().get("MemAvailable") or psutil.virtual_memory().available
        limit = memory_limit_bytes(self._root)
        return available if limit is None else min(available, limit)

    def _free_disk_bytes(self) -> int | None:
        try:
            return shutil.disk_usage(self._folder).free
        except OSError:
            return None

    def _frequency_hz(self) -> float | None:
        speeds = [float(text) * _KHZ_HZ for text in self._cpufreq("scaling_cur_freq") if text.isdigit()]
        return sum(speeds) / len(speeds) if speeds else self._cpu().frequency_hz

    def _cpufreq(self, name: str) -> list[str]:
        paths = sorted((self._root / "sys/devices/system/cpu").glob(f"cpu[0-9]*/cpufreq/{name}"))
        return [text for path in paths if (text := self._read(path.relative_to(self._root)))]

    def _read(self, path: str | Path) -> str | None:
        try:
            return (self._root / path).read_text(errors="replace").strip()
        except OSError:
            return None


def _affinity_cores(logical: int) -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()
