"""The charts of a load test, a sweep and a comparison: which numbers of the record each of them shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

from assay.records.bench import BenchResult, Comparison, Distribution, SeriesPoint, SweepResult
from assay.render.bench_words import METRICS, unit_of
from assay.render.svg_canvas import Canvas, at_both_widths
from assay.render.svg_lines import Line, over_time
from assay.render.svg_points import Spot, in_order, named_points
from assay.render.svg_rows import Row, intervals
from assay.render.svg_shares import Curve, cumulative_panels
from assay.render.sweep_points import SweepPoint, sweep_points
from assay.render.words import number_words

SIDE_KINDS = ("baseline", "stack", "candidate")
"""The reference is solid ink, the second side gold, any further one hollow."""
LONGEST_JOIN = 5.0
"""Values further apart than so many mean distances are not joined: requests at random leave such a gap to chance less
than once in a hundred (exp(-5)), and a server that hangs leaves it."""
FEW = 0.75
"""Share of stretches with a value below which each value is marked."""


def bench_charts(result: BenchResult) -> dict[str, str]:
    """Every chart of one load test by name, for both widths; empty where there is nothing to draw."""
    return at_both_widths(
        lambda canvas: {
            "throughput": _throughput(result, canvas),
            "ttft": _latency(result, "TTFT", lambda p: p.ttft_p50_s, lambda p: p.ttft_p99_s, canvas),
            "itl": _latency(result, "ITL per chunk", lambda p: p.itl_p50_s, lambda p: p.itl_p99_s, canvas),
            "in_flight": _in_flight(result, canvas),
            "distributions": _distributions(result, canvas),
        }
    )


def sweep_charts(sweep: SweepResult) -> dict[str, str]:
    """Throughput against latency, and against what one user sees."""
    points = [point for point in sweep_points(sweep) if point.drawable]
    latencies = [point.e2e_s for point in points if point.e2e_s is not None]
    unit, factor = unit_of(latencies)
    against_latency = [_spot(point, factor * point.e2e_s) for point in points if point.e2e_s is not None]
    against_speed = [_spot(point, point.user_tokens_per_s or 0.0) for point in points]
    return at_both_widths(
        lambda canvas: {
            "latency": named_points(
                against_latency,
                "Throughput against latency",
                f"{unit}, whole request (E2E p50)",
                "output tokens/s",
                canvas=canvas,
            ),
            "users": named_points(
                against_speed,
                "Throughput of all against the speed that one user sees",
                "output tokens/s of one user (1 / TPOT p50)",
                "output tokens/s",
                canvas=canvas,
            ),
        }
    )


def compare_charts(comparison: Comparison) -> dict[str, str]:
    """Every run, and the effects with their intervals."""
    unit, factor = METRICS.get(comparison.metric, (comparison.metric, 1.0))
    sides = [
        (side.label, _side_kind(place), [factor * value for value in comparison.values.get(side.label, [])])
        for place, side in enumerate(comparison.sides)
    ]
    rows = []
    for side in comparison.sides[1:]:
        if side.label not in comparison.effects:
            rows.append(Row(label=side.label, note="too few valid runs"))
            continue
        middle, low, high = comparison.percent(side.label)
        kind = "adopted" if comparison.verdicts.get(side.label) == "better" else ""
        rows.append(
            Row(label=f"{side.label} against {comparison.sides[0].label}", low=low, middle=middle, high=high, kind=kind)
        )
    shown = rows if comparison.effects else []
    band = 100 * comparison.min_effect
    return at_both_widths(
        lambda canvas: {
            "runs": in_order(sides, "Every valid run", unit, canvas=canvas),
            "effects": intervals(shown, "Effects with their intervals", min_effect=band, canvas=canvas),
        }
    )


def _side_kind(place: int) -> str:
    return SIDE_KINDS[min(place, len(SIDE_KINDS) - 1)]


def measured_windows(result: BenchResult) -> list[tuple[float, float]]:
    """From and to of each window, seconds since the load began; none when the series does not show them."""
    inside = [point.at_s for point in result.series if point.measured]
    if not inside:
        return []
    start = max(0.0, inside[0] - _stretch(result.series) / 2)
    length = result.spec.window_s
    return [(start + number * length, start + (number + 1) * length) for number in range(result.spec.windows)]


def _stretch(series: Sequence[SeriesPoint]) -> float:
    """Length of one stretch of the series, seconds."""
    gaps = [later.at_s - earlier.at_s for earlier, later in pairwise(series)]
    return median(gaps) if gaps else 0.0


def _throughput(result: BenchResult, canvas: Canvas) -> str:
    points = [(point.at_s, point.output_tokens_per_s) for point in result.series]
    levels = result.measures.window_tokens_per_s if result.measures else []
    return over_time(
        [Line(label="each stretch", kind="candidate", points=points)],
        "Output tokens per second over time",
        "output tokens/s",
        windows=measured_windows(result),
        levels=levels,
        canvas=canvas,
    )


def _latency(
    result: BenchResult,
    name: str,
    middle: Callable[[SeriesPoint], float | None],
    high: Callable[[SeriesPoint], float | None],
    canvas: Canvas,
) -> str:
    values = [value for point in result.series for value in (middle(point), high(point)) if value is not None]
    unit, factor = unit_of(values)

    def line(label: str, kind: str, of: Callable[[SeriesPoint], float | None]) -> Line:
        known = [(point.at_s, factor * value) for point in result.series if (value := of(point)) is not None]
        few = kind == "baseline" and len(known) < FEW * len(result.series)
        return Line(label=label, kind=kind, points=_joined(known), dots=few)

    lines = [line("p50", "baseline", middle), line("p99", "high", high)]
    return over_time(lines, f"{name} over time", f"{name}, {unit}", windows=measured_windows(result), canvas=canvas)


def _joined(known: Sequence[tuple[float, float]]) -> list[tuple[float, float | None]]:
    """Values joined over stretches without one; a gap stays where nothing came for unusually long."""
    if len(known) < 2:  # noqa: PLR2004 - one value has nothing to be joined to
        return list(known)
    longest_s = LONGEST_JOIN * (known[-1][0] - known[0][0]) / (len(known) - 1)
    found: list[tuple[float, float | None]] = [known[0]]
    for (before_s, _), point in pairwise(known):
        if point[0] - before_s > longest_s:
            found.append(((before_s + point[0]) / 2, None))
        found.append(point)
    return found


def _in_flight(result: BenchResult, canvas: Canvas) -> str:
    points = [(point.at_s, point.in_flight) for point in result.series]
    line = Line(label="in flight", kind="candidate", points=points)
    return over_time(
        [line],
        "Requests in flight over time",
        "requests in flight",
        windows=measured_windows(result),
        canvas=canvas,
    )


def _distributions(result: BenchResult, canvas: Canvas) -> str:
    measures = result.measures
    if measures is None:
        return ""
    is_open = result.spec.arrival.kind != "closed"
    panels = [
        _panel("TTFT", ("from the send", measures.ttft), *_when(is_open, measures.ttft_from_intended)),
        _panel("TPOT", ("each request", measures.tpot)),
        _panel("ITL", ("per chunk", measures.itl), ("per token", measures.itl_per_token)),
        _panel("E2E", ("from the send", measures.e2e), *_when(is_open, measures.e2e_from_intended)),
    ]
    return cumulative_panels(panels, "Cumulative distributions of the latencies", canvas=canvas)


def _when(is_open: bool, distribution: Distribution) -> list[tuple[str, Distribution]]:
    """In a closed loop a request is due when it is sent: there is nothing to tell apart."""
    return [("from intended", distribution)] if is_open else []


def _panel(name: str, *named: tuple[str, Distribution]) -> tuple[str, list[Curve]]:
    """One or two distributions under one unit; the second only where it differs from the first."""
    edges = [edge for _, distribution in named for edge in distribution.histogram_edges_s]
    unit, factor = unit_of(edges)
    first = named[0][1]
    shown = [(label, one) for label, one in named if one is first or one.quantiles != first.quantiles]
    curves = [
        Curve(
            label=label,
            kind=("baseline", "stack")[place],
            edges=[factor * edge for edge in one.histogram_edges_s],
            counts=one.histogram_counts,
            median=None if one.quantiles.p50_s is None else factor * one.quantiles.p50_s,
        )
        for place, (label, one) in enumerate(shown)
    ]
    return f"{name}, {unit}", curves


def _spot(point: SweepPoint, x: float) -> Spot:
    tokens = point.tokens_per_s or 0.0
    words = f"{point.name}: {number_words(tokens)} output tokens/s"
    label = f"{point.name}, the knee" if point.is_knee else point.name
    return Spot(x=x, y=tokens, label=label, kind="stack" if point.is_knee else "", title=words)
