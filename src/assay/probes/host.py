"""What lies between the programs and the hardware: container, hypervisor, kernel parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping

from assay.probes.files import Files
from assay.probes.kernel_log import xids
from assay.probes.pci import acs_redirect, gpus_on_bus, iommu
from assay.records.snapshot import Platform

_PARAMETERS = frozenset(
    {
        "iommu",
        "intel_iommu",
        "amd_iommu",
        "iommu.passthrough",
        "iommu.strict",
        "pci",
        "pcie_aspm",
        "pcie_acs_override",
        "hugepages",
        "hugepagesz",
        "default_hugepagesz",
        "transparent_hugepage",
        "numa_balancing",
        "isolcpus",
        "nohz_full",
        "rcu_nocbs",
        "mitigations",
        "processor.max_cstate",
        "intel_idle.max_cstate",
        "idle",
        "intel_pstate",
        "amd_pstate",
        "cpufreq.default_governor",
        "nosmt",
        "maxcpus",
        "mem",
    }
)
"""Others stay here: they may name disks, users or addresses."""
_BARE_METAL_MAKERS = ("dell", "hewlett", "hpe", "supermicro", "lenovo", "asus", "gigabyte", "intel", "nvidia", "inspur")


def read_platform(files: Files, *, is_virtual: bool, environment: Mapping[str, str] = os.environ) -> Platform:
    """Read it now; `is_virtual` is what the processor says of a hypervisor."""
    on_bus = gpus_on_bus(files)
    return Platform(
        container=container(files, environment),
        virtual_machine=_hypervisor(files) if is_virtual else None,
        kernel_parameters=parse_parameters(files.text("proc/cmdline") or ""),
        iommu=iommu(files),
        acs_redirect=acs_redirect(files),
        pci_gpus=on_bus,
        xids=xids(files) if any(gpu.vendor == "nvidia" for gpu in on_bus) else [],
    )


def container(files: Files, environment: Mapping[str, str]) -> str | None:
    """The kind of container this process runs in; None outside of one."""
    groups = files.text("proc/1/cgroup") or ""
    if "KUBERNETES_SERVICE_HOST" in environment or "kubepods" in groups:
        return "kubernetes"
    if files.exists("run/.containerenv"):
        return "podman"
    if files.exists(".dockerenv") or "docker" in groups:
        return "docker"
    named = environment.get("container") or files.text("run/systemd/container")
    if named:
        return named
    return "lxc" if "lxc" in groups else None


def parse_parameters(text: str) -> dict[str, str]:
    """The parameters of the kernel's command line that bear on performance; one without a value has an empty one."""
    pairs = (word.partition("=") for word in text.split())
    return {name: value for name, _, value in pairs if name in _PARAMETERS}


def _hypervisor(files: Files) -> str:
    maker, product = files.text("sys/class/dmi/id/sys_vendor"), files.text("sys/class/dmi/id/product_name")
    if maker and not maker.lower().startswith(_BARE_METAL_MAKERS):
        return f"{maker} {product or ''}".strip()
    return "unknown"
