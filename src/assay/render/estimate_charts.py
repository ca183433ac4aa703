"""The charts of an estimate's page: roofline, speed by requests in flight, memory, what would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.records.device import Fact
from assay.records.estimate import OpTime, StepEstimate
from assay.records.estimate_report import EstimateReport
from assay.render import estimate_words as words
from assay.render.estimate_rows import LITTLE_SHARE, memory_parts
from assay.render.svg_canvas import LETTER, Canvas, at_both_widths, picture, rect, text
from assay.render.svg_roofline import Operation, Roof, roofline, speed

MEMORY_HEIGHT = 30
SLIVER = 24
"""Pixels below which a part's name stands in its tooltip and below the chart alone."""
CLOSE = 0.93
"""Of the highest value, from which on another one would be drawn on top of it; the table of ceilings has both."""
KINDS = {"decode": "stack", "prefill": ""}


def estimate_charts(report: EstimateReport) -> dict[str, str]:
    """Every chart by name, for both widths; an empty text where there is nothing to draw."""
    return at_both_widths(
        lambda canvas: {
            "memory": _memory(report, canvas),
            "roofline": _roofline(report, canvas),
            "speed": _speed(report, canvas),
        }
    )


def off_the_chart(report: EstimateReport) -> list[str]:
    """Operations that do no arithmetic, by falling time: the roofline says nothing of them."""
    step = report.point.decode
    return [op.name for op in step.ops if not _drawable(op) and step.share(op) >= LITTLE_SHARE]


def _roofline(report: EstimateReport, canvas: Canvas) -> str:
    point = report.point
    steps = [point.decode, *([point.prompts] if point.prompts else [])]
    operations = [one for step in steps for one in _operations(step)]
    used = {op.compute for step in steps for op in step.ops if op.compute and _drawable(op)}
    facts = report.box.device.facts
    levels = [
        roof
        for name in words.ARITHMETIC
        if name in used
        for roof in _roofs(facts.get(f"{name}_flop_per_s", []), name, "flop/s")
    ]
    slopes = list(_roofs(facts.get("memory_read_bytes_per_s", []), "memory", "bytes/s"))
    title = f"roofline of one {report.box.device.name}: operations of a step of decode and of prefill"
    return roofline(operations, levels, slopes, title, canvas=canvas)


def _operations(step: StepEstimate) -> Iterator[Operation]:
    for op in step.ops:
        if not _drawable(op) or step.share(op) < LITTLE_SHARE:
            continue
        rates = (op.flops / op.time_s.high, op.flops / op.time_s.mid, op.flops / op.time_s.low)
        phase = step.point.phase
        yield Operation(
            label=op.name if phase == "decode" else f"{op.name}, prefill",
            flops_per_byte=op.flops / op.read_bytes,
            flop_per_s=rates,
            share=step.share(op),
            kind=KINDS[phase],
            title=(
                f"{op.name} in {phase}: {words.rate_words(rates[1], 'flop/s')} at "
                f"{words.rounded_words(op.flops / op.read_bytes)} FLOP/byte, {words.percent_words(step.share(op))} of "
                f"the step, {words.percent_words(op.speed_of_light)} of its floor's speed, bound by {op.bound}"
            ),
        )


def _drawable(op: OpTime) -> bool:
    return op.flops > 0 and op.read_bytes > 0 and op.time_s.low > 0 and op.part != "communication"


def _roofs(facts: Sequence[Fact], name: str, unit: str) -> Iterator[Roof]:
    """The highest credible value, under which floors are calculated; dashed, what else is known clearly below it."""
    credible = [fact for fact in facts if fact.basis != "assumed"] or facts
    highest = max(credible, key=lambda fact: fact.value, default=None)
    for fact in sorted(facts, key=lambda fact: -fact.value):
        if highest is None or (fact is not highest and fact.value > CLOSE * highest.value):
            continue
        label = f"{name} {words.rate_words(fact.value, unit)}, {fact.basis}"
        yield Roof(label=label, value=fact.value, kind="" if fact is highest else "high")


def _speed(report: EstimateReport, canvas: Canvas) -> str:
    found = {
        point.running: (
            float(point.running),
            point.decode.tokens_per_s.low,
            point.decode.tokens_per_s.mid,
            point.decode.tokens_per_s.high,
            point.decode.ceiling_tokens_per_s,
        )
        for point in report.points
    }
    title = "tokens/s of decode by requests that run: expected, its range, and the ceiling"
    points = [found[key] for key in sorted(found)]
    return speed(points, title, "requests that run", "tokens/s of decode", "tokens/s", canvas=canvas)


def _memory(report: EstimateReport, canvas: Canvas) -> str:
    """The fullest device's memory as one bar."""
    parts = [part for part in memory_parts(report.memory) if part.size_bytes > 0]
    total = sum(part.size_bytes for part in parts)
    drawn, left, end_of_words = [], 0.0, 0.0
    for part in parts:
        width = canvas.width * part.size_bytes / total
        said = f"{part.name} {words.size_words(part.size_bytes)}"
        drawn.append(rect(left, 0, max(1.0, width - 1), MEMORY_HEIGHT, f"bar {part.css}", said))
        room = LETTER * len(said)
        start = min(left, canvas.width - room)
        if start >= end_of_words and width > SLIVER:
            drawn.append(text(said, start, MEMORY_HEIGHT + 16, "key"))
            end_of_words = start + room + 8
        left += width
    return picture(MEMORY_HEIGHT + 24, "memory of the fullest device", drawn, canvas)
