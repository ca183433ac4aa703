"""The probe of this machine: what it is, what will disturb a measurement, how it is right now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.ports import Probe
from assay.probes import findings as judged
from assay.probes.disks import free_bytes
from assay.probes.files import Files
from assay.probes.gpus import memory_used_bytes, read_gpus
from assay.probes.memory import available_bytes
from assay.probes.snapshot import frequency_hz, read_machine, take
from assay.probes.usage import Usage, load_1m, read_usage, shares
from assay.records.machine import Finding, Machine
from assay.records.snapshot import MachineSnapshot


def create(folder: Path | None = None) -> Probe:
    """The probe of the machine that Assay runs on; "free disk" means the disk of `folder`, else of the current one."""
    return MachineProbe(folder=folder)


class MachineProbe:
    """Reads /proc and /sys where there are any, psutil elsewhere; what neither knows is None."""

    def __init__(self, root: Path = Path("/"), folder: Path | None = None, nvml: Any = None) -> None:
        """Look at a machine.

        Args:
            root: where proc/ and sys/ lie.
            folder: whose disk is meant by "free disk"; the current one when None.
            nvml: the module to ask about GPUs instead of `pynvml`.
        """
        self._files = Files(root)
        self._folder = folder or Path.cwd()
        self._nvml = nvml
        self._last: Usage | None = None

    def machine(self) -> Machine:
        """What it is."""
        return read_machine(self._files, read_gpus(self._files, self._nvml))

    def stock(self) -> MachineSnapshot:
        """Everything about it, for `assay assess`: asks running servers what they are, and takes a second or two."""
        return take(self._files, self._folder, self._nvml)

    def gpu_memory_bytes(self) -> int | None:
        """Memory in use on all GPUs together."""
        return memory_used_bytes(self._nvml)

    def findings(self) -> list[Finding]:
        """What will spoil a measurement here."""
        return judged.findings(self.stock())

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
            "available_memory_bytes": available_bytes(self._files),
            "cpu_frequency_hz": frequency_hz(self._files),
            "free_disk_bytes": free_bytes(self._folder),
        }
