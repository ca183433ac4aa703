"""A running load test in phrases, and whether its client keeps up."""

from __future__ import annotations

from assay.ports_bench import Live
from assay.render.words import NOTHING, duration_words, number_words

BUSY_SHARE, SATURATED_SHARE = 0.7, 0.9
"""CPU of the busiest load process, from which on the client is called busy, or saturated."""
BUSY_LAG_S, SATURATED_LAG_S = 0.010, 0.050


def rate_words(live: Live) -> str:
    """Throughput, requests, errors."""
    tokens = f"{number_words(live.output_tokens_per_s)} tokens/s"
    requests = request_words(live).replace("/s", " requests/s", 1)
    return f"{tokens}, {requests}, {live.completed:,} done, {live.failed:,} failed"


def request_words(live: Live) -> str:
    """How many a second, and how many at once."""
    wanted = "" if live.wanted_in_flight is None else f" of {live.wanted_in_flight:,}"
    return f"{number_words(live.requests_per_s)}/s, {live.in_flight:,}{wanted} in flight"


def latency_words(live: Live) -> str:
    """Medians of the last stretch."""
    return f"TTFT p50 {_milliseconds(live.ttft_p50_s)}, ITL p50 {_milliseconds(live.itl_p50_s)}"


def left_words(live: Live) -> str:
    """How long this load goes on, as far as that is known."""
    if live.left_s is not None:
        return f"about {duration_words(live.left_s)} left"
    return "until steady" if live.phase == "warming up" else "time left not known"


def health_of(live: Live) -> str:
    """Whether the client keeps up, by its busiest process and by how late it wakes."""
    share, lag_s = live.client_busiest_share, live.client_lag_s
    if share is None and lag_s is None:
        return "not known yet"
    if (share or 0.0) >= SATURATED_SHARE or (lag_s or 0.0) >= SATURATED_LAG_S:
        return "SATURATED"
    return "busy" if (share or 0.0) >= BUSY_SHARE or (lag_s or 0.0) >= BUSY_LAG_S else "ok"


def health_words(live: Live) -> str:
    """The same with its numbers."""
    share = NOTHING if live.client_busiest_share is None else f"{100 * live.client_busiest_share:.0f}%"
    return f"{health_of(live)} (busiest process {share}, lag {_milliseconds(live.client_lag_s)})"


def _milliseconds(value_s: float | None) -> str:
    return NOTHING if value_s is None else f"{number_words(1000 * value_s)} ms"
