"""Load tests made by hand, for tests of how they are shown. Nothing in them was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from assay.ports_bench import Live
from assay.records.bench import (
    Arrival,
    BenchMeasures,
    BenchResult,
    BenchSpec,
    Client,
    Comparison,
    Distribution,
    SeriesPoint,
    Side,
    Slo,
    SweepResult,
)
from assay.records.run import Gate, Quantiles

WARMUP_S = 6.0
POISSON = Arrival(kind="poisson", rate_per_s=25.0)
BUSY = Gate(
    name="client-not-saturated",
    passed=False,
    evidence="the busiest load process used 99% of its core",
    remedy="give it more processes (--processes), or another machine",
)
GOOD = [
    Gate(name="no-errors", passed=True, evidence="0 of 812 requests failed"),
    Gate(name="tokens-as-asked", passed=True, evidence="812 of 812 replies have exactly the output length asked for"),
    Gate(name="steady", passed=True, evidence="tokens/s in successive stretches of warm-up: 3,380, 3,410"),
    Gate(name="concurrency-held", passed=True, evidence="63.7 of 64 streams were in flight on average"),
]


def distribution(p50_s: float, count: int = 800, *, spread: float = 0.25, seed: int = 1) -> Distribution:
    """A lognormal one; intervals from order statistics, p99 only from 1,000 values on."""
    rng = random.Random(seed)
    values = sorted(p50_s * rng.lognormvariate(0, spread) for _ in range(min(count, 4000)))

    def at(share: float) -> float:
        return values[min(len(values) - 1, max(0, round(share * (len(values) - 1))))]

    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, **({"p99": 0.99} if count >= 1000 else {})}
    found = {name: at(share) for name, share in shares.items()}
    half = {name: 2 * math.sqrt(share * (1 - share) / len(values)) for name, share in shares.items()}
    edges = [values[0] * (values[-1] / values[0]) ** (i / 40) for i in range(41)]
    counts = [sum(low <= value < high for value in values) for low, high in pairwise(edges)]
    return Distribution(
        quantiles=Quantiles(
            num_samples=count, mean_s=sum(values) / len(values), p50_s=found["p50"], p90_s=found["p90"],
            p95_s=found["p95"], p99_s=found.get("p99"),
        ),
        intervals={name: (at(share - half[name]), at(share + half[name])) for name, share in shares.items()},
        histogram_edges_s=edges,
        histogram_counts=counts,
    )  # fmt: skip


def nothing() -> Distribution:
    """Of no values."""
    quantiles = Quantiles(num_samples=0, mean_s=None, p50_s=None, p90_s=None, p95_s=None, p99_s=None)
    return Distribution(quantiles=quantiles)


def measures(
    *, tokens_per_s: float = 3412.0, tpot_s: float = 0.0182, ttft_s: float = 0.412, **changes: Any
) -> BenchMeasures:
    e2e_s = ttft_s + 127 * tpot_s
    fields: dict[str, Any] = {
        "duration_s": 30.0, "window_tokens_per_s": [0.996 * tokens_per_s, 1.003 * tokens_per_s, 1.001 * tokens_per_s],
        "output_tokens_per_s": tokens_per_s, "total_tokens_per_s": 3 * tokens_per_s,
        "requests_per_s": tokens_per_s / 128, "goodput_per_s": 0.9 * tokens_per_s / 128, "requests_completed": 801,
        "output_tokens": 30 * tokens_per_s, "input_tokens": 60 * tokens_per_s, "ttft": distribution(ttft_s),
        "ttft_from_intended": distribution(1.2 * ttft_s, seed=2), "tpot": distribution(tpot_s, spread=0.08),
        "itl": distribution(tpot_s, 102_360, spread=0.3),
        "itl_per_token": distribution(0.97 * tpot_s, 102_360, spread=0.28),
        "e2e": distribution(e2e_s, spread=0.1), "e2e_from_intended": distribution(1.03 * e2e_s, spread=0.1, seed=2),
        "tokens_per_chunk": 1.02, "mean_input_tokens": 256.0, "mean_output_tokens": 128.0, "mean_in_flight": 63.7,
        "max_in_flight": 64, "offered_per_s": None, "sent_per_s": tokens_per_s / 128, "arrival_cv": None,
    }  # fmt: skip
    return BenchMeasures(**(fields | changes))


def client(**changes: Any) -> Client:
    fields: dict[str, Any] = {
        "processes": 2, "stamps": "kernel", "cpu_share": 0.45, "busiest_share": 0.3, "cpu_s_per_million_tokens": 20.9,
        "lag_p50_s": 0.00004, "lag_p99_s": 0.0006, "lag_max_s": 0.0021, "schedule_error_p50_s": 0.00006,
        "schedule_error_p99_s": 0.0009, "schedule_error_max_s": 0.0031, "merged_share": 0.004,
        "rss_bytes": 98 * 1024**2, "rss_growth_bytes_per_s": 900.0, "ceiling_tokens_per_s": 98_000.0,
        "null_server_tokens_per_s": 140_000.0,
    }  # fmt: skip
    return Client(**(fields | changes))


def series(tokens_per_s: float = 3412.0, ttft_s: float = 0.412, itl_s: float = 0.0182) -> list[SeriesPoint]:
    """36 s in stretches of half a second: a warm-up that settles, then three windows of 10 s."""
    rng = random.Random(5)
    points = []
    for i in range(72):
        at_s = 0.5 * i + 0.25
        settled = 1 - math.exp(-at_s / 1.2)
        slow = 1 + 9 * math.exp(-at_s / 1.5)
        points.append(
            SeriesPoint(
                at_s=at_s, output_tokens_per_s=tokens_per_s * settled * rng.gauss(1, 0.03),
                ttft_p50_s=None if i == 0 else slow * ttft_s * rng.gauss(1, 0.05),
                ttft_p99_s=None if i == 0 else 2.1 * slow * ttft_s * rng.gauss(1, 0.1),
                itl_p50_s=None if i == 0 else itl_s * rng.gauss(1, 0.03),
                itl_p99_s=None if i == 0 else 2.4 * itl_s * rng.gauss(1, 0.1),
                in_flight=64 * settled, measured=at_s > WARMUP_S,
            )
        )  # fmt: skip
    return points


def result(**changes: Any) -> BenchResult:
    """A valid closed-loop test with an SLO."""
    spec = BenchSpec(
        url="http://127.0.0.1:8000", model="Sample-8B (made-up)", arrival=Arrival(concurrency=64),
        slo=Slo(ttft_s=0.5, tpot_s=0.05),
    )  # fmt: skip
    fields: dict[str, Any] = {
        "spec": spec, "started_at_ns": 1_790_000_000 * 10**9, "assay_version": "0.1.0",
        "engine": "sample 1.0 (made-up)",
        "machine": "Sample CPU, 2 cores", "measures": measures(), "client": client(), "gates": GOOD, "errors": {},
        "first_error": None, "num_requests": 812, "series": series(), "workload_sha256": "5a" * 32,
        "realised": {
            "input_tokens_mean": 256.0, "input_tokens_p50": 256.0, "input_tokens_max": 256.0,
            "output_tokens_mean": 128.0, "output_tokens_p50": 128.0, "output_tokens_max": 128.0,
        },
        "folder": "bench-20260921-1",
    }  # fmt: skip
    return BenchResult(**(fields | changes))


def open_loop(**changes: Any) -> BenchResult:
    """The same under Poisson arrivals."""
    made = result()
    spec = made.spec.model_copy(update={"arrival": POISSON})
    return result(spec=spec, measures=measures(offered_per_s=25.0, sent_per_s=24.9, arrival_cv=1.01), **changes)


def refused(**changes: Any) -> BenchResult:
    """One whose client was saturated, and with errors."""
    return result(
        gates=[*GOOD[1:], BUSY, GOOD[0].model_copy(update={"passed": False, "evidence": "3 of 812 requests failed"})],
        errors={"http-503": 2, "reset": 1}, first_error="http-503: overloaded", **changes,
    )  # fmt: skip


def unmeasured() -> BenchResult:
    """One that came to nothing."""
    gate = Gate(name="steady", passed=False, evidence="no window began within 60 s", remedy="give it --warmup-max 300")
    return result(
        measures=None, gates=[gate], series=[], num_requests=0, workload_sha256="", engine=None, realised={},
        client=client(processes=1, stamps="event-loop", cpu_s_per_million_tokens=None, lag_p50_s=None, lag_p99_s=None,
                      lag_max_s=None, schedule_error_p50_s=None, schedule_error_p99_s=None, schedule_error_max_s=None,
                      rss_bytes=None, rss_growth_bytes_per_s=None, ceiling_tokens_per_s=None,
                      null_server_tokens_per_s=None),
    )  # fmt: skip


def sweep(loads: Sequence[int] = (1, 4, 16, 64, 256), knee: int | None = 3) -> SweepResult:
    """A decoder whose step takes 12 + 0.2 x batch milliseconds; the last load is not valid."""
    points = []
    for load in loads:
        step_s = 0.012 + 0.0002 * load
        spec = result().spec.model_copy(update={"arrival": Arrival(concurrency=load)})
        found = measures(tokens_per_s=load / step_s, tpot_s=step_s, ttft_s=3 * step_s)
        points.append((refused if load == 256 else result)(spec=spec, measures=found, series=[]))
    reason = "throughput over latency is greatest here: to the next load throughput changes by +57%, latency by +155%"
    return SweepResult(points=points, knee=knee, knee_reason=reason if knee is not None else "go higher")


def comparison(**changes: Any) -> Comparison:
    fields: dict[str, Any] = {
        "sides": [
            Side(label="one thread", target="llama-server -m sample.gguf -t 1", launched=True),
            Side(label="two threads", target="llama-server -m sample.gguf -t 2", launched=True),
            Side(label="C", target="http://127.0.0.1:8001", launched=False),
        ],
        "metric": "output_tokens_per_s", "higher_is_better": True,
        "values": {
            "one thread": [86.1, 84.9, 87.0, 85.5, 86.6], "two threads": [118.2, 121.5, 120.0, 119.1],
            "C": [86.0, 85.8, 86.3],
        },
        "invalid": {"one thread": [], "two threads": [], "C": ["client-not-saturated: the busiest process used 99%"]},
        "effects": {"two threads": (0.333, 0.29, 0.376), "C": (0.002, -0.02, 0.024)},
        "verdicts": {"two threads": "better", "C": "same"},
        "sentences": {
            "two threads": "two threads gives 39.5% [+33.6, +45.6] more output tokens/s than one thread.",
            "C": "C and one thread give the same output tokens/s: +0.2% [-2.0, +2.4].",
        },
        "min_effect": 0.05, "alpha": 0.05, "num_rounds": 4,
    }  # fmt: skip
    return Comparison(**(fields | changes))


def live(**changes: Any) -> Live:
    fields: dict[str, Any] = {
        "at_s": 12.0, "phase": "measuring", "output_tokens_per_s": 3412.0, "requests_per_s": 26.7, "in_flight": 64,
        "wanted_in_flight": 64, "completed": 320, "failed": 0, "ttft_p50_s": 0.412, "itl_p50_s": 0.0182,
        "client_busiest_share": 0.3, "client_lag_s": 0.0004, "left_s": 24.0,
    }  # fmt: skip
    return Live(**(fields | changes))
