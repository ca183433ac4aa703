"""Rules about the health of GPUs: whether they are there, answer, remember right, and are alike."""

from __future__ import annotations

from assay.probes.rules.say import blocker, each, note, size, warning
from assay.records.gpu import Gpu
from assay.records.machine import Finding
from assay.records.snapshot import MachineSnapshot

_FROM_PROGRAMS = {13, 31, 43, 45}
"""Codes that a faulty program causes. Source: NVIDIA, "Xid Errors", where each is listed with its causes."""


def unseen(seen: MachineSnapshot) -> Finding | None:
    """A GPU is on the bus, but nothing here can use it."""
    if seen.gpu.gpus or not seen.platform.pci_gpus:
        return None
    on_bus = seen.platform.pci_gpus
    inside = " In a container it has to be handed in (`--gpus all`)." if seen.platform.container else ""
    return warning(
        "A GPU is there, but cannot be seen from here",
        f"{len(on_bus)} on the PCI bus ({on_bus[0].vendor}); {seen.gpu.problem or 'no driver answers'}",
        f"Install what is missing, then try `nvidia-smi` or `amd-smi`.{inside}",
    )


def lost(seen: MachineSnapshot) -> Finding | None:
    """It does not answer any more."""
    gone = [gpu for gpu in seen.gpu.gpus if gpu.lost]
    if not gone:
        return None
    return blocker(
        "A GPU does not answer",
        each(gone, lambda gpu: gpu.lost or ""),
        "Reset it (`nvidia-smi --gpu-reset`, root) or restart the machine; if it comes back, check its seat and power.",
    )


def xid(seen: MachineSnapshot) -> Finding | None:
    """The driver has reported errors since boot."""
    reported = seen.platform.xids
    if not reported:
        return None
    hardware = any(error.code not in _FROM_PROGRAMS for error in reported)
    return (warning if hardware else note)(
        "The driver has reported GPU errors",
        "; ".join(f"Xid {error.code} on {error.bus_id}, {error.count} times" for error in reported),
        "Look the codes up in NVIDIA's Xid catalogue: 13, 31, 43 and 45 come from programs, most others from hardware.",
    )


def memory_errors(seen: MachineSnapshot) -> Finding | None:
    """Results can be wrong, and processes die."""
    broken = [gpu for gpu in seen.gpu.gpus if gpu.ecc.uncorrected or gpu.ecc.remap_failed]
    if not broken:
        return None
    return blocker(
        "GPU memory has errors that cannot be corrected",
        each(broken, _memory_errors),
        "Reset the GPU; if it happens again, or a row could not be replaced, have the board exchanged.",
    )


def remap_pending(seen: MachineSnapshot) -> Finding | None:
    """A bad row is still in use."""
    waiting = [gpu for gpu in seen.gpu.gpus if gpu.ecc.remap_pending and not gpu.ecc.remap_failed]
    if not waiting:
        return None
    return warning(
        "A row of GPU memory waits to be replaced",
        each(waiting, lambda gpu: f"{gpu.ecc.corrected or 0} corrected errors, row remapping pending"),
        "Reset the GPU when it is free: `nvidia-smi --gpu-reset` (root).",
    )


def ecc_change(seen: MachineSnapshot) -> Finding | None:
    """After the next reset, this is another machine."""
    changing = [gpu for gpu in seen.gpu.gpus if gpu.ecc.pending is not None and gpu.ecc.pending != gpu.ecc.enabled]
    if not changing:
        return None
    return warning(
        "ECC changes at the next reset",
        each(changing, lambda gpu: f"now {_on(gpu.ecc.enabled)}, then {_on(gpu.ecc.pending)}"),
        "Reset now: ECC changes memory size and bandwidth, so numbers from before and after do not compare.",
    )


def mixed(seen: MachineSnapshot) -> Finding | None:
    """The slowest sets the pace."""
    gpus = [gpu for gpu in seen.gpu.gpus if not gpu.lost]
    if len({(gpu.name, gpu.memory_bytes, gpu.power.limit_w, gpu.ecc.enabled) for gpu in gpus}) < 2:  # noqa: PLR2004
        return None
    return warning(
        "The GPUs are not alike",
        each(gpus, _kind),
        "In tensor parallelism all wait for the slowest: use like ones together (CUDA_VISIBLE_DEVICES).",
    )


def _memory_errors(gpu: Gpu) -> str:
    parts = [f"{gpu.ecc.uncorrected} uncorrected errors" if gpu.ecc.uncorrected else ""]
    parts.append("a row could not be replaced" if gpu.ecc.remap_failed else "")
    return ", ".join(part for part in parts if part)


def _kind(gpu: Gpu) -> str:
    limit = "" if gpu.power.limit_w is None else f", {gpu.power.limit_w:.0f} W"
    ecc = "" if gpu.ecc.enabled is None else f", ECC {_on(gpu.ecc.enabled)}"
    return f"{gpu.name}, {size(gpu.memory_bytes or 0)}{limit}{ecc}"


def _on(state: bool | None) -> str:
    return {True: "on", False: "off", None: "unknown"}[state]
