"""What the kernel's texts say about processors and memory: pure parsers of /proc files."""

from __future__ import annotations

from dataclasses import dataclass

_KIB_BYTES = 1024
_MHZ_HZ = 1e6
_ISA_NAMES = {
    "sse4_2": "sse4_2",
    "avx": "avx",
    "f16c": "f16c",
    "fma": "fma",
    "avx2": "avx2",
    "avx_vnni": "avx_vnni",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512vl": "avx512vl",
    "avx512_vnni": "avx512_vnni",
    "avx512_bf16": "avx512_bf16",
    "avx512_fp16": "avx512_fp16",
    "amx_tile": "amx_tile",
    "amx_int8": "amx_int8",
    "amx_bf16": "amx_bf16",
    "asimd": "neon",
    "asimddp": "dotprod",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "sve": "sve",
    "sve2": "sve2",
}
"""Kernel's name to ours, of the vector extensions that inference engines have code paths for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuInfo:
    """/proc/cpuinfo, read. None where the text does not say: ARM names no model, virtual machines no cores."""

    model: str | None
    logical_cores: int
    physical_cores: int | None
    isa: list[str]
    hypervisor: bool
    frequency_hz: float | None
    """Mean over the cores, at the moment the text was read."""


def parse_cpuinfo(text: str) -> CpuInfo:
    """Read /proc/cpuinfo of x86 or ARM."""
    processors = [_fields(block) for block in text.split("\n\n") if "processor" in _fields(block)]
    first = processors[0] if processors else {}
    flags = set((first.get("flags") or first.get("Features") or "").split())
    cores = {(cpu["physical id"], cpu["core id"]) for cpu in processors if {"physical id", "core id"} <= cpu.keys()}
    speeds = [float(cpu["cpu MHz"]) * _MHZ_HZ for cpu in processors if cpu.get("cpu MHz")]
    return CpuInfo(
        model=first.get("model name") or _arm_model(first),
        logical_cores=len(processors),
        physical_cores=len(cores) or None,
        isa=[ours for kernels, ours in _ISA_NAMES.items() if kernels in flags],
        hypervisor="hypervisor" in flags,
        frequency_hz=sum(speeds) / len(speeds) if speeds else None,
    )


def parse_meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo in bytes, by the kernel's names."""
    values = {}
    for line in text.splitlines():
        name, _, amount = line.partition(":")
        number, *unit = amount.split() or [""]
        if number.isascii() and number.isdecimal():
            values[name] = int(number) * (_KIB_BYTES if unit == ["kB"] else 1)
    return values


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _arm_model(cpu: dict[str, str]) -> str | None:
    if "CPU part" not in cpu:
        return None
    return f"ARM implementer {cpu.get('CPU implementer', '?')} part {cpu['CPU part']}"
