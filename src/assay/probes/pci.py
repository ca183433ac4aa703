"""What the PCI bus and the IOMMU say without a driver: GPUs on the bus, and what stands between them."""

from __future__ import annotations

import struct
from typing import Literal

from assay.probes.files import Files
from assay.records.snapshot import PciGpu

_DEVICES = "sys/bus/pci/devices"
_VENDORS: dict[str, Literal["nvidia", "amd"]] = {"0x10de": "nvidia", "0x1002": "amd"}
_DISPLAY = ("0x0300", "0x0302", "0x0380", "0x1200")
"""PCI classes: VGA, 3D and other display controllers, processing accelerators."""
_BRIDGE = "0x0604"
_EXTENDED = 0x100
"""Where extended capabilities begin in the configuration space."""
_ACS = 0x000D
_REDIRECTS = 0b1100
"""P2P Request Redirect and P2P Completion Redirect. Source: PCI Express base specification, ACS control register."""


def gpus_on_bus(files: Files) -> list[PciGpu]:
    """Every NVIDIA or AMD display or compute device."""
    found = []
    for folder in files.folders(f"{_DEVICES}/*"):
        vendor = _VENDORS.get(files.text(folder / "vendor") or "")
        if vendor and (files.text(folder / "class") or "").startswith(_DISPLAY):
            found.append(PciGpu(bus_id=folder.name, vendor=vendor))
    return found


def iommu(files: Files) -> str | None:
    """Off, passthrough or translating, from the groups that the kernel made; None where it does not say."""
    groups = files.folders("sys/kernel/iommu_groups/[0-9]*")
    if not groups:
        return "off" if files.exists("sys/kernel/iommu_groups") else None
    kinds = {files.text(group / "type") for group in groups}
    if any(kind and kind.startswith("DMA") for kind in kinds):
        return "translating"
    return "passthrough" if "identity" in kinds else None


def acs_redirect(files: Files) -> bool | None:
    """Whether any bridge sends traffic between devices up to the root complex; None: no bridge let us read that."""
    answers = []
    for folder in files.folders(f"{_DEVICES}/*"):
        if (files.text(folder / "class") or "").startswith(_BRIDGE):
            try:
                answers.append(redirects((files.root / folder / "config").read_bytes()))
            except OSError:
                continue
    known = [answer for answer in answers if answer is not None]
    return any(known) if known else None


def redirects(config: bytes) -> bool | None:
    """Read the ACS control of one device's configuration space.

    Returns:
        None when the extended part is not there: Linux shows it to root only.
    """
    if len(config) <= _EXTENDED:
        return None
    offset, left = _EXTENDED, 96
    while offset >= _EXTENDED and offset + 8 <= len(config) and left:
        header = struct.unpack_from("<I", config, offset)[0]
        if header & 0xFFFF == _ACS:
            return bool(struct.unpack_from("<H", config, offset + 6)[0] & _REDIRECTS)
        offset, left = header >> 20, left - 1
    return False


def numa_node(files: Files, bus_id: str) -> int | None:
    """The node that a device hangs on; None where there is one node only, or the firmware does not say."""
    node = files.number(f"{_DEVICES}/{sysfs_name(bus_id)}/numa_node")
    return node if node is not None and node >= 0 else None


def near_cpus(files: Files, bus_id: str) -> str | None:
    """Logical processors next to a device, as a list."""
    return files.text(f"{_DEVICES}/{sysfs_name(bus_id)}/local_cpulist") or None


def sysfs_name(bus_id: str) -> str:
    """A driver's name of a device as /sys has it.

    >>> sysfs_name("00000000:C1:00.0")
    '0000:c1:00.0'
    """
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}"
