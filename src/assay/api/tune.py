"""The verb that tunes an engine's fused-MoE kernel for this GPU: tune_moe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import MeasurementError

if TYPE_CHECKING:
    from assay.lab.shapes import Dtype, ExpertShape
    from assay.lab.tuning.config_files import Engine
    from assay.ports import Progress
    from assay.records.estimate import Layout, Routing
    from assay.records.lab import TuneReport

JOURNAL = "journal.jsonl"
RECORD = "report.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneQuestion:
    """What is asked."""

    model: str
    layout: Layout
    engine: Engine
    folder: Path
    """For the tuned file; journal, log and report lie in a folder of their own below it."""
    routing: Routing
    dtype: Dtype | None = None
    tokens: Sequence[int] = ()
    """Numbers of tokens to tune for; none: those of the engines' own tuners."""
    seconds: float = 900.0
    workers: int | None = None


def tune_moe(question: TuneQuestion, progress: Progress) -> TuneReport:
    """Search the best tiles for every number of tokens and write the file that the engine loads.

    What was measured is in a journal: a run that is killed or runs out of time goes on where it was when the same
    command is given again. A file with fewer numbers of tokens than asked for is written, and said to be one.

    Raises:
        MeasurementError: no GPU, no engine here, or nothing could be measured.
        UsageError: no such model, or the layout does not divide the experts.
    """
    from assay import models
    from assay.api.gpu_process import run_program
    from assay.api.lab import PATIENCE_S, box_here
    from assay.lab.jobs import TUNE_PROGRAM, TUNED_TOKENS, tune_job
    from assay.lab.shapes import rank_shape
    from assay.roofline import ceilings
    from assay.store.atomic import atomic_write

    shape = rank_shape(models.load(question.model), question.layout, question.dtype)
    limits = ceilings.of(box_here(None, None).device)
    work = question.folder / f"tuning-{question.engine}-E{shape.local_experts}-N{shape.width}-{shape.dtype}"
    wanted = sorted(set(question.tokens or TUNED_TOKENS))
    job = tune_job(
        shape,
        question.engine,
        wanted,
        limits,
        work / JOURNAL,
        routing=question.routing,
        seconds=question.seconds,
        workers=question.workers,
    )
    watch = _Watch(progress)
    ran = run_program(TUNE_PROGRAM, job, work, limit_s=question.seconds + PATIENCE_S, watch=watch.line)
    found = _report(question, shape, ran.rows)
    if not found.points:
        raise MeasurementError(
            f"no number of tokens was finished: {ran.problem or _first_problem(ran.rows)}",
            hint=f"the log is {work / 'program.log'}; the same command goes on with what was measured",
        )
    notes = [f"the program stopped early: {ran.problem}"] if ran.problem else []
    left = sorted(set(wanted) - {one.tokens for one in found.points})
    if left:
        notes.append(f"not finished: {', '.join(map(str, left))} tokens; the same command goes on with them")
    path = _write(question, shape, found, ran.rows)
    found = found.model_copy(update={"file": str(path), "notes": notes, "variable": _variable(question, path)})
    atomic_write(work / RECORD, found.model_dump_json(indent=1).encode())
    return found


def _report(question: TuneQuestion, shape: ExpertShape, rows: Sequence[Mapping[str, Any]]) -> TuneReport:
    from assay.lab.reports import tuned
    from assay.records.lab import TuneReport

    about: Mapping[str, Any] = next((row for row in rows if row["kind"] == "device"), {})
    ended: Mapping[str, Any] = next((row for row in rows if row["kind"] == "search"), {})
    return TuneReport(
        model=question.model,
        layout=question.layout.name,
        engine=question.engine,
        version=str(about.get("version", "unknown")),
        device=str(about.get("device", "unknown")),
        shape=shape.told,
        mode="adaptive",
        took_s=float(ended.get("took_s", 0.0)),
        points=tuned(rows),
    )


def _write(question: TuneQuestion, shape: ExpertShape, found: TuneReport, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Where the engine looks, whole or not at all."""
    from assay.lab.tuning import config_files
    from assay.lab.tuning.space import Config
    from assay.store.atomic import atomic_write

    triton = str(next((row["triton"] for row in rows if row["kind"] == "device"), "unknown"))
    name = config_files.file_name(
        question.engine, experts=shape.local_experts, width=shape.width, device=found.device, dtype=shape.dtype
    )
    place = question.folder / config_files.subfolder(question.engine, triton)
    place.mkdir(parents=True, exist_ok=True)
    winners = {one.tokens: Config.of(one.config) for one in found.points}
    atomic_write(place / name, config_files.write(question.engine, winners, triton).encode())
    return place / name


def _variable(question: TuneQuestion, path: Path) -> str:
    from assay.lab.tuning import config_files

    folder = path.parent if question.engine == "vllm" else question.folder
    return f"{config_files.FOLDER_VARIABLE[question.engine]}={folder.resolve()}"


def _first_problem(rows: Sequence[Mapping[str, Any]]) -> str:
    told = next((row for row in rows if row["kind"] in ("stopped", "note")), None)
    return str(told.get("reason") or told.get("text")) if told else "the program said nothing"


class _Watch:
    """Lines to progress, with what the rest will take at the pace so far: early numbers of tokens take longest."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def line(self, row: Mapping[str, Any]) -> None:
        """A generation was measured, or a number of tokens is finished."""
        if row["kind"] == "winner":
            gain = f", {row['default_s'] / row['time_s'] - 1:+.0%} over the default" if row["default_s"] else ""
            self._progress.result(f"{row['tokens']} tokens: {row['time_s'] * 1e6:.1f} us{gain}")
        if row["kind"] != "progress":
            return
        spent, done, total = float(row["spent_s"]), int(row["done"]), int(row["total"])
        left = spent / (done + 0.5) * (total - done - 0.5)
        words = f"{row['tokens']} tokens, {row['measured']} measurements"
        self._progress.step(words, done_s=spent, total_s=spent + left)


__all__ = ["TuneQuestion", "tune_moe"]
