"""Rules about main memory."""

from __future__ import annotations

from assay.probes.rules.say import note, size, warning
from assay.records.machine import Finding
from assay.records.snapshot import MachineSnapshot
from assay.units import GIB_BYTES, MIB_BYTES

SWAP_IN_USE_BYTES = 64 * MIB_BYTES
MEMORY_WANTED_BYTES = GIB_BYTES
IDLE_HUGEPAGES_BYTES = GIB_BYTES


def swap(seen: MachineSnapshot) -> Finding | None:
    """Pages that have to be read back from a disk."""
    used = seen.memory.swap_used_bytes
    if used is None or used <= SWAP_IN_USE_BYTES:
        return None
    return warning(
        "Swap is in use",
        f"swapped out: {size(used)}",
        "End what does not fit into memory; a page of the model read from swap stalls a whole step.",
    )


def little_memory(seen: MachineSnapshot) -> Finding | None:
    """Not enough for a model and the load generator."""
    available = seen.memory.available_bytes
    if available is None or available >= MEMORY_WANTED_BYTES:
        return None
    return warning(
        "Little memory is available",
        f"available: {size(available)}",
        "The model, its KV cache and Assay (250 MiB) have to fit: end programs, or take a smaller model.",
    )


def idle_hugepages(seen: MachineSnapshot) -> Finding | None:
    """Memory that is set aside and that nothing may use."""
    memory = seen.memory
    if not memory.hugepages_free or not memory.hugepage_bytes:
        return None
    idle_bytes = memory.hugepages_free * memory.hugepage_bytes
    if idle_bytes < IDLE_HUGEPAGES_BYTES:
        return None
    return note(
        "Reserved huge pages lie idle",
        f"{memory.hugepages_free} of {memory.hugepages} pages of {size(memory.hugepage_bytes)}: {size(idle_bytes)}",
        "Programs that do not ask for them cannot have this memory: `sysctl vm.nr_hugepages=0` (root) gives it back.",
    )


def no_transparent_hugepages(seen: MachineSnapshot) -> Finding | None:
    """Weights in main memory are read through many small pages."""
    if seen.memory.transparent_hugepages != "never":
        return None
    return note(
        "Transparent huge pages are off",
        "/sys/kernel/mm/transparent_hugepage/enabled: never",
        "For models in main memory: `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled` (root).",
    )


def numa_balancing(seen: MachineSnapshot) -> Finding | None:
    """The kernel moves pages while they are measured."""
    if not seen.memory.numa_balancing or seen.machine.numa_nodes < 2:  # noqa: PLR2004 - one node has no other
        return None
    return note(
        "The kernel moves memory between NUMA nodes",
        f"kernel.numa_balancing is on, {seen.machine.numa_nodes} nodes",
        "For steadier numbers: `sysctl kernel.numa_balancing=0` (root), and bind the server (`numactl`).",
    )


def host_below_gpu(seen: MachineSnapshot) -> Finding | None:
    """Weights for all GPUs do not stay in the page cache."""
    on_gpus = sum(gpu.memory_bytes or 0 for gpu in seen.gpu.gpus)
    limit = seen.memory.limit_bytes
    memory_bytes = seen.machine.memory_bytes if limit is None else min(seen.machine.memory_bytes, limit)
    if not on_gpus or memory_bytes >= on_gpus:
        return None
    return note(
        "The GPUs have more memory than the host",
        f"host: {size(memory_bytes)}, GPUs: {size(on_gpus)}",
        "Large models are read from the disk again at every start, and there is little room for KV offload.",
    )
