"""Machines for tests: a calm one without GPUs, and ones with the fake NVML's boards."""

from __future__ import annotations

from typing import Any

from assay.probes.gpus import driver_major, identity
from assay.probes.nvml import read_nvml
from assay.records.gpu import Gpu
from assay.records.machine import Machine
from assay.records.snapshot import Cpu, Disk, Limits, MachineSnapshot, Memory, Platform
from assay.units import GIB_BYTES
from tests.unit.fake_nvml import FakeNvml, h200, rtx_pro_6000_box

CALM = MachineSnapshot(
    taken_at="2026-11-30T12:00:00+00:00",
    host_hash="00112233",
    machine=Machine(
        cpu_model="AMD EPYC 9575F", physical_cores=64, logical_cores=128, usable_cores=128, isa=["avx2", "avx512f"],
        memory_bytes=1536 * GIB_BYTES, numa_nodes=1, kernel="Linux 6.8.0", os="Ubuntu 24.04", python="3.12.3",
        hypervisor=False,
    ),
    cpu=Cpu(affinity_cores=128, affinity="0-127", governors=["performance"], frequency_driver="acpi-cpufreq",
            load_1m=0.1, steal_share=0.0),
    memory=Memory(available_bytes=1400 * GIB_BYTES, swap_bytes=0, swap_used_bytes=0, hugepages=0, hugepages_free=0,
                  hugepage_bytes=2 << 20, transparent_hugepages="madvise", numa_balancing=False),
    disks=[Disk(mount="/", kind="nvme", filesystem="ext4", total_bytes=2000 * GIB_BYTES, free_bytes=900 * GIB_BYTES,
                roles=["campaign", "models", "temporary"])],
    limits=Limits(open_files=65536, open_files_hard=1 << 20, shm_bytes=755 * GIB_BYTES, shm_free_bytes=755 * GIB_BYTES),
    platform=Platform(iommu="off", acs_redirect=False, xids=[]),
)  # fmt: skip
"""Nothing here spoils a measurement."""


def changed(snapshot: MachineSnapshot, **parts: Any) -> MachineSnapshot:
    """A snapshot with fields of its parts changed: `changed(CALM, cpu={"load_1m": 9.0})`; lists are replaced."""
    new = {
        name: getattr(snapshot, name).model_copy(update=value)
        if isinstance(value, dict) and name != "software"
        else value
        for name, value in parts.items()
    }
    return snapshot.model_copy(update=new)


def with_nvml(fake: FakeNvml, **parts: Any) -> MachineSnapshot:
    """The calm machine with the boards of a fake NVML."""
    reading = read_nvml(fake)
    gpus, driver = [identity(gpu) for gpu in reading.gpus], driver_major(reading.driver)
    machine = CALM.machine.model_copy(update={"gpus": gpus, "gpu_driver_major": driver})
    return changed(CALM.model_copy(update={"gpu": reading, "machine": machine}), **parts)


def box(**parts: Any) -> MachineSnapshot:
    """Eight RTX PRO 6000 over PCIe; the probe of the bus is not here, so nodes are given."""
    seen = with_nvml(rtx_pro_6000_box())
    placed = [gpu.model_copy(update={"numa_node": 0}) for gpu in seen.gpu.gpus]
    return changed(changed(seen, gpu={"gpus": placed}), **parts)


def one_h200(**parts: Any) -> MachineSnapshot:
    """One H200."""
    return with_nvml(FakeNvml(boards=[h200()]), **parts)


def gpu_changed(snapshot: MachineSnapshot, *indices: int, **parts: Any) -> MachineSnapshot:
    """A snapshot with fields of some GPUs changed; parts of a GPU are given as dictionaries."""

    def new(gpu: Gpu) -> Gpu:
        values = {
            name: getattr(gpu, name).model_copy(update=value) if isinstance(value, dict) else value
            for name, value in parts.items()
        }
        return gpu.model_copy(update=values)

    gpus = [new(gpu) if gpu.index in indices else gpu for gpu in snapshot.gpu.gpus]
    return changed(snapshot, gpu={"gpus": gpus})
