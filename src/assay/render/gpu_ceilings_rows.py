"""Ceilings of GPUs as rows of text: what was measured, in the units that people compare."""

from __future__ import annotations

from collections.abc import Iterator

from assay.records.ceilings import GpuCeilings

RATES = {
    "memory_read_bytes_per_s": "memory read",
    "memory_copy_bytes_per_s": "memory copy",
    "l2_read_bytes_per_s": "L2 read",
    "host_link_bytes_per_s": "from the host",
}
ARITHMETIC = ("fp32", "bf16", "fp8", "fp4", "int8")


def gpu_rows(found: GpuCeilings) -> Iterator[tuple[str, str]]:
    """What is measured, and how much."""
    facts = found.facts
    for name, label in RATES.items():
        if name in facts:
            yield label, f"{facts[name].value / 1e9:,.0f} GB/s"
    rates = [(each, facts[key].value) for each in ARITHMETIC if (key := f"{each}_flop_per_s") in facts]
    if rates:
        yield "matrix products", ", ".join(f"{name} {value / 1e12:,.0f} TFLOP/s" for name, value in rates)
    if "launch_s" in facts:
        yield "start of a kernel", f"{1e6 * facts['launch_s'].value:.2f} µs in a replayed graph"
    for curve in found.curves:
        told = f"{1e6 * curve.latency_s:.1f} µs and {curve.bus_bytes_per_s / 1e9:,.0f} GB/s of bus bandwidth"
        yield f"{curve.collective.replace('_', '-')}, {curve.world} GPUs", f"{told} ({curve.algorithm})"
