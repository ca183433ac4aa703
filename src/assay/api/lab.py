"""The verbs of the lab: a model's experts side by side on this GPU, and prices of what nobody has built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import MeasurementError, UsageError

if TYPE_CHECKING:
    from assay.lab.shapes import Dtype
    from assay.lab.tiles import Chip
    from assay.ports import Progress
    from assay.records.device import Box, Device
    from assay.records.estimate import Layout, Routing, StepEstimate
    from assay.records.lab import LabReport, PriceReport
    from assay.records.model_shape import ModelShape

PATIENCE_S = 90.0
"""Beyond a program's own time: loading an engine, and a kernel that is being compiled."""
UNKNOWN_BOX = "h200"
"""What floors are calculated for where there is no GPU and none is named."""
EXPERTS_RECORD, PRICES_RECORD = "experts.json", "prices.json"
STAND_INS = 9
"""Of a what-if at one number of tokens, for progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabQuestion:
    """What is asked of the lab."""

    model: str
    layouts: Sequence[Layout]
    tokens: Sequence[int]
    routing: Routing
    dtype: Dtype | None = None
    chip: str | None = None
    """Another chip whose tiles are listed: sm120, or a device's name."""
    on: str | None = None
    """A box by name: floors and tiles are calculated, and nothing is measured."""
    measured: Path | None = None
    """Ceilings of this GPU; None: the kept ones, else those of its kind."""
    seconds: float = 180.0
    results: Path = Path("assay-lab")
    """Folder for job, results, log and report."""


def experts(question: LabQuestion, progress: Progress) -> tuple[LabReport, MeasurementError | None]:
    """The experts of one rank under each layout: floors, tiles that fit, and measurements where a GPU is.

    Returns:
        The report, which is kept in the results folder where something was measured; and why nothing was measured, when
        that was asked for.

    Raises:
        UsageError: no such model, device or chip, or the layout does not divide the experts.
    """
    from assay import models
    from assay.api.gpu_process import UNMEASURED, run_program
    from assay.lab.jobs import LAB_PROGRAM, lab_job
    from assay.lab.reports import report
    from assay.lab.shapes import rank_shape

    model = models.load(question.model)
    shapes = {one.name: rank_shape(model, one, question.dtype) for one in question.layouts}
    box = box_here(question.on, question.measured)
    assumed = _assumed(box) if question.on is None else ""
    rows: list[dict[str, Any]] = []
    problem: MeasurementError | None = None
    notes: list[str] = []
    if question.on is None:
        job = lab_job(list(shapes.values()), question.tokens, question.routing, question.seconds)
        total = len(shapes) * len(question.tokens) * len(job["implementations"])
        watch = _Watch(progress, total, question.seconds)
        try:
            ran = run_program(
                LAB_PROGRAM, job, question.results, limit_s=question.seconds + PATIENCE_S, watch=watch.line
            )
            rows, notes = ran.rows, [f"the lab stopped early: {ran.problem}"] if ran.problem else []
        except MeasurementError as error:
            problem = MeasurementError(error.message, hint=f"{error.hint}; `--on h200` calculates without one")
    chips = _chips(box, question.chip, rows)
    found = report(
        model,
        shapes,
        {one.name: one for one in question.layouts},
        box,
        chips,
        question.routing,
        question.tokens,
        rows,
        [*notes, *([problem.message.removeprefix(UNMEASURED)] if problem else [])],
        assumed,
    )
    if found.points:
        _keep(found.model_dump_json(indent=1), question.results / EXPERTS_RECORD)
    return found, problem


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceQuestion:
    """What is asked of the prices."""

    model: str
    layout: Layout
    tokens: int
    step_s: float | None = None
    """A measured step in seconds; None: the roofline's."""
    context_tokens: int = 2048
    measured: Path | None = None
    seconds: float = 90.0
    results: Path = Path("assay-lab")


def what_if(question: PriceQuestion, progress: Progress) -> PriceReport:
    """What each change would take off a step, by stand-ins at the model's shapes on this GPU.

    Raises:
        MeasurementError: there is no GPU.
        UsageError: no such model, or the layout does not divide the experts.
    """
    from assay import models
    from assay.api.gpu_process import run_program
    from assay.lab.jobs import WHATIF_PROGRAM, whatif_job
    from assay.lab.whatif import Scene, prices
    from assay.records.lab import PriceReport

    model = models.load(question.model)
    box = box_here(None, question.measured)
    job = whatif_job(model, question.layout, [question.tokens], question.seconds)
    watch = _Watch(progress, STAND_INS, question.seconds)
    ran = run_program(WHATIF_PROGRAM, job, question.results, limit_s=question.seconds + PATIENCE_S, watch=watch.line)
    step = _step(model, box, question.layout, question.tokens, question.context_tokens)
    scene = Scene(
        rows=ran.rows,
        step=step,
        step_s=question.step_s or step.time_s.mid,
        tokens=question.tokens,
        moe_layers=int(job["shape"]["layers"]),
        layers=model.num_layers,
        hidden=model.hidden,
        world=question.layout.tp,
        curves=box.curves,
    )
    about: Mapping[str, Any] = next((row for row in ran.rows if row.get("kind") == "device"), {})
    found = PriceReport(
        model=model.name,
        layout=question.layout.name,
        device=str(about.get("device", box.device.name)),
        date=str(about.get("date", "")),
        step="measured" if question.step_s else f"estimated at {question.context_tokens} tokens of context",
        prices=prices(scene),
        missing=[f"the program stopped early: {ran.problem}"] if ran.problem else [],
    )
    if any(one.saved_s is not None for one in found.prices):
        _keep(found.model_dump_json(indent=1), question.results / PRICES_RECORD)
    return found


def box_here(on: str | None, measured: Path | None) -> Box:
    """The named box; else this machine's GPUs with the ceilings that are kept of them; else a device that is known.

    Raises:
        UsageError: no device is called so, or the file of ceilings is missing or malformed.
    """
    from assay import wiring
    from assay.probes.devices import box
    from assay.probes.measured_file import with_measured

    if on is not None:
        named = box(on)
        return with_measured(named, measured) if measured else named
    machine = wiring.probe().machine()
    if not machine.gpus:
        return with_measured(box(UNKNOWN_BOX), measured) if measured else box(UNKNOWN_BOX)
    from assay.probes.ceilings import cache
    from assay.probes.ceilings.gpu import KEPT_AS, local_box, read

    if measured is not None:
        return local_box(machine, read(measured, machine.fingerprint))
    kept = cache.path(KEPT_AS + machine.fingerprint)
    return local_box(machine, read(kept, machine.fingerprint) if kept.exists() else None)


def _assumed(box: Box) -> str:
    """Said where this machine has no GPU and none was named."""
    from assay import wiring

    if wiring.probe().machine().gpus:
        return ""
    return f"assumed: no GPU is here and none was named, so this is calculated for {box.name}; --on BOX names another"


def _step(model: ModelShape, box: Box, layout: Layout, tokens: int, context: int) -> StepEstimate:
    from assay.records.estimate import OperatingPoint
    from assay.roofline import step

    whole = box.model_copy(update={"count": max(box.count, layout.devices)})
    point = OperatingPoint(phase="decode", sequences=tokens, context_tokens=context)
    return step.estimate(model, whole, layout, point)


def _chips(box: Box, other: str | None, rows: Sequence[Mapping[str, Any]]) -> list[Chip]:
    """The one that was measured on, or the box's; and the other one that was asked for."""
    from assay.lab.tiles import Chip, chip_of

    about = next((row for row in rows if row.get("kind") == "device" and row.get("smem_per_block_bytes")), None)
    if about is not None:
        first = Chip(name=about["device"], smem_per_block_bytes=about["smem_per_block_bytes"], sms=about["sms"])
    else:
        first = chip_of(box.device.name, box.device)
    return [first] if other is None else [first, chip_of(other, _device(other))]


def _device(text: str) -> Device | None:
    from assay.probes.devices import box

    try:
        return box(text).device
    except UsageError:
        return None


def _keep(text: str, path: Path) -> None:
    from assay.store.atomic import atomic_write

    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, text.encode())


class _Watch:
    """Lines to progress: how far, and how long at most."""

    def __init__(self, progress: Progress, total: int, seconds: float) -> None:
        self._progress, self._total, self._seconds, self._done = progress, max(1, total), seconds, 0

    def line(self, row: Mapping[str, Any]) -> None:
        """One measurement is there."""
        if row.get("kind") not in ("point", "stand-in"):
            return
        self._done += 1
        words = " ".join(str(row[key]) for key in ("layout", "tokens", "implementation", "name") if row.get(key))
        share = min(1.0, self._done / self._total)
        self._progress.step(words, done_s=share * self._seconds, total_s=self._seconds)


__all__ = ["LabQuestion", "PriceQuestion", "box_here", "experts", "what_if"]
