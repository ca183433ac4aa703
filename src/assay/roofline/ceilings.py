"""What a device can do at most (for floors), and what its kernels can reach (for expected times)."""

from __future__ import annotations

from dataclasses import dataclass

from assay.errors import UsageError
from assay.records.device import Basis, Device, Fact
from assay.records.estimate import Range
from assay.records.model_shape import Compute
from assay.roofline import efficiency
from assay.roofline.efficiency import Profile

_FALLBACKS: dict[Compute, tuple[Compute, ...]] = {
    "fp4": ("fp4", "bf16", "fp32"),
    "fp8": ("fp8", "bf16", "fp32"),
    "int8": ("int8", "bf16", "fp32"),
    "bf16": ("bf16", "fp32"),
    "fp32": ("fp32", "bf16"),
}
"""Arithmetic that stands in for one the device lacks: weights are dequantized on the way in and multiplied in BF16."""
_AT_BEST: dict[Compute, tuple[Compute, ...]] = {
    "fp4": ("fp4", "fp8", "bf16"),
    "fp8": ("fp8", "bf16"),
    "int8": ("int8", "bf16"),
    "bf16": ("bf16", "fp32"),
    "fp32": ("fp32", "bf16"),
}
"""For the floor: the fastest that an exotic kernel could use instead (4-bit weights times 8-bit activations)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rate per second: the peak no kernel passes, and the range that a large kernel reaches."""

    peak: float
    reached: Range
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """A device as the timing sees it."""

    profile: Profile
    read: Rate
    """Device memory, bytes/s."""
    cache_bytes: float
    """Last-level cache; 0 when unknown."""
    cache_read_peak: float | None
    cache_read: Range
    """Bytes/s out of that cache."""
    cache_basis: Basis
    launch_s: Range
    launch_basis: Basis
    flop: dict[Compute, Rate]
    """By the arithmetic asked for, fallbacks resolved: every kind has one."""
    runs_as: dict[Compute, Compute]
    """Arithmetic asked for to arithmetic used."""

    def lacks(self, compute: Compute) -> bool:
        """Whether other arithmetic stands in for this one."""
        return self.runs_as.get(compute, compute) != compute


def of(device: Device) -> Ceilings:
    """The ceilings of a device.

    Raises:
        UsageError: nothing is known of its memory bandwidth, or of arithmetic in 16 or 32 bits, which stands in for all
            other.
    """
    profile = efficiency.GPU if device.kind == "gpu" else efficiency.CPU
    read = _rate(device, "memory_read_bytes_per_s", efficiency.STREAM_SHARE_OF_SPEC)
    if read is None:
        raise UsageError(
            f"{device.name} has no memory_read_bytes_per_s: no time can be estimated",
            hint="add that fact to its TOML file, or measure it with `assay characterize`",
        )
    flop, runs_as = _arithmetic(device)
    if "bf16" not in flop:
        raise UsageError(
            f"{device.name} has no rate of arithmetic in BF16 or FP32 (bf16_flop_per_s, fp32_flop_per_s)",
            hint="add that fact to its TOML file, or measure it with `assay characterize`",
        )
    cache_peak = _peak(device.facts.get("l2_read_bytes_per_s", []))
    launch = device.fact("launch_s")
    return Ceilings(
        profile=profile,
        read=read,
        cache_bytes=_peak(device.facts.get("l2_bytes", [])) or 0.0,
        cache_read_peak=cache_peak,
        cache_read=_cache_read(cache_peak, read),
        cache_basis=cache.basis if (cache := device.fact("l2_read_bytes_per_s")) else "assumed",
        launch_s=profile.launch_s if launch is None else Range(low=launch.value, mid=launch.value, high=launch.value),
        launch_basis="assumed" if launch is None else launch.basis,
        flop=flop,
        runs_as=runs_as,
    )


def _arithmetic(device: Device) -> tuple[dict[Compute, Rate], dict[Compute, Compute]]:
    own = {
        compute: rate
        for compute in _FALLBACKS
        if (rate := _rate(device, f"{compute}_flop_per_s", efficiency.MATMUL_SHARE_OF_SPEC))
    }
    flop: dict[Compute, Rate] = {}
    runs_as: dict[Compute, Compute] = {}
    for compute, choices in _FALLBACKS.items():
        used = next((choice for choice in choices if choice in own), None)
        if used is None:
            continue
        peak = max(own[choice].peak for choice in (*_AT_BEST[compute], used) if choice in own)
        flop[compute] = Rate(peak=peak, reached=own[used].reached, basis=own[used].basis)
        runs_as[compute] = used
    return flop, runs_as


def _rate(device: Device, name: str, share_of_spec: Range) -> Rate | None:
    fact = device.fact(name)
    if fact is None or fact.value <= 0:
        return None
    told = fact.basis in ("measured", "elsewhere")
    reached = Range(low=fact.value, mid=fact.value, high=fact.value) if told else share_of_spec.scaled(fact.value)
    return Rate(peak=_peak(device.facts[name]) or fact.value, reached=reached, basis=fact.basis)


def _peak(facts: list[Fact]) -> float | None:
    """The highest anybody credible states: a micro-benchmark may be beaten, its data sheet not."""
    credible = [fact.value for fact in facts if fact.basis != "assumed"] or [fact.value for fact in facts]
    return max(credible, default=None)


def _cache_read(peak: float | None, memory: Rate) -> Range:
    if peak is not None:
        return Range(low=0.5 * peak, mid=0.7 * peak, high=peak)
    over = efficiency.CACHE_OVER_MEMORY
    return Range(low=over.low * memory.reached.low, mid=over.mid * memory.reached.mid, high=over.high * memory.peak)
