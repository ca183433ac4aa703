"""The pages of a load test, a sweep and a comparison: one self-contained HTML file each. Formatting only."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from jinja2 import Environment

from assay.records.bench import BenchResult, BenchSpec, Comparison, SweepResult
from assay.render import words
from assay.render.bench_charts import bench_charts, compare_charts, sweep_charts
from assay.render.bench_facts import Facts, client_facts, failed_words, load_facts, throughput_facts
from assay.render.bench_words import (
    METRICS,
    PERCENTILES,
    arrival_words,
    headline,
    latency_rows,
    refusal_words,
    time_words,
    workload_words,
)
from assay.render.compare_view import question_words, side_rows, undecidable
from assay.render.pages import environment, html_page
from assay.render.sweep_points import sweep_points
from assay.units import NS_PER_S


def bench_html(result: BenchResult) -> str:
    """One load test; a page without a single outside reference."""
    return _page(
        "bench.html.j2",
        result=result,
        headline=headline(result),
        started=_instant(result.started_at_ns),
        asked=_asked(result.spec, arrival_words(result.spec.arrival)),
        throughput=throughput_facts(result),
        load=load_facts(result),
        client=client_facts(result),
        failed=failed_words(result).partition(" requests")[0],
        charts=bench_charts(result),
    )


def sweep_html(sweep: SweepResult) -> str:
    """A sweep: the curves with the knee, then every load."""
    points = sweep_points(sweep)
    first = sweep.points[0]
    loads = f"{', '.join(point.name for point in points)} in turn"
    return _page(
        "sweep.html.j2",
        sweep=sweep,
        points=points,
        knee=None if sweep.knee is None else points[sweep.knee],
        first=first,
        spec=first.spec,
        started=_instant(first.started_at_ns),
        asked=_asked(first.spec, f"streams of a closed loop: {loads}"),
        charts=sweep_charts(sweep),
    )


def compare_html(comparison: Comparison) -> str:
    """A comparison: what can be quoted, then what it rests on."""
    unit, factor = METRICS.get(comparison.metric, (comparison.metric, 1.0))
    return _page(
        "compare.html.j2",
        comparison=comparison,
        question=question_words(comparison),
        unit=unit,
        rows=side_rows(comparison),
        undecidable=undecidable(comparison),
        values={
            label: [words.number_words(factor * value) for value in values]
            for label, values in comparison.values.items()
        },
        problems=[(label, problem) for label, found in comparison.invalid.items() for problem in found],
        charts=compare_charts(comparison),
    )


def _asked(spec: BenchSpec, load: str) -> Facts:
    forced = "forced to the length asked for" if spec.force_length else "ended by the model"
    more = " ".join(f"{name}={value}" for name, value in spec.extra_body.items())
    windows = f"{spec.windows} of {spec.window_s:g} s, after a warm-up until steady (at most {spec.warmup_max_s:g} s)"
    return [
        ("server", f"{spec.url}, endpoint {spec.endpoint}"),
        ("model", spec.model),
        ("load", load),
        ("workload", f"{workload_words(spec.workload)}; outputs {forced}"),
        ("windows", windows),
        *([("more fields", more)] if more else []),
    ]


def _page(template: str, **context: object) -> str:
    return html_page(_environment(), template, context)


@cache
def _environment() -> Environment:
    page = environment()
    page.filters |= {"number": words.number_words, "time": time_words, "sentence": words.sentence_words}
    page.globals |= {
        "latency_rows": latency_rows,
        "throughput_facts": throughput_facts,
        "load_facts": load_facts,
        "client_facts": client_facts,
        "refusal_words": refusal_words,
        "percentile_names": PERCENTILES,
        "nothing": words.NOTHING,
    }
    return page


def _instant(at_ns: int) -> str:
    return f"{datetime.fromtimestamp(at_ns / NS_PER_S, UTC):%Y-%m-%d %H:%M} UTC"
