"""Lines of the programs on the GPU to reports: floors beside times, verdicts between layouts, tiles that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.lab import floors
from assay.lab import layouts as layouts_told
from assay.lab.shapes import ExpertShape
from assay.lab.tiles import SHOWN, Chip
from assay.records.device import Box
from assay.records.estimate import Layout, Routing
from assay.records.lab import LabPoint, LabReport, TileFit, TunedPoint
from assay.records.model_shape import ModelShape
from assay.roofline import ceilings
from assay.roofline.ceilings import Ceilings


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
    assumed: str = "",
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
        assumed: that the box is none that is here or was named; empty: it is.
    """
    limits = ceilings.of(box.device)
    every = list(rows)
    about = next((row for row in every if row.get("kind") == "device"), {})
    points = [_point(shapes[row["layout"]], row, limits) for row in every if row.get("kind") == "point"]
    points.sort(key=lambda one: (list(shapes).index(one.layout), one.tokens))
    least = [_floor(name, shape, count, limits, routing) for name, shape in shapes.items() for count in tokens]
    verdicts = layouts_told.verdicts(model, shapes, layouts, box, routing, points)
    return LabReport(
        model=model.name,
        device=str(about.get("device", box.name)),
        software={key: str(about[key]) for key in ("torch", "triton") if about.get(key)},
        date=str(about.get("date", "")),
        shapes={name: shape.told for name, shape in shapes.items()},
        ceilings=_told(box, limits, next(iter(shapes.values()))),
        points=points,
        floors=least,
        verdicts=verdicts,
        tiles=tiles(chips, floors.element_bytes(next(iter(shapes.values())))),
        missing=[*missing, *_problems(points)],
        assumed=assumed,
        notes=[] if verdicts else layouts_told.alike(model, shapes, layouts, box, routing, least),
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
