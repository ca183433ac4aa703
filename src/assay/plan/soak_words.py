"""What a soak saw, in clauses that verdicts quote."""

from __future__ import annotations

from assay.records.soak import MemoryTrend, Soak
from assay.records.spec import MAIN_POINT
from assay.units import MIB_BYTES

MINUTE_S = 60.0
UNSOAKED = "reference was not soaked"
"""Of what an arm stands on, where nothing is known of it."""


def told(soak: Soak) -> str:
    """A soak in one clause, with its figures."""
    if soak.passed is None:
        return f"not soaked: {soak.problem}"
    failed = "none failed" if not soak.failed else f"{soak.failed:,} failed, the first: {soak.first_error}"
    sent = f"{soak.requests:,} request{'' if soak.requests == 1 else 's'}"
    requests = soak.problem if soak.problem and not soak.requests else f"{sent}, {failed}"
    still = f", and no token came for the last {soak.silent_s:.0f} s" if soak.stalled else ""
    still += f", and then the server died: {soak.died}" if soak.died else ""
    where = f"{soak.concurrency} streams" if soak.point == MAIN_POINT else f"{soak.point}, {soak.concurrency} streams"
    return f"soaked{_how_long(soak)} at {where}: {requests}{still}; {memory(soak)}"


def _how_long(soak: Soak) -> str:
    """Of steady load; empty where the server died: when it did, its warm-up included, stands behind what it died of."""
    return "" if soak.died else f" for {soak.soaked_s:.0f} s"


def memory(soak: Soak) -> str:
    """Its memory alone."""
    parts = [_trend(trend) for trend in soak.memory]
    parts += [f"memory of the {where} is not known ({why})" for where, why in soak.unknown.items()]
    return ", ".join(parts) or "memory was not looked at"


def _trend(trend: MemoryTrend) -> str:
    rate, low, high = trend.bytes_per_s, trend.low_bytes_per_s, trend.high_bytes_per_s
    if trend.grows or low <= 0:
        grows = "grows" if trend.grows else "does not grow"
    else:
        grows = "levels off" if trend.levels_off else "grows within what is tolerated"
    bound = f", {_per_minute(trend.tolerated_bytes_per_s)} tolerated" if low > 0 else ""
    told = f"{_per_minute(rate)} MiB/min [{_per_minute(low)}, {_per_minute(high)}]{bound}"
    return f"memory of the {trend.where} {grows} ({told})"


def _per_minute(bytes_per_s: float) -> str:
    value = bytes_per_s * MINUTE_S / MIB_BYTES
    return f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.2g}"  # noqa: PLR2004 - three digits are all there are
