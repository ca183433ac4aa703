"""Lines of the programs on the GPU to reports: floors beside times, a verdict between layouts, tiles that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.lab import floors
from assay.lab.shapes import ExpertShape
from assay.lab.tiles import SHOWN, Chip
from assay.records.device import Box
from assay.records.estimate import Layout, OperatingPoint, Routing
from assay.records.lab import LabPoint, LabReport, LayoutVerdict, TileFit, TunedPoint
from assay.records.model_shape import ModelShape
from assay.roofline import ceilings, step
from assay.roofline.ceilings import Ceilings

CLOSE = 0.03
"""Layouts whose times differ by less are not told apart."""
CONTEXT_TOKENS = 2048
"""Of the step whose communication is estimated; communication does not depend on it."""


def report(
    model: ModelShape,
    shapes: Mapping[str, ExpertShape],
    layouts: Mapping[str, Layout],
    box: Box,
    chips: Sequence[Chip],
    routing: Routing,
    tokens: Sequence[int],
    rows: Iterable[Mapping[str, Any]],
    missing: Sequence[str] = (),
) -> LabReport:
    """Everything that is shown.

    Args:
        model: whose experts.
        shapes: one rank's part by layout, in the order they are shown.
        layouts: the same.
        box: what floors and communication are calculated from.
        chips: whose shared memory bounds the tiles.
        routing: the law that tokens are drawn by.
        tokens: numbers of tokens, for floors.
        rows: lines of the program; none without a GPU.
        missing: what could not be measured at all.
    """
    limits = ceilings.of(box.device)
    every = list(rows)
    about = next((row for row in every if row.get("kind") == "device"), {})
    points = [_point(shapes[row["layout"]], row, limits) for row in every if row.get("kind") == "point"]
    points.sort(key=lambda one: (list(shapes).index(one.layout), one.tokens))
    return LabReport(
        model=model.name,
        device=str(about.get("device", box.name)),
        software={key: str(about[key]) for key in ("torch", "triton") if about.get(key)},
        date=str(about.get("date", "")),
        shapes={name: shape.told for name, shape in shapes.items()},
        ceilings=_told(box, limits, next(iter(shapes.values()))),
        points=points,
        floors=[_floor(name, shape, count, limits, routing) for name, shape in shapes.items() for count in tokens],
        verdicts=_verdicts(model, shapes, layouts, box, routing, points),
        tiles=tiles(chips, floors.element_bytes(next(iter(shapes.values())))),
        missing=[*missing, *_problems(points)],
    )


def tiles(chips: Sequence[Chip], element_bytes: float) -> list[TileFit]:
    """Tiles that engines choose, and why each cannot be had on a chip."""
    return [
        TileFit(
            tile=tile.told,
            flops_per_byte=tile.flops_per_byte(element_bytes),
            smem_bytes=tile.smem_bytes(element_bytes),
            problems={chip.name: tile.problem(chip, element_bytes) for chip in chips},
        )
        for tile in SHOWN
    ]


def _point(shape: ExpertShape, row: Mapping[str, Any], limits: Ceilings) -> LabPoint:
    floor = floors.at(shape, row["tokens"], row["distinct"], row["pairs"], limits)
    told = {key: row.get(key) for key in ("time_s", "low_s", "high_s", "error", "problem")}
    return LabPoint(
        layout=row["layout"],
        tokens=row["tokens"],
        implementation=row["implementation"],
        distinct=floor.distinct,
        pairs=floor.pairs,
        floor_s=floor.floor_s,
        bound=floor.bound,
        correct=bool(row.get("correct", False)),
        **told,
    )


def _floor(name: str, shape: ExpertShape, tokens: int, limits: Ceilings, routing: Routing) -> LabPoint:
    floor = floors.expected(shape, tokens, limits, routing)
    return LabPoint(
        layout=name,
        tokens=tokens,
        implementation="floor",
        distinct=floor.distinct,
        pairs=floor.pairs,
        floor_s=floor.floor_s,
        bound=floor.bound,
    )


def _told(box: Box, limits: Ceilings, shape: ExpertShape) -> dict[str, str]:
    rate = limits.flop[shape.dtype]
    return {
        "memory read": f"{limits.read.reached.mid / 1e9:,.0f} GB/s ({limits.read.basis}, {box.device.name})",
        f"matmul {shape.dtype}": f"{rate.reached.mid / 1e12:,.0f} TFLOP/s ({rate.basis}, {box.device.name})",
    }


def _verdicts(
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
    busiest = {}
    for name, shape in shapes.items():
        distinct, pairs = floors.busiest_share(shape, tokens, routing)
        busiest[name] = distinct if best[name].bound == "memory" else pairs
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


def communication_s(model: ModelShape, box: Box, layout: Layout, tokens: int, routing: Routing) -> float:
    """What a layer with experts tells other ranks, by the roofline: expected seconds, of one layer."""
    count = max(box.count, layout.devices)
    point = OperatingPoint(phase="decode", sequences=tokens, context_tokens=CONTEXT_TOKENS)
    whole = box.model_copy(update={"count": count})
    estimate = step.estimate(model, whole, layout, point, routing=routing)
    layers = max(1, model.num_layers)
    return sum(op.time_s.mid for op in estimate.ops if op.collective is not None and op.calls >= layers // 2) / layers


def tuned(rows: Iterable[Mapping[str, Any]]) -> list[TunedPoint]:
    """What a tuning found, by number of tokens.

    The search takes the fastest of several measurements, which is fast partly by luck: where winner and default were
    measured once more in turn, those times are told. A winner that was then no faster gives way to the default.
    """
    every = list(rows)
    fair = {row["tokens"]: row for row in every if row["kind"] == "compared"}
    keys = ("tokens", "config", "time_s", "default_s", "measured", "pruned")
    found = []
    for winner in {row["tokens"]: row for row in every if row["kind"] == "winner"}.values():
        told = {key: winner[key] for key in keys}
        again = fair.get(winner["tokens"])
        if again is not None and {"tuned", "default"} <= again["time_s"].keys():
            times = again["time_s"]
            name = "tuned" if times["tuned"] < times["default"] else "default"
            told |= {"config": again["configs"][name], "time_s": times[name], "default_s": times["default"]}
        found.append(TunedPoint(**told))
    return sorted(found, key=lambda one: one.tokens)


def _problems(points: Sequence[LabPoint]) -> list[str]:
    """One line for each reason, with how often it was met."""
    counts: dict[str, int] = {}
    for one in points:
        if one.problem is not None:
            told = f"{one.implementation} ({one.layout}): {one.problem}"
            counts[told] = counts.get(told, 0) + 1
        elif not one.correct:
            told = f"{one.implementation} ({one.layout}, {one.tokens} tokens) was wrong: relative error {one.error:.1e}"
            counts[told] = 1
    return [f"{told} ({count} times)" if count > 1 else told for told, count in counts.items()]
