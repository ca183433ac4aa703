"""Layouts of a model's experts told apart: by what was measured, or by calculation where their floors are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.lab import floors
from assay.lab.shapes import ExpertShape
from assay.records.device import Box
from assay.records.estimate import Layout, OperatingPoint, Routing
from assay.records.lab import LabPoint, LayoutVerdict
from assay.records.model_shape import ModelShape
from assay.roofline import step

CLOSE = 0.03
"""Layouts whose times differ by less are not told apart."""
SAME = 0.005
"""Floors that differ by less are shown as the same digits, or nearly so."""
USUAL_TOKENS = 64
"""Of a batch, at which layouts with the same floors are told apart."""
CONTEXT_TOKENS = 2048
"""Of the step whose communication is estimated; communication does not depend on it."""


def verdicts(
    model: ModelShape,
    shapes: Mapping[str, ExpertShape],
    layouts: Mapping[str, Layout],
    box: Box,
    routing: Routing,
    points: Sequence[LabPoint],
) -> list[LayoutVerdict]:
    """For every number of tokens at which each layout has a right measurement."""
    if len(shapes) < 2:  # noqa: PLR2004 - a verdict is between two
        return []
    best: dict[tuple[str, int], LabPoint] = {}
    for one in points:
        if one.time_s is not None and one.correct:
            known = best.get((one.layout, one.tokens))
            if known is None or one.time_s < (known.time_s or 0):
                best[one.layout, one.tokens] = one
    found = []
    for count in sorted({tokens for _, tokens in best}):
        if all((name, count) in best for name in shapes):
            times = {name: best[name, count] for name in shapes}
            found.append(_verdict(model, shapes, layouts, box, routing, count, times))
    return found


def _verdict(
    model: ModelShape,
    shapes: Mapping[str, ExpertShape],
    layouts: Mapping[str, Layout],
    box: Box,
    routing: Routing,
    tokens: int,
    best: Mapping[str, LabPoint],
) -> LayoutVerdict:
    talking = {name: communication_s(model, box, layout, tokens, routing) for name, layout in layouts.items()}
    busiest = {name: _busiest(shape, best[name], routing) for name, shape in shapes.items()}
    times = {name: (best[name].time_s or 0.0) * busiest[name] + talking[name] for name in shapes}
    first, second = sorted(times, key=lambda name: times[name])[:2]
    ratio = times[second] / times[first] - 1
    words = ", ".join(
        f"{name} {best[name].implementation} {(best[name].time_s or 0) * 1e6:,.0f} us"
        + (f" x {busiest[name]:.2f}" if busiest[name] > 1.005 else "")  # noqa: PLR2004 - below it reads 1.00
        + f" + {talking[name] * 1e6:,.0f} us of communication"
        for name in shapes
    )
    told = f"{first} is {ratio:.0%} faster" if ratio >= CLOSE else "no difference worth a decision"
    return LayoutVerdict(
        tokens=tokens,
        times_s=times,
        communication_s=talking,
        busiest=busiest,
        winner=first if ratio >= CLOSE else None,
        sentence=f"{told}: {words}",
    )


def _busiest(shape: ExpertShape, point: LabPoint, routing: Routing) -> float:
    """What the busiest rank has more than the average one, of what bounds it at the point: weights or products."""
    distinct, pairs = floors.busiest_share(shape, point.tokens, routing)
    return distinct if point.bound == "memory" else pairs


def communication_s(model: ModelShape, box: Box, layout: Layout, tokens: int, routing: Routing) -> float:
    """What a layer with experts tells other ranks, by the roofline: expected seconds, of one layer."""
    count = max(box.count, layout.devices)
    point = OperatingPoint(phase="decode", sequences=tokens, context_tokens=CONTEXT_TOKENS)
    whole = box.model_copy(update={"count": count})
    estimate = step.estimate(model, whole, layout, point, routing=routing)
    layers = max(1, model.num_layers)
    return sum(op.time_s.mid for op in estimate.ops if op.collective is not None and op.calls >= layers // 2) / layers


def alike(
    model: ModelShape,
    shapes: Mapping[str, ExpertShape],
    layouts: Mapping[str, Layout],
    box: Box,
    routing: Routing,
    least: Sequence[LabPoint],
) -> list[str]:
    """What to say where the floors of two layouts are the same, and what tells the layouts apart then.

    Args:
        model: whose experts.
        shapes: one rank's part by layout; the first is held against each other one.
        layouts: the same.
        box: what communication is calculated from.
        routing: the law that tokens are drawn by.
        least: floors of all layouts.
    """
    by_layout = {name: {one.tokens: one for one in least if one.layout == name} for name in shapes}
    first, *others = shapes
    counts = sorted(by_layout[first])
    if not counts:
        return []
    at = min(counts, key=lambda count: abs(count - USUAL_TOKENS))
    same = [
        name
        for name in others
        if all(abs(by_layout[name][n].floor_s / by_layout[first][n].floor_s - 1) < SAME for n in counts)
    ]
    if not same:
        return []

    def of(name: str) -> str:
        busiest = _busiest(shapes[name], by_layout[name][at], routing)
        talking_s = communication_s(model, box, layouts[name], at, routing)
        return (
            f"{name} {shapes[name].width:,} wide, its busiest rank x {busiest:.2f}, + {talking_s * 1e6:,.0f} us of "
            "communication"
        )

    told = (
        f"{' and '.join([first, *same])} have the same floors: an average rank reads the same bytes of weights and "
        "does the same products, as a slice of every expert that is chosen or as its own experts whole. What tells "
        "them apart is how near kernels of that width come to the floor, which only a measurement shows, the busiest "
        f"rank, and communication; by calculation for one layer at {at:,} tokens: {'; '.join(map(of, [first, *same]))}"
    )
    return [told]
