"""Main memory: how much is there and left, and how the kernel hands it out."""

from __future__ import annotations

import re

import psutil

from assay.probes.cgroup import memory_limit_bytes
from assay.probes.cpu import parse_meminfo
from assay.probes.files import Files
from assay.records.snapshot import Memory


def read_memory(files: Files) -> Memory:
    """Read it now."""
    kernel = parse_meminfo(files.text("proc/meminfo") or "")
    swap_bytes, swap_free_bytes = kernel.get("SwapTotal"), kernel.get("SwapFree")
    balancing = files.number("proc/sys/kernel/numa_balancing")
    return Memory(
        available_bytes=available_bytes(files),
        limit_bytes=memory_limit_bytes(files.root),
        swap_bytes=swap_bytes,
        swap_used_bytes=None if swap_bytes is None or swap_free_bytes is None else swap_bytes - swap_free_bytes,
        hugepages=kernel.get("HugePages_Total"),
        hugepages_free=kernel.get("HugePages_Free"),
        hugepage_bytes=kernel.get("Hugepagesize"),
        transparent_hugepages=chosen(files.text("sys/kernel/mm/transparent_hugepage/enabled") or ""),
        numa_balancing=None if balancing is None else balancing > 0,
    )


def available_bytes(files: Files) -> int:
    """What programs can still get without swapping, at most the container's limit."""
    kernel = parse_meminfo(files.text("proc/meminfo") or "")
    available = kernel.get("MemAvailable") or psutil.virtual_memory().available
    limit = memory_limit_bytes(files.root)
    return available if limit is None else min(available, limit)


def chosen(text: str) -> str | None:
    """The choice that a /sys file puts into brackets: `always [madvise] never`."""
    match = re.search(r"\[([\w-]+)\]", text)
    return match[1] if match else None
