"""What will spoil or bound a measurement on a machine: a snapshot in, findings out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from assay.probes.rules import gpu, gpu_use, links, memory, processors, system
from assay.records.machine import Finding
from assay.records.snapshot import MachineSnapshot

Rule = Callable[[MachineSnapshot], Finding | None]
_ORDER = {"blocker": 0, "warning": 1, "note": 2}

RULES: Mapping[str, Rule] = {
    "few-cores": processors.few_cores,
    "cores-for-gpus": processors.cores_for_gpus,
    "cpu-quota": processors.quota,
    "busy": processors.busy,
    "steal": processors.steal,
    "pinned": processors.pinned,
    "governor": processors.governor,
    "swap": memory.swap,
    "little-memory": memory.little_memory,
    "idle-hugepages": memory.idle_hugepages,
    "no-transparent-hugepages": memory.no_transparent_hugepages,
    "numa-balancing": memory.numa_balancing,
    "host-memory-below-gpu": memory.host_below_gpu,
    "campaign-disk": system.campaign_disk,
    "disk-full": system.disk_full,
    "slow-model-disk": system.slow_model_disk,
    "shm": system.shm,
    "open-files": system.open_files,
    "locked-memory": system.locked_memory,
    "servers": system.servers,
    "driver-for-torch": system.driver_for_torch,
    "gpu-unseen": gpu.unseen,
    "gpu-lost": gpu.lost,
    "gpu-xid": gpu.xid,
    "gpu-memory-errors": gpu.memory_errors,
    "gpu-remap-pending": gpu.remap_pending,
    "gpu-ecc-change": gpu.ecc_change,
    "gpu-mixed": gpu.mixed,
    "gpu-power-cap": gpu_use.power_cap,
    "gpu-throttled": gpu_use.throttled,
    "gpu-hot": gpu_use.hot,
    "gpu-clocks-set": gpu_use.clocks_set,
    "gpu-in-use": gpu_use.in_use,
    "gpu-memory-held": gpu_use.memory_held,
    "gpu-mig": gpu_use.mig,
    "gpu-compute-mode": gpu_use.compute_mode,
    "gpu-persistence": gpu_use.persistence,
    "pcie-width": links.pcie_width,
    "pcie-generation": links.pcie_generation,
    "pcie-slot": links.pcie_slot,
    "pcie-replays": links.pcie_replays,
    "iommu": links.iommu,
    "acs": links.acs,
    "no-p2p": links.no_p2p,
    "small-bar1": links.small_bar1,
    "nvlink-down": links.nvlink_down,
    "fabric": links.fabric,
    "gpus-across-nodes": links.across_nodes,
    "far-from-gpu": links.far_from_gpu,
}
"""Every rule under its name; each looks at one thing, and says nothing about what is not known."""


def findings(snapshot: MachineSnapshot) -> list[Finding]:
    """Everything worth a line, blockers first."""
    found = [finding.model_copy(update={"rule": name}) for name, rule in RULES.items() if (finding := rule(snapshot))]
    return sorted(found, key=lambda finding: _ORDER[finding.severity])
