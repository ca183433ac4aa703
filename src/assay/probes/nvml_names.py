"""NVML's numbers in words. Source: nvml.h (NVML API reference), whose numbers are part of its ABI."""

from __future__ import annotations

_REASONS = {
    0x1: "idle",
    0x2: "application-clocks",
    0x4: "sw-power-cap",
    0x8: "hw-slowdown",
    0x10: "sync-boost",
    0x20: "sw-thermal",
    0x40: "hw-thermal",
    0x80: "hw-power-brake",
    0x100: "display-clocks",
    0x200: "board-limit",
    0x400: "reliability",
}
COMPUTE_MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}
LEVELS = {0: "internal", 10: "switch", 20: "switches", 30: "host-bridge", 40: "node", 50: "system"}
P2P = {
    0: "ok",
    1: "chipset not supported",
    2: "GPU not supported",
    3: "topology not supported",
    4: "disabled by the driver's settings",
    5: "not supported",
    6: "unknown",
}
FABRIC = {0: "not-supported", 1: "not-started", 2: "in-progress", 3: "completed"}


def throttle_reasons(bits: int) -> list[str]:
    """The reasons in a mask.

    >>> throttle_reasons(0x44)
    ['sw-power-cap', 'hw-thermal']
    """
    known = [word for bit, word in _REASONS.items() if bits & bit]
    unknown = bits & ~sum(_REASONS)
    return [*known, f"unknown (0x{unknown:x})"] if unknown else known
