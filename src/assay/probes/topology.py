"""Sockets, NUMA nodes and caches, from what the kernel lists under /sys/devices/system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from assay.probes.cpu import parse_meminfo
from assay.probes.files import Files
from assay.records.snapshot import Cache, NumaNode

_SYSTEM = "sys/devices/system"
_SIZE_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


def numa_nodes(files: Files) -> list[NumaNode]:
    """The nodes that hold processors or memory."""
    nodes = []
    for folder in files.folders(f"{_SYSTEM}/node/node[0-9]*"):
        memory = parse_meminfo(_without_node(files.text(folder / "meminfo") or ""))
        nodes.append(
            NumaNode(
                index=int(folder.name.removeprefix("node")),
                cpus=files.text(folder / "cpulist") or "",
                memory_bytes=memory.get("MemTotal"),
                free_bytes=memory.get("MemFree"),
            )
        )
    return nodes


def caches(files: Files) -> list[Cache]:
    """Caches by level and kind; one that several processors share counts once."""
    seen: dict[tuple[int, str, int], set[str]] = {}
    for folder in files.folders(f"{_SYSTEM}/cpu/cpu[0-9]*/cache/index[0-9]*"):
        level, kind = files.number(folder / "level"), files.text(folder / "type")
        size_bytes = parse_size(files.text(folder / "size") or "")
        shared = files.text(folder / "shared_cpu_list") or folder.parts[-3]
        if level and kind and size_bytes:
            seen.setdefault((level, kind.lower(), size_bytes), set()).add(shared)
    return [
        Cache(level=level, kind=kind, size_bytes=size_bytes, instances=len(instances))
        for (level, kind, size_bytes), instances in sorted(seen.items())
    ]


def sockets(files: Files) -> int | None:
    """Physical packages; None where the kernel does not number them."""
    numbers = Counter(
        files.text(folder / "topology/physical_package_id") for folder in files.folders(f"{_SYSTEM}/cpu/cpu[0-9]*")
    )
    return len([number for number in numbers if number not in (None, "-1")]) or None


def parse_size(text: str) -> int | None:
    """`32K`, `2M` or a plain number, in bytes."""
    unit = _SIZE_UNITS.get(text[-1:])
    digits = text[:-1] if unit else text
    return int(digits) * (unit or 1) if digits.isdigit() else None


def parse_list(text: str) -> set[int]:
    """`0-3,8` as {0, 1, 2, 3, 8}; parts that are no numbers are passed over."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (last or first).isdigit():
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def list_of(numbers: Iterable[int]) -> str:
    """The inverse of `parse_list`.

    >>> list_of([0, 1, 2, 8])
    '0-2,8'
    """
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _without_node(text: str) -> str:
    """`Node 0 MemTotal: 1 kB` as /proc/meminfo has it."""
    return "\n".join(line.split(maxsplit=2)[-1] for line in text.splitlines() if line.startswith("Node"))
