"""What `characterize` takes for the machine: its processors' or GPUs' ceilings, a box by name, or the record's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.api.characterize import Found, Question
    from assay.ports import Progress
    from assay.records.attribution import MeasuredRun
    from assay.records.ceilings import Ceilings, GpuCeilings
    from assay.records.device import Box
    from assay.records.machine import Machine
    from assay.records.model_shape import ModelShape

GGUF = ".gguf"
CPU = "cpu"
"""As a box: this machine's processors."""


def cpu_ceilings(
    machine: Machine, question: Question, shape: ModelShape | None, run: MeasuredRun | None, progress: Progress
) -> Ceilings:
    """Ceilings of this machine, measured where they are not known yet."""
    from assay.probes.ceilings import ceilings
    from assay.roofline.cpu import weight_shapes

    wanted = _storages(shape)
    counts = [count for count in (question.threads, run.threads if run else None) if count]
    weights = Path(shape.source) if shape and shape.source.endswith(GGUF) else None
    weights = weights if weights and weights.is_file() else None  # a record may tell of one that is elsewhere
    return ceilings(
        machine,
        Path.cwd() if weights is None else weights.parent,
        lambda text, done_s, total_s: progress.step(text, done_s=done_s, total_s=total_s),
        storages=wanted,
        shapes=weight_shapes(shape) if shape else (),
        threads=[*counts, machine.physical_cores],
        model=weights,
        again=question.again,
        measure=question.url is None,
    )


def _storages(shape: ModelShape | None) -> list[str]:
    """Types of weights that the model multiplies with, and the one of its cache."""
    from assay.records.model_shape import LOOKED_UP
    from assay.roofline.cpu import kernel_type

    if shape is None:
        return []
    used = {kernel_type(matrix.storage.name) for _, matrix in shape.matrices() if matrix.part not in LOOKED_UP}
    return sorted(used | {"F16"})


def threads_of(question: Question, run: MeasuredRun | None, machine: Machine) -> int:
    """That a CPU engine computes with: as asked, as the run did, else all physical cores that may be used."""
    told = question.threads or (run.threads if run else None)
    return told or max(1, min(machine.physical_cores, machine.usable_cores))


def box_of(
    machine: Machine, question: Question, found: Found, progress: Progress
) -> tuple[GpuCeilings | None, Box | None]:
    """The box that is meant, and what was measured of it; no box: the processors are.

    Raises:
        UsageError: no such device, a file cannot be read, or measurements are given for processors.
    """
    from assay.api import recorded_target
    from assay.probes.ceilings.gpu import local_box, read
    from assay.probes.devices import box
    from assay.probes.measured_file import with_measured

    told = read(question.measured) if question.measured else None
    if found.elsewhere and found.state is not None:
        return told, recorded_target.box_of(found.state, told, found.notes)
    if question.on and question.on.lower() != CPU:
        named = box(question.on)
        return told, with_measured(named, told) if told else named
    if _means_processors(machine, question, found.run):
        if told:
            raise UsageError(
                f"{question.measured} tells of a GPU, and processors are asked for", hint="name the box: --on BOX"
            )
        return None, None
    told = told or _gpu_ceilings(machine, question, found, progress)
    if len({gpu.name for gpu in machine.gpus}) > 1:
        found.notes.append(f"the GPUs are not alike: all are taken for {machine.gpus[0].name}")
    try:
        return told, local_box(machine, told)
    except UsageError as error:
        found.notes.append(f"no roofline of the GPUs here: {error.message} (--on BOX names one)")
        return told, None


def _means_processors(machine: Machine, question: Question, run: MeasuredRun | None) -> bool:
    """Whether the processors are asked for: by name, by their threads, or because there is nothing else."""
    asked = question.on is not None or question.threads is not None
    return asked or not machine.gpus or (run is not None and run.threads is not None)


def _gpu_ceilings(machine: Machine, question: Question, found: Found, progress: Progress) -> GpuCeilings | None:
    """Measured here or before; None with a note why not, and data sheets stand in."""
    from assay.probes.ceilings.gpu import gpu_ceilings
    from assay.probes.ceilings.port import NotMeasurable

    progress.phase("ceilings of the GPUs, where they are not known yet: up to two minutes")
    try:
        return gpu_ceilings(machine, again=question.again)
    except NotMeasurable as reason:
        found.notes.append(f"the GPUs' ceilings are not measured: {reason}; their data sheets stand in")
        return None
