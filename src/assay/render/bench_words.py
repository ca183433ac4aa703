"""A load test in words: the rows and phrases that the terminal and the page share. Formatting only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.records.bench import Arrival, BenchMeasures, BenchResult, BenchWorkload, Distribution, Lengths, Slo
from assay.render.words import NOTHING, UNITS, number_words, share_words

NOT_TO_BE_USED = "NOT TO BE USED"
PERCENTILES = ("p50", "p90", "p95", "p99")
LONG_S, SHORT_S = 1.0, 0.001
"""From which largest value on a row is in seconds, and below which in microseconds."""
METRICS: dict[str, tuple[str, float]] = {
    **{str(name): unit for name, unit in UNITS.items()},
    "total_tokens_per_s": ("total tokens/s", 1.0),
    "itl_p50_s": ("ms ITL p50", 1000.0),
    "ttft_p99_s": ("ms TTFT p99", 1000.0),
    "tpot_p99_s": ("ms TPOT p99", 1000.0),
    "itl_p99_s": ("ms ITL p99", 1000.0),
    "e2e_p99_s": ("ms E2E p99", 1000.0),
}
"""What a comparison can judge: the unit with the name, and the factor from the record's SI value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRow:
    """One latency: its percentiles, their intervals, and how many values they come from."""

    name: str
    unit: str
    values: tuple[str, ...]
    intervals: tuple[str, ...]
    """Empty where a percentile has none."""
    num_samples: int


def latency_rows(measures: BenchMeasures, arrival: Arrival) -> list[LatencyRow]:
    """Every latency; under an open law also from the instant at which a request was due."""
    is_open = arrival.kind != "closed"
    named = [
        ("TTFT", measures.ttft),
        *([("TTFT from intended", measures.ttft_from_intended)] if is_open else []),
        ("TPOT", measures.tpot),
        ("ITL per chunk", measures.itl),
        ("ITL per token", measures.itl_per_token),
        ("E2E", measures.e2e),
        *([("E2E from intended", measures.e2e_from_intended)] if is_open else []),
    ]
    return [_latency_row(name, distribution) for name, distribution in named]


def _latency_row(name: str, distribution: Distribution) -> LatencyRow:
    found = percentiles(distribution)
    bounds = [distribution.intervals.get(percentile) for percentile in PERCENTILES]
    unit, factor = unit_of(value for value in [*found, *(high for _, high in filter(None, bounds))] if value)
    intervals = (
        f"[{number_words(factor * bound[0])}, {number_words(factor * bound[1])}]" if bound and value is not None else ""
        for value, bound in zip(found, bounds, strict=True)
    )
    return LatencyRow(
        name=name,
        unit=unit,
        values=tuple(NOTHING if value is None else number_words(factor * value) for value in found),
        intervals=tuple(intervals),
        num_samples=distribution.quantiles.num_samples,
    )


def percentiles(distribution: Distribution) -> tuple[float | None, ...]:
    """p50, p90, p95, p99 in seconds."""
    found = distribution.quantiles
    return (found.p50_s, found.p90_s, found.p95_s, found.p99_s)


def unit_of(values_s: Iterable[float]) -> tuple[str, float]:
    """The unit in which all of the values are easy to read, and the factor from seconds."""
    largest = max(values_s, default=SHORT_S)
    if largest >= LONG_S:
        return "s", 1.0
    return ("ms", 1e3) if largest >= SHORT_S else ("\N{MICRO SIGN}s", 1e6)


def time_words(value_s: float | None) -> str:
    """A time with the unit that fits: "18.2 ms"."""
    if value_s is None:
        return NOTHING
    unit, factor = unit_of([value_s])
    return f"{number_words(factor * value_s)} {unit}"


def arrival_words(arrival: Arrival) -> str:
    """When requests are due, in a phrase."""
    rate = NOTHING if arrival.rate_per_s is None else f"{arrival.rate_per_s:g}/s"
    match arrival.kind:
        case "closed":
            return f"{arrival.concurrency} streams, closed loop"
        case "gamma":
            words = f"gamma arrivals at {rate}, CV {arrival.cv:g}"
        case "trace":
            words = "the trace's own instants" if arrival.rate_per_s is None else f"the trace, rescaled to {rate}"
        case "ramp":
            words = f"arrivals rising from {arrival.start_rate_per_s:g}/s to {rate} over {arrival.ramp_s:g} s"
        case _:
            words = f"{arrival.kind} arrivals at {rate}"
    return words if arrival.concurrency is None else f"{words}, at most {arrival.concurrency} in flight"


def workload_words(workload: BenchWorkload) -> str:
    """What is asked, in a phrase."""
    if workload.kind != "synthetic":
        words = f"{workload.kind} requests from {workload.path}"
        words += f", the first {workload.max_requests:,}" if workload.max_requests else ""
        return words + (f" (sha256 {workload.sha256[:12]})" if workload.sha256 else "")
    words = f"synthetic: {_lengths_words(workload.input)} tokens in, {_lengths_words(workload.output)} out"
    if not workload.prefix_groups:
        return f"{words}, nothing shared"
    count = workload.prefix_groups
    return f"{words}, after one of {count} shared prefix{'es' if count > 1 else ''} of {workload.prefix_tokens} tokens"


def _lengths_words(lengths: Lengths) -> str:
    if lengths.kind == "fixed":
        return f"{lengths.mean:g}"
    if lengths.kind == "uniform":
        return f"{lengths.low} to {lengths.high}"
    return f"{lengths.mean:g} \N{PLUS-MINUS SIGN} {lengths.sd:g} ({lengths.kind})"


def slo_words(slo: Slo) -> str:
    """For example "TTFT <= 500 ms and TPOT <= 50 ms"."""
    bounds = (("TTFT", slo.ttft_s), ("TPOT", slo.tpot_s), ("E2E", slo.e2e_s))
    return " and ".join(f"{name} <= {_bound_words(bound)}" for name, bound in bounds if bound is not None)


def _bound_words(bound_s: float) -> str:
    """As it was given: no more digits than it has."""
    unit, factor = unit_of([bound_s])
    return f"{factor * bound_s:g} {unit}"


def headline(result: BenchResult) -> str:
    """The numbers in a sentence; whether they count is for others to say."""
    measures = result.measures
    if measures is None:
        return "Nothing could be measured."
    found = f"{number_words(measures.output_tokens_per_s)} output tokens/s"
    ttft, tpot = time_words(measures.ttft.quantiles.p50_s), time_words(measures.tpot.quantiles.p50_s)
    medians = f"median TTFT {ttft}, median TPOT {tpot}"
    return f"{found}; {medians}. Load: {arrival_words(result.spec.arrival)}."


def refusal_words(result: BenchResult) -> str:
    """That the numbers do not count, for those that do not."""
    failed = sum(not gate.passed for gate in result.gates)
    return f"{NOT_TO_BE_USED}: {failed} of {len(result.gates)} gates failed"


def value_words(value: float | None, metric: str) -> str:
    """A value of a comparison's metric, with its unit."""
    unit, factor = METRICS.get(metric, (metric, 1.0))
    return NOTHING if value is None else f"{number_words(factor * value)} {unit}"


def percent_words(percent: tuple[float, float, float]) -> str:
    """For example "+12.3% [+4.1, +21.2]"."""
    estimate, low, high = percent
    return f"{estimate:+.1f}% [{low:+.1f}, {high:+.1f}]"


def ratio_words(part: float | None, whole: float | None) -> str:
    """A share of something, when both are known and there is something."""
    return NOTHING if part is None or not whole else share_words(part / whole)
