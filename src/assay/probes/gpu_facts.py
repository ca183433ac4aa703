"""What a driver does not say of a GPU: from its kind and from the device facts, each number with its source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from assay.records.device import Device, Fact
from assay.records.gpu import Gpu

_KIB_BYTES = 1024
_CUDA_GUIDE = "CUDA C++ Programming Guide, technical specifications per compute capability"
_SMEM_KIB = {70: 96, 72: 96, 75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 120: 99, 121: 99}
"""Largest shared memory of a block, by compute capability times ten. Source: the guide above."""
_CORES_PER_SM = {70: 64, 72: 64, 75: 64, 80: 64, 86: 128, 87: 128, 89: 128, 90: 128, 100: 128, 103: 128, 120: 128,
                 121: 128}  # fmt: skip
"""FP32 units of a multiprocessor, by compute capability times ten. Source: the guide above."""


def counted_sms(cores: int | None, capability: Sequence[int] | None) -> Fact | None:
    """Multiprocessors, from the cores that the driver counts; None where either part is not known."""
    per_sm = _CORES_PER_SM.get(capability[0] * 10 + capability[1]) if capability else None
    if not cores or not per_sm or cores % per_sm:
        return None
    return Fact(value=cores // per_sm, unit="1", basis="measured", source=f"the driver: {cores} cores, {per_sm} an SM")


def with_facts(gpu: Gpu, devices: Mapping[str, Device]) -> Gpu:
    """Add what the driver did not say: shared memory per block, L2, and where it must be the number of SMs."""
    device = find_device(gpu.name, devices)
    smem_kib = _SMEM_KIB.get(round(gpu.compute_capability * 10)) if gpu.compute_capability else None
    by_kind = Fact(value=smem_kib * _KIB_BYTES, unit="bytes", basis="spec", source=_CUDA_GUIDE) if smem_kib else None
    return gpu.model_copy(
        update={
            "sms": gpu.sms or _fact(device, "sms"),
            "smem_per_block_bytes": by_kind or _fact(device, "smem_per_block_bytes"),
            "l2_bytes": _fact(device, "l2_bytes"),
        }
    )


def find_device(name: str, devices: Mapping[str, Device]) -> Device | None:
    """The device facts of a GPU that a driver names; the longest spelling that its name contains."""
    wanted = _plain(name)
    spellings = {
        _plain(one): device for device in devices.values() for one in (device.id, device.name, *device.aliases)
    }
    fitting = [spelling for spelling in spellings if spelling and f" {spelling} " in f" {wanted} "]
    return spellings[max(fitting, key=len)] if fitting else None


def _fact(device: Device | None, name: str) -> Fact | None:
    return device.fact(name) if device else None


def _plain(name: str) -> str:
    """`NVIDIA RTX PRO 6000 Blackwell Server Edition` and `rtx-pro-6000` in one spelling."""
    return re.sub(r"[^a-z0-9]+", " ", name.lower()).replace("nvidia", "").strip()
