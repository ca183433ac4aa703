"""The page of an estimate: one self-contained HTML file. Formatting only."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment

from assay.records.estimate_report import EstimateReport
from assay.render import estimate_rows as rows
from assay.render import estimate_words as words
from assay.render.bench_facts import Facts
from assay.render.estimate_charts import estimate_charts, off_the_chart
from assay.render.pages import environment, html_page
from assay.render.words import NOTHING, sentence_words


def estimate_html(report: EstimateReport) -> str:
    """The whole estimate as one page without a single outside reference."""
    point = report.point
    largest_first = sorted(report.model.parameters_by_part.items(), key=lambda item: -item[1])
    context = {
        "report": report,
        "point": point,
        "headline": rows.headline(report),
        "taken": _taken(report),
        "parts": largest_first,
        "memory": _memory(report),
        "capacity": rows.capacity_words(report),
        "held_back": rows.held_back_words(report.points),
        "with_prompts": any(each.output_tokens_per_s for each in report.points),
        "split": rows.split_words(point),
        "experts": rows.experts_words(point, report.model.num_experts),
        "prompts_title": rows.prompts_words(point),
        "off_chart": off_the_chart(report),
        "ceilings": rows.ceilings(report.box.device),
        "charts": estimate_charts(report),
    }
    return html_page(_environment(), "estimate.html.j2", context)


def _taken(report: EstimateReport) -> Facts:
    reason = f" ({report.layout_reason})" if report.layout_reason else ""
    return [
        ("model", rows.model_words(report.model)),
        ("read from", report.model.source),
        ("cache", rows.cache_words(report)),
        ("box", rows.box_words(report) + reason),
        ("load", rows.load_words(report)),
    ]


def _memory(report: EstimateReport) -> Facts:
    memory = report.memory
    each = f"{words.size_words(memory.cache_bytes_per_token)} a token on this device"
    facts = [(part.name, words.size_words(part.size_bytes)) for part in rows.memory_parts(memory)]
    return [(name, f"{said}: {each}" if name == "cache" else said) for name, said in facts]


def _capitalized(sentence: str) -> str:
    """With a capital at the beginning, the rest as it is."""
    return sentence[:1].upper() + sentence[1:]


@cache
def _environment() -> Environment:
    page = environment()
    page.filters |= {
        "range": words.range_words,
        "times": words.time_range_words,
        "gain": words.gain_words,
        "ceiling": words.ceiling_words,
        "mechanism": words.mechanism_title,
        "rounded": words.rounded_words,
        "percent": words.percent_words,
        "parameters": words.parameter_words,
        "size": words.size_words,
        "sentence": sentence_words,
        "capitalized": _capitalized,
    }
    page.globals |= {"op_rows": rows.op_rows, "nothing": NOTHING}
    return page
