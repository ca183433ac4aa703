"""The sections of an assessment about GPUs: a table by kind, and how they are joined."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay.records.device import Fact
from assay.records.gpu import Gpu, GpuPair
from assay.records.snapshot import MachineSnapshot
from assay.render.machine_view import facts, section, size
from assay.render.words import NOTHING
from assay.units import GIB_BYTES

_SHORT = {"internal": "INT", "switch": "PIX", "switches": "PXB", "host-bridge": "PHB", "node": "NODE", "system": "SYS",
          "nvlink": "NVL", "xgmi": "XGMI"}  # fmt: skip
_MEANING = {
    "INT": "one board",
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "a host bridge",
    "NODE": "within a NUMA node",
    "SYS": "between sockets",
    "NVL": "NVLink",
    "XGMI": "xGMI",
}
_BARRED = "!"
_MHZ_HZ = 1e6


def gpu_section(seen: MachineSnapshot) -> list[RenderableType]:
    """Nothing but the reason where there are none."""
    reading = seen.gpu
    if not reading.gpus:
        return [section("gpus", Text(f"none ({reading.problem or 'nothing was asked'})"))]
    driver = (reading.driver or "unknown") + (f", up to CUDA {reading.cuda}" if reading.cuda else "")
    parts: list[RenderableType] = []
    for name in dict.fromkeys(gpu.name for gpu in reading.gpus):
        alike = [gpu for gpu in reading.gpus if gpu.name == name]
        parts += [Text(f"{len(alike)}x {name}"), facts([*_kind(alike[0]), ("driver", driver)]), gpu_table(alike)]
    shown = [section("gpus", Group(*parts))]
    return [*shown, section("links between gpus", _links(reading.gpus, reading.pairs))] if reading.pairs else shown


def gpu_table(gpus: Sequence[Gpu]) -> Table:
    """One row a GPU: what changes from one to the next, and from moment to moment."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("#", "GiB used", "W", "MHz", "\N{DEGREE SIGN}C", "PCIe now / max", "node", "state"):
        table.add_column(heading, overflow="fold")
    for gpu in gpus:
        table.add_row(
            *(Text(cell) for cell in (str(gpu.index), _used(gpu), _power(gpu), _clock(gpu), _temperature(gpu),
                                      _pcie(gpu), _number(gpu.numa_node), _state(gpu)))
        )  # fmt: skip
    return table


def _kind(gpu: Gpu) -> list[tuple[str, str]]:
    """What is the same for all of a kind, each number with its basis."""
    parts = [
        gpu.architecture or "",
        _fact(gpu.sms, "compute units" if gpu.vendor == "amd" else "SMs"),
        _fact(gpu.smem_per_block_bytes, "shared memory a block"),
        _fact(gpu.l2_bytes, "L2"),
    ]
    window = f"BAR1 {size(gpu.bar1_bytes)}" if gpu.bar1_bytes else ""
    ecc = "" if gpu.ecc.enabled is None else f"ECC {'on' if gpu.ecc.enabled else 'off'}"
    persistence = "" if gpu.persistence is None else f"persistence {'on' if gpu.persistence else 'off'}"
    mode = f"compute mode {gpu.compute_mode}" if gpu.compute_mode else ""
    mig = "" if gpu.mig_enabled is None else f"MIG {'on' if gpu.mig_enabled else 'off'}"
    links = "" if gpu.nvlinks_active is None else (
        f"{gpu.nvlinks_active} NVLinks up" + (f" (version {gpu.nvlink_version})" if gpu.nvlink_version else "")
    )  # fmt: skip
    switches = f"fabric {gpu.fabric}" if gpu.fabric and gpu.fabric != "not-supported" else ""
    rows = [
        ("chip", ", ".join(part for part in parts if part) or "unknown"),
        ("set to", ", ".join(part for part in (ecc, mig, persistence, mode, window, links, switches) if part)),
    ]
    return [row for row in rows if row[1]]


def _fact(fact: Fact | None, name: str) -> str:
    if fact is None:
        return f"{name} unknown"
    value = size(fact.value) if fact.unit == "bytes" else f"{fact.value:g}"
    return f"{value} {name}" + ("" if fact.basis == "measured" else f" ({fact.basis})")


def _links(gpus: Sequence[Gpu], pairs: Sequence[GpuPair]) -> RenderableType:
    levels = {pair.level for pair in pairs}
    closed = [pair for pair in pairs if not _is_open(pair)]
    if len(levels) == 1 and len(closed) in (0, len(pairs)):
        level = _MEANING.get(_SHORT.get(next(iter(levels)) or "", ""), "not known")
        access = "no peer access" if closed else "peer access"
        return Text(f"every pair: {level}, {access}" + (f" ({closed[0].p2p_read})" if closed else ""))
    cells = {(pair.a, pair.b): _cell(pair) for pair in pairs}
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_row("", *(Text(str(gpu.index), style="bold") for gpu in gpus))
    for gpu in gpus:
        row = (cells.get((min(gpu.index, other.index), max(gpu.index, other.index)), "x") for other in gpus)
        table.add_row(Text(str(gpu.index), style="bold"), *(Text(cell) for cell in row))
    used = dict.fromkeys(_SHORT.get(pair.level or "", "?") for pair in pairs)
    legend = [f"{short}: {_MEANING.get(short, 'not known')}" for short in used]
    legend += [f"{_BARRED}: no peer access"] if closed else []
    return Group(table, Text("; ".join(legend), style="dim"))


def _cell(pair: GpuPair) -> str:
    return _SHORT.get(pair.level or "", "?") + ("" if _is_open(pair) else _BARRED)


def _is_open(pair: GpuPair) -> bool:
    """Whether access is possible, or not known not to be."""
    return "ok" in (pair.p2p_read or "ok", pair.p2p_write or "ok")


def _used(gpu: Gpu) -> str:
    if gpu.lost or gpu.memory_bytes is None:
        return gpu.lost or NOTHING
    used = NOTHING if gpu.memory_used_bytes is None else f"{gpu.memory_used_bytes / GIB_BYTES:.1f}"
    return f"{used} / {gpu.memory_bytes / GIB_BYTES:.1f}"


def _power(gpu: Gpu) -> str:
    return _of(gpu.power.draw_w, gpu.power.limit_w)


def _clock(gpu: Gpu) -> str:
    return _of(*(None if hertz is None else hertz / _MHZ_HZ for hertz in (gpu.clocks.sm_hz, gpu.clocks.sm_max_hz)))


def _temperature(gpu: Gpu) -> str:
    return NOTHING if gpu.temperature_c is None else f"{gpu.temperature_c:.0f}"


def _pcie(gpu: Gpu) -> str:
    link = gpu.pcie
    if link.generation is None or link.width is None:
        return NOTHING
    most = f" / {link.max_generation} x{link.max_width}" if link.max_generation and link.max_width else ""
    return f"{link.generation} x{link.width}{most}"


def _of(now: float | None, most: float | None) -> str:
    if now is None and most is None:
        return NOTHING
    return " / ".join(NOTHING if value is None else f"{value:.0f}" for value in (now, most))


def _number(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _state(gpu: Gpu) -> str:
    state = [] if gpu.performance_state is None else [f"P{gpu.performance_state}"]
    state += [] if gpu.utilization is None else [f"{gpu.utilization:.0%} busy"]
    state += [reason for reason in gpu.throttle_reasons or [] if reason != "idle"]
    return ", ".join(state) or NOTHING
