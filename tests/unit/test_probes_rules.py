"""Every rule, at its threshold: silent on one side, a finding with the values on the other."""

# ruff: noqa: E501 - one case a line reads as a table

from __future__ import annotations

from typing import Any

import pytest

from assay.probes.findings import RULES, findings
from assay.records.gpu import GpuProcess
from assay.records.snapshot import Disk, MachineSnapshot, PciGpu, Server, Xid
from assay.units import GIB_BYTES, MIB_BYTES
from tests.unit.machines import CALM, box, changed, gpu_changed, one_h200

BOX = box()
ONE = one_h200()


def disk(free_bytes: int, *roles: str, kind: str = "nvme", total_bytes: int = 2000 * GIB_BYTES) -> Disk:
    return Disk(mount="/data", kind=kind, filesystem="xfs", total_bytes=total_bytes, free_bytes=free_bytes,
                roles=list(roles))  # fmt: skip


def pairs(seen: MachineSnapshot, **values: Any) -> MachineSnapshot:
    return changed(seen, gpu={"pairs": [pair.model_copy(update=values) for pair in seen.gpu.pairs]})


def g(seen: MachineSnapshot, **parts: Any) -> MachineSnapshot:
    """GPU 0 changed."""
    return gpu_changed(seen, 0, **parts)


def busy(generation: int, utilization: float = 0.1, state: int = 2) -> MachineSnapshot:
    return g(BOX, pcie={"generation": generation}, utilization=utilization, performance_state=state)


CORES = {"usable_cores": 10}
TWO_NODES = {"numa_nodes": 2}
TORCH = {"torch": "2.11.0+cu130"}
P2P_NONE = {"p2p_read": "chipset not supported", "p2p_write": "chipset not supported"}
XID_79, XID_31 = Xid(code=79, bus_id="0000:10:00.0", count=2), Xid(code=31, bus_id="0000:10:00.0", count=1)
ON_BUS = [PciGpu(bus_id="0000:10:00.0", vendor="nvidia")]
VLLM = Server(port=8000, pid=4711, engine="vllm", version="0.26.0")
COMPUTE = GpuProcess(pid=7, program="vllm", memory_bytes=30 * GIB_BYTES)
DESKTOP = GpuProcess(pid=8, program="Xorg", memory_bytes=MIB_BYTES, kind="graphics")

CASES: list[tuple[str, MachineSnapshot, MachineSnapshot, str, str]] = [
    # rule, just silent, just a finding, severity, words of the evidence
    ("few-cores", changed(CALM, machine={"usable_cores": 2}), changed(CALM, machine={"usable_cores": 1}, cpu={"load_1m": 0.0}), "warning", "usable cores: 1 (of 128"),
    ("cores-for-gpus", changed(BOX, machine=CORES), changed(BOX, machine={"usable_cores": 9}), "warning", "usable cores: 9; wanted: 10"),
    ("cpu-quota", changed(CALM, cpu={"quota_cores": 128.0}), changed(CALM, cpu={"quota_cores": 127.5}), "warning", "quota: 127.5 cores"),
    ("busy", changed(CALM, cpu={"load_1m": 64.0}), changed(CALM, cpu={"load_1m": 64.01}), "warning", "64.01 on 128"),
    ("steal", changed(CALM, cpu={"steal_share": 0.01}), changed(CALM, cpu={"steal_share": 0.011}), "warning", "1.1% of all CPU time"),
    ("pinned", CALM, changed(CALM, cpu={"affinity_cores": 127, "affinity": "0-126"}), "note", "127 of 128: 0-126"),
    ("governor", changed(CALM, cpu={"governors": ["schedutil"]}), changed(CALM, cpu={"governors": ["powersave"]}), "warning", "acpi-cpufreq"),
    ("governor", CALM, changed(CALM, cpu={"governors": ["powersave"], "frequency_driver": "intel_pstate"}), "note", "intel_pstate"),
    ("swap", changed(CALM, memory={"swap_used_bytes": 64 * MIB_BYTES}), changed(CALM, memory={"swap_used_bytes": 65 * MIB_BYTES}), "warning", "65 MiB"),
    ("little-memory", changed(CALM, memory={"available_bytes": GIB_BYTES}), changed(CALM, memory={"available_bytes": GIB_BYTES - MIB_BYTES}), "warning", "1023 MiB"),
    ("idle-hugepages", changed(CALM, memory={"hugepages": 512, "hugepages_free": 511}), changed(CALM, memory={"hugepages": 512, "hugepages_free": 512}), "note", "512 of 512 pages of 2 MiB: 1024 MiB"),
    ("no-transparent-hugepages", changed(CALM, memory={"transparent_hugepages": "always"}), changed(CALM, memory={"transparent_hugepages": "never"}), "note", "never"),
    ("numa-balancing", changed(CALM, memory={"numa_balancing": True}), changed(CALM, memory={"numa_balancing": True}, machine=TWO_NODES), "note", "2 nodes"),
    ("host-memory-below-gpu", changed(ONE, machine={"memory_bytes": 143771 * MIB_BYTES}), changed(ONE, machine={"memory_bytes": 143770 * MIB_BYTES}), "note", "host: 140 GiB"),
    ("host-memory-below-gpu", changed(ONE, memory={"limit_bytes": 200 * GIB_BYTES}), changed(ONE, memory={"limit_bytes": 64 * GIB_BYTES}), "note", "host: 64 GiB"),
    ("campaign-disk", changed(CALM, disks=[disk(GIB_BYTES, "campaign")]), changed(CALM, disks=[disk(GIB_BYTES - MIB_BYTES, "campaign")]), "warning", "1023 MiB"),
    ("campaign-disk", changed(CALM, disks=[disk(GIB_BYTES, "campaign")]), changed(CALM, disks=[disk(63 * MIB_BYTES, "campaign")]), "blocker", "63 MiB"),
    ("disk-full", changed(CALM, disks=[disk(20 * GIB_BYTES, "models")]), changed(CALM, disks=[disk(19 * GIB_BYTES, "models")]), "warning", "/data (models): 19 GiB free"),
    ("disk-full", changed(CALM, disks=[disk(5 * GIB_BYTES, "models", total_bytes=100 * GIB_BYTES)]), changed(CALM, disks=[disk(4 * GIB_BYTES, "models", total_bytes=100 * GIB_BYTES)]), "warning", "4096 MiB"),
    ("slow-model-disk", changed(CALM, disks=[disk(900 * GIB_BYTES, "models", kind="ssd")]), changed(CALM, disks=[disk(900 * GIB_BYTES, "models", kind="network")]), "note", "network, xfs"),
    ("shm", changed(ONE, limits={"shm_bytes": GIB_BYTES}), changed(ONE, limits={"shm_bytes": 64 * MIB_BYTES}), "warning", "64 MiB"),
    ("open-files", changed(CALM, limits={"open_files": 4096}), changed(CALM, limits={"open_files": 4095, "open_files_hard": None}), "note", "4095, hard limit: none"),
    ("locked-memory", changed(CALM, limits={"locked_bytes": GIB_BYTES}), changed(CALM, limits={"locked_bytes": 8 * MIB_BYTES}), "note", "ulimit -l: 8 MiB"),
    ("servers", CALM, changed(CALM, servers=[VLLM, Server(pid=12, program="llama-server")]), "warning", "process 4711, port 8000: vllm 0.26.0; process 12: llama-server"),
    ("driver-for-torch", changed(ONE, software=TORCH), changed(ONE, software=TORCH, machine={"gpu_driver_major": 579}, gpu={"driver": "579.1"}), "warning", "driver 579.1, torch 2.11.0+cu130 is for CUDA 13.0: driver 580"),
    ("gpu-unseen", changed(ONE, platform={"pci_gpus": ON_BUS}), changed(CALM, platform={"pci_gpus": ON_BUS}, gpu={"problem": "NVML: Driver Not Loaded"}), "warning", "1 on the PCI bus (nvidia); NVML: Driver Not Loaded"),
    ("gpu-lost", ONE, g(ONE, lost="GPU is lost"), "blocker", "GPU 0: GPU is lost"),
    ("gpu-xid", changed(ONE, platform={"xids": None}), changed(ONE, platform={"xids": [XID_79]}), "warning", "Xid 79 on 0000:10:00.0, 2 times"),
    ("gpu-xid", ONE, changed(ONE, platform={"xids": [XID_31]}), "note", "Xid 31"),
    ("gpu-memory-errors", g(ONE, ecc={"corrected": 10**6}), g(ONE, ecc={"uncorrected": 1}), "blocker", "GPU 0: 1 uncorrected errors"),
    ("gpu-memory-errors", ONE, g(ONE, ecc={"remap_failed": True}), "blocker", "a row could not be replaced"),
    ("gpu-remap-pending", ONE, g(ONE, ecc={"remap_pending": True, "corrected": 4}), "warning", "4 corrected errors"),
    ("gpu-ecc-change", ONE, g(ONE, ecc={"pending": False}), "warning", "now on, then off"),
    ("gpu-mixed", BOX, gpu_changed(BOX, 3, power={"limit_w": 450.0, "default_limit_w": 450.0}), "warning", "GPU 3: NVIDIA RTX PRO 6000 Blackwell Server Edition, 96 GiB, 450 W"),
    ("gpu-power-cap", g(ONE, power={"limit_w": 694.0}), g(ONE, power={"limit_w": 692.0}), "warning", "GPU 0: 692 W, default 700 W"),
    ("gpu-throttled", g(ONE, throttle_reasons=["sw-power-cap"]), g(ONE, throttle_reasons=["hw-thermal", "sw-power-cap"], temperature_c=91.0), "warning", "GPU 0: too hot, 91 °C"),
    ("gpu-throttled", ONE, g(ONE, throttle_reasons=["hw-power-brake"]), "warning", "power brake"),
    ("gpu-hot", g(ONE, temperature_c=86.0), g(ONE, temperature_c=87.0), "warning", "87 °C, slows down at 92 °C"),
    ("gpu-clocks-set", g(ONE, clocks={"sm_application_hz": 1.97e9}), g(ONE, clocks={"sm_application_hz": 1.95e9}), "note", "application clock 1950 MHz, at most 1980 MHz"),
    ("gpu-clocks-set", BOX, g(BOX, throttle_reasons=["application-clocks"]), "note", "clock limited by a setting, at most 2430 MHz"),
    ("gpu-in-use", g(ONE, processes=[DESKTOP]), g(ONE, processes=[COMPUTE, DESKTOP]), "warning", "vllm (process 7, 30 GiB)"),
    ("gpu-memory-held", g(ONE, memory_used_bytes=2 * GIB_BYTES), g(ONE, memory_used_bytes=3 * GIB_BYTES), "warning", "3072 MiB of 140 GiB"),
    ("gpu-mig", ONE, g(ONE, mig_enabled=True, mig_instances=3), "warning", "3 instances"),
    ("gpu-compute-mode", ONE, g(ONE, compute_mode="exclusive-process"), "note", "exclusive-process"),
    ("gpu-compute-mode", ONE, g(ONE, compute_mode="prohibited"), "blocker", "prohibited"),
    ("gpu-persistence", g(ONE, persistence=None), g(ONE, persistence=False), "note", "GPU 0: off"),
    ("pcie-width", BOX, gpu_changed(BOX, 2, 3, pcie={"width": 8}), "warning", "GPU 2-3: x8 of x16"),
    ("pcie-generation", busy(5), busy(4), "warning", "GPU 0: generation 4 of 5"),
    ("pcie-generation", busy(4, utilization=0.09), busy(4), "warning", "generation 4"),
    ("pcie-generation", busy(4, state=3), busy(4), "warning", "generation 4"),
    ("pcie-slot", BOX, g(BOX, pcie={"max_generation": 4}), "note", "generation 4 of 5"),
    ("pcie-replays", g(BOX, pcie={"replays": 999}), g(BOX, pcie={"replays": 1000}), "note", "1000 since"),
    ("iommu", changed(BOX, platform={"iommu": "passthrough"}), changed(BOX, platform={"iommu": "translating", "kernel_parameters": {"intel_iommu": "on"}}), "warning", "intel_iommu=on; 28 pairs"),
    ("iommu", changed(ONE, platform={"iommu": "translating"}), changed(BOX, platform={"iommu": "translating"}), "warning", "no iommu parameter"),
    ("acs", changed(ONE, platform={"acs_redirect": True}), changed(BOX, platform={"acs_redirect": True}), "warning", "redirect is set"),
    ("no-p2p", pairs(BOX, p2p_write="not supported"), pairs(BOX, **P2P_NONE), "warning", "28 of 28 pairs: chipset not supported"),
    ("no-p2p", pairs(BOX, level="nvlink", **P2P_NONE), pairs(BOX, **P2P_NONE), "warning", "28 of 28"),
    ("small-bar1", g(BOX, bar1_bytes=97887 * MIB_BYTES), g(BOX, bar1_bytes=256 * MIB_BYTES), "note", "GPU 0: 256 MiB of 96 GiB"),
    ("nvlink-down", g(ONE, nvlinks_active=0, nvlinks_inactive=18), g(ONE, nvlinks_active=17, nvlinks_inactive=1), "warning", "GPU 0: 1 of 18"),
    ("fabric", g(ONE, fabric="completed"), g(ONE, fabric="in-progress"), "warning", "fabric in-progress"),
    ("gpus-across-nodes", BOX, gpu_changed(BOX, 4, 5, 6, 7, numa_node=1), "note", "GPU 0-3: node 0; GPU 4-7: node 1"),
    ("far-from-gpu", g(ONE, cpus="127"), g(ONE, cpus="128-191"), "warning", "near cores 128-191, allowed 0-127"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "silent", "spoiled", "severity", "evidence"), CASES)
def test_a_rule_speaks_from_its_threshold_on_with_evidence_and_remedy(rule, silent, spoiled, severity, evidence):
    assert rule not in [finding.rule for finding in findings(silent)]
    (found,) = [finding for finding in findings(spoiled) if finding.rule == rule]
    assert found.severity == severity
    assert evidence in found.evidence
    assert found.remedy


def test_every_rule_has_a_case():
    assert {case[0] for case in CASES} == set(RULES)


@pytest.mark.parametrize("machine", [CALM, ONE, BOX])
def test_a_healthy_machine_has_no_findings(machine):
    assert findings(machine) == []


def test_what_is_unknown_is_not_judged():
    nothing = {"load_1m": None, "steal_share": None, "quota_cores": None, "governors": [], "frequency_driver": None}
    unknown = changed(
        CALM, cpu=nothing, disks=[], memory=dict.fromkeys(type(CALM.memory).model_fields),
        limits={"open_files": None, "shm_bytes": None, "locked_bytes": None}, platform={"iommu": None, "xids": None},
    )  # fmt: skip
    assert findings(unknown) == []


def test_blockers_come_first_then_warnings_then_notes():
    seen = gpu_changed(changed(ONE, cpu={"load_1m": 100.0}), 0, persistence=False, lost="GPU is lost")
    assert [finding.severity for finding in findings(seen)] == ["blocker", "warning", "note"]


def test_an_idle_link_at_a_low_generation_is_no_finding():
    assert {gpu.pcie.generation for gpu in BOX.gpu.gpus} == {1}
    assert "pcie-generation" not in [finding.rule for finding in findings(BOX)]


def test_a_container_is_told_how_gpus_are_handed_in():
    seen = changed(CALM, platform={"pci_gpus": ON_BUS, "container": "docker"})
    (found,) = findings(seen)
    assert "--gpus all" in found.remedy
