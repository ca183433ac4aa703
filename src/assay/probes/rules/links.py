"""Rules about how GPUs reach the host and each other."""

from __future__ import annotations

from assay.probes.rules.say import each, note, size, warning
from assay.probes.topology import parse_list
from assay.records.gpu import Gpu, GpuPair
from assay.records.machine import Finding
from assay.records.snapshot import MachineSnapshot

BUSY_UTILIZATION = 0.1
BUSY_STATE = 2
"""Performance states P0 to P2 are those of work; in the others a link runs slowly to save power."""
REPLAYS = 1000
BAR1_SHARE = 0.9
_WIDE = ("nvlink", "xgmi")
_OPEN = "ok"


def pcie_width(seen: MachineSnapshot) -> Finding | None:
    """Lanes are missing."""
    narrow = [gpu for gpu in seen.gpu.gpus if gpu.pcie.width and gpu.pcie.width < (gpu.pcie.max_width or 0)]
    if not narrow:
        return None
    return warning(
        "A PCIe link is narrower than it could be",
        each(narrow, lambda gpu: f"x{gpu.pcie.width} of x{gpu.pcie.max_width}"),
        "Check slot, riser and bifurcation in the firmware: weights, KV offload and all-reduce cross this link.",
    )


def pcie_generation(seen: MachineSnapshot) -> Finding | None:
    """A busy link runs slowly; an idle one may."""
    slow = [
        gpu
        for gpu in seen.gpu.gpus
        if _is_busy(gpu) and gpu.pcie.generation and gpu.pcie.generation < (gpu.pcie.max_generation or 0)
    ]
    if not slow:
        return None
    return warning(
        "A busy PCIe link runs below its generation",
        each(slow, lambda gpu: f"generation {gpu.pcie.generation} of {gpu.pcie.max_generation}"),
        "Check `pcie_aspm` and the slot's speed in the firmware, and the riser: a bad contact makes links fall back.",
    )


def pcie_slot(seen: MachineSnapshot) -> Finding | None:
    """The board could do more than the slot."""
    held = [gpu for gpu in seen.gpu.gpus if (gpu.pcie.max_generation or 9) < (gpu.pcie.gpu_max_generation or 0)]
    if not held:
        return None
    return note(
        "The slot is older than the GPU",
        each(held, lambda gpu: f"generation {gpu.pcie.max_generation} of {gpu.pcie.gpu_max_generation}"),
        "Another slot, or the slot's speed in the firmware, may give it all; else count with the lower one.",
    )


def pcie_replays(seen: MachineSnapshot) -> Finding | None:
    """A contact is bad."""
    noisy = [gpu for gpu in seen.gpu.gpus if (gpu.pcie.replays or 0) >= REPLAYS]
    if not noisy:
        return None
    return note(
        "A PCIe link repeats packets",
        each(noisy, lambda gpu: f"{gpu.pcie.replays} since the driver was loaded"),
        "If the count grows under load, reseat the board or exchange the riser.",
    )


def iommu(seen: MachineSnapshot) -> Finding | None:
    """Traffic between GPUs is translated, and may take the way through the processor."""
    pairs = _pcie_pairs(seen)
    if seen.platform.iommu != "translating" or not pairs:
        return None
    told = " ".join(f"{name}={value}" for name, value in seen.platform.kernel_parameters.items() if "iommu" in name)
    return warning(
        "The IOMMU stands between the GPUs",
        f"DMA is translated, {told or 'no iommu parameter on the kernel command line'}; "
        f"{len(pairs)} pairs of GPUs are joined by PCIe",
        "Boot with `iommu=pt` (or the IOMMU off in the firmware): peer-to-peer traffic is slowed or corrupted by it.",
    )


def acs(seen: MachineSnapshot) -> Finding | None:
    """PCIe switches send traffic between GPUs up to the root."""
    if not seen.platform.acs_redirect or not _pcie_pairs(seen):
        return None
    return warning(
        "PCIe bridges redirect traffic between GPUs (ACS)",
        "ACS request or completion redirect is set on a bridge",
        "On bare metal turn ACS off in the firmware, or with `setpci` at boot: traffic then stays below the switch.",
    )


def no_p2p(seen: MachineSnapshot) -> Finding | None:
    """Traffic between GPUs goes through main memory."""
    closed = [pair for pair in _pcie_pairs(seen) if _OPEN not in (pair.p2p_read or _OPEN, pair.p2p_write or _OPEN)]
    if not closed:
        return None
    reasons = sorted({pair.p2p_read or "" for pair in closed})
    return warning(
        "GPUs cannot reach each other's memory",
        f"{len(closed)} of {len(seen.gpu.pairs)} pairs: {', '.join(reasons)}",
        "All-reduce goes through main memory: prefer pipeline or data parallelism, or mend what is named here.",
    )


def small_bar1(seen: MachineSnapshot) -> Finding | None:
    """Only a part of the memory can be reached from outside."""
    if not _pcie_pairs(seen):
        return None
    small = [gpu for gpu in seen.gpu.gpus if gpu.bar1_bytes and gpu.bar1_bytes < BAR1_SHARE * (gpu.memory_bytes or 0)]
    if not small:
        return None
    return note(
        "The window into a GPU's memory is small (BAR1)",
        each(small, lambda gpu: f"{size(gpu.bar1_bytes or 0)} of {size(gpu.memory_bytes or 0)}"),
        "Turn on Resizable BAR and Above 4G Decoding in the firmware: peer-to-peer transfers go through this window.",
    )


def nvlink_down(seen: MachineSnapshot) -> Finding | None:
    """Some links are up, others not."""
    down = [gpu for gpu in seen.gpu.gpus if gpu.nvlinks_active and gpu.nvlinks_inactive]
    if not down:
        return None
    return warning(
        "NVLinks are down",
        each(down, lambda gpu: f"{gpu.nvlinks_inactive} of {gpu.nvlinks_active + gpu.nvlinks_inactive}"),  # type: ignore[operator]  # both are set: see above
        "`nvidia-smi nvlink -s` names them; restart the fabric manager or the machine.",
    )


def fabric(seen: MachineSnapshot) -> Finding | None:
    """CUDA does not start before the switches are set up."""
    waiting = [gpu for gpu in seen.gpu.gpus if gpu.fabric in ("not-started", "in-progress")]
    if not waiting:
        return None
    return warning(
        "The NVSwitch fabric is not ready",
        each(waiting, lambda gpu: f"fabric {gpu.fabric}"),
        "Start the fabric manager of the driver's version: `systemctl status nvidia-fabricmanager`.",
    )


def across_nodes(seen: MachineSnapshot) -> Finding | None:
    """Groups of GPUs that span sockets are slower."""
    by_node: dict[int, list[Gpu]] = {}
    for gpu in seen.gpu.gpus:
        if gpu.numa_node is not None:
            by_node.setdefault(gpu.numa_node, []).append(gpu)
    if len(by_node) < 2 or not _pcie_pairs(seen):  # noqa: PLR2004 - one node has no other
        return None
    return note(
        "The GPUs hang on several NUMA nodes",
        each([gpu for gpus in by_node.values() for gpu in gpus], lambda gpu: f"node {gpu.numa_node}"),
        "Traffic between them crosses the sockets' link: keep tensor-parallel groups within a node where they fit.",
    )


def far_from_gpu(seen: MachineSnapshot) -> Finding | None:
    """This process, and servers it starts, may not run next to the GPU."""
    allowed = parse_list(seen.cpu.affinity or "")
    far = [gpu for gpu in seen.gpu.gpus if gpu.cpus and allowed and not allowed & parse_list(gpu.cpus)]
    if not far:
        return None
    return warning(
        "No core next to a GPU may be used",
        each(far, lambda gpu: f"near cores {gpu.cpus}, allowed {seen.cpu.affinity}"),
        "Start Assay with the cores of the GPU's NUMA node (`numactl`, `taskset`, `--cpuset-cpus`).",
    )


def _is_busy(gpu: Gpu) -> bool:
    state = gpu.performance_state
    working = gpu.utilization is not None and gpu.utilization >= BUSY_UTILIZATION
    return working and (state is None or state <= BUSY_STATE)


def _pcie_pairs(seen: MachineSnapshot) -> list[GpuPair]:
    """Pairs that are not joined by a link of their own."""
    return [pair for pair in seen.gpu.pairs if pair.level not in (None, *_WIDE)]
