"""The sections of an assessment about processors, memory, disks, system, software and servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assay.records.snapshot import Cache, Cpu, Disk, MachineSnapshot, Server
from assay.units import GIB_BYTES, MIB_BYTES

_KIB_BYTES = 1024
_ENGINES_FIRST = ("vllm", "sglang", "tensorrt-llm", "torch", "cuda", "rocm", "nccl")


@dataclass(frozen=True, slots=True)
class MachineSections:
    """Parts to be shown before and after those about GPUs."""

    before_gpus: list[RenderableType]
    after_gpus: list[RenderableType]


def machine_sections(seen: MachineSnapshot) -> MachineSections:
    """Everything but GPUs."""
    return MachineSections(
        before_gpus=[
            section("cpu", facts(_cpu(seen))),
            section("memory", facts(_memory(seen))),
            section("disks", facts([_disk(disk) for disk in seen.disks] or [("", "none that can be seen")])),
        ],
        after_gpus=[
            section("system", facts(_system(seen))),
            section("software", facts([("", _software(seen.software))])),
            section("servers", facts([_server(server) for server in seen.servers] or [("", "none found")])),
        ],
    )


def section(title: str, body: RenderableType) -> RenderableType:
    """A title, and below it what belongs to it."""
    return Group(Text(""), Text(title, style="bold"), Padding(body, (0, 0, 0, 2), expand=False))


def facts(rows: Sequence[tuple[str, str]]) -> RenderableType:
    """Names and values in two columns; without names, only values."""
    if not any(name for name, _ in rows):
        return Group(*(Text(value) for _, value in rows))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def size(size_bytes: float) -> str:
    """Binary, to three figures or so: 32 KiB, 8 MiB, 95.6 GiB, 1.82 TiB."""
    for unit, one in (("TiB", 1024 * GIB_BYTES), ("GiB", GIB_BYTES), ("MiB", MIB_BYTES), ("KiB", _KIB_BYTES)):
        if size_bytes >= one:
            value = size_bytes / one
            digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2  # noqa: PLR2004 - figures
            return f"{value:.{digits}f} {unit}"
    return f"{size_bytes:.0f} B"


def _cpu(seen: MachineSnapshot) -> list[tuple[str, str]]:
    machine, cpu = seen.machine, seen.cpu
    sockets = f"{cpu.sockets} sockets, " if cpu.sockets and cpu.sockets > 1 else ""
    limited = "" if cpu.quota_cores is None else f" (quota {cpu.quota_cores:g})"
    usable = f"{machine.usable_cores} usable{limited}"
    rows = [
        ("model", machine.cpu_model),
        ("cores", f"{sockets}{machine.physical_cores} cores, {machine.logical_cores} threads, {usable}"),
    ]
    if len(cpu.nodes) > 1:
        rows += [(f"node {node.index}", f"cpus {node.cpus}, {_of(node.memory_bytes)}") for node in cpu.nodes]
    caches = ", ".join(_cache(cache) for cache in cpu.caches)
    rows += [("caches", caches)] if caches else []
    rows += [("vectors", ", ".join(machine.isa) or "none known"), ("clock", _clock(cpu))]
    stolen = "" if cpu.steal_share is None else f", {cpu.steal_share:.2%} stolen since boot"
    load = "unknown" if cpu.load_1m is None else f"{cpu.load_1m:.2f} over a minute"
    return [*rows, ("load", load + stolen)]


def _cache(cache: Cache) -> str:
    kind = {"data": "d", "instruction": "i"}.get(cache.kind, "")
    return f"L{cache.level}{kind} {size(cache.size_bytes)} x{cache.instances}"


def _clock(cpu: Cpu) -> str:
    now = "unknown" if cpu.frequency_hz is None else f"{cpu.frequency_hz / 1e9:.2f} GHz"
    governor = ", ".join(cpu.governors)
    driver = f" ({cpu.frequency_driver})" if cpu.frequency_driver else ""
    return f"{now}, governor {governor}{driver}" if governor else f"{now}, governor not to be seen"


def _memory(seen: MachineSnapshot) -> list[tuple[str, str]]:
    memory = seen.memory
    limit = "" if memory.limit_bytes is None else f", limit {size(memory.limit_bytes)}"
    available = "" if memory.available_bytes is None else f", {size(memory.available_bytes)} available"
    swap = "unknown" if memory.swap_bytes is None else "none" if not memory.swap_bytes else (
        f"{size(memory.swap_used_bytes or 0)} of {size(memory.swap_bytes)} in use"
    )  # fmt: skip
    huge = f"transparent: {memory.transparent_hugepages or 'unknown'}"
    if memory.hugepages and memory.hugepage_bytes:
        huge += f"; reserved: {memory.hugepages} of {size(memory.hugepage_bytes)}, {memory.hugepages_free} free"
    return [("total", size(seen.machine.memory_bytes) + available + limit), ("swap", swap), ("huge pages", huge)]


def _disk(disk: Disk) -> tuple[str, str]:
    roles = f" ({', '.join(disk.roles)})" if disk.roles else ""
    free = f"{size(disk.free_bytes)} free of {size(disk.total_bytes)}"
    return disk.mount, f"{disk.kind}, {disk.filesystem}, {free}{roles}"


def _system(seen: MachineSnapshot) -> list[tuple[str, str]]:
    machine, platform, limits = seen.machine, seen.platform, seen.limits
    inside = [platform.container and f"container ({platform.container})"]
    inside.append(platform.virtual_machine and f"virtual machine ({platform.virtual_machine})")
    parameters = " ".join(f"{key}={value}" if value else key for key, value in platform.kernel_parameters.items())
    acs = {True: "redirects between devices", False: "does not redirect", None: "readable by root only"}
    open_files = "no limit" if limits.open_files is None else str(limits.open_files)
    locked = "no limit" if limits.locked_bytes is None else size(limits.locked_bytes)
    rows = [
        ("runs on", f"{machine.os}, {machine.kernel}, Python {machine.python}"),
        ("inside", " in a ".join(part for part in inside if part) or "bare metal, no container"),
        ("limits", f"open files {open_files}, locked memory {locked}, /dev/shm {_of(limits.shm_bytes)}"),
        ("kernel", parameters or "no parameter that matters here"),
    ]
    if seen.gpu.gpus or platform.pci_gpus:
        rows.append(("iommu", f"{platform.iommu or 'unknown'}; ACS {acs[platform.acs_redirect]}"))
    return rows


def _software(versions: dict[str, str]) -> str:
    first = [name for name in _ENGINES_FIRST if name in versions]
    return (
        ", ".join(f"{name} {versions[name]}" for name in [*first, *sorted(versions.keys() - set(first))])
        or "none known"
    )


def _server(server: Server) -> tuple[str, str]:
    where = f"port {server.port}" if server.port else f"process {server.pid}"
    name = " ".join(part for part in (server.engine or server.program, server.version) if part)
    models = Counter(server.models)
    parts = [
        name or "unknown",
        ", ".join(models),
        ", ".join(f"{key} {value}" for key, value in server.settings.items()),
    ]
    process = f"process {server.pid}" if server.pid and server.port else ""
    return where, "; ".join(part for part in (*parts, process, server.problem) if part)


def _of(size_bytes: int | None) -> str:
    return "unknown" if size_bytes is None else size(size_bytes)
