"""The verb that says where the time goes: characterize."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.ports import Progress
    from assay.records.attribution import Characterization, MeasuredRun
    from assay.records.ceilings import Ceilings, GpuCeilings
    from assay.records.device import Box
    from assay.records.machine import Machine
    from assay.records.model_shape import ModelShape

WATCH_S = 10.0
GGUF = ".gguf"
CPU = "cpu"
"""As a box: this machine's processors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked."""

    folder: Path
    model: str | None = None
    """File, folder or name; None: the campaign's, or the server's."""
    on: str | None = None
    """A box by name, or `cpu`: this machine's processors. None: its GPUs where it has some, else its processors."""
    measured: Path | None = None
    """Ceilings of the box from a file, in place of measuring them or of what is known of the device."""
    url: str | None = None
    """A running server whose counters are read."""
    run: str | None = None
    """A run of the campaign, or the folder of a load test."""
    trace: Path | None = None
    """A profiler's trace."""
    threads: int | None = None
    """That a CPU engine computes with; None: the run's, else all physical cores."""
    context_tokens: int | None = None
    """Of each sequence in decode; None: 256 on CPUs, 2048 on GPUs."""
    watch_s: float = WATCH_S
    again: bool = False
    """Measure the ceilings anew."""


@dataclass(slots=True)
class _Found:
    """What was gathered on the way."""

    notes: list[str] = field(default_factory=list)


def characterize(question: Question, progress: Progress) -> Characterization:
    """Ceilings of the machine, arithmetic of the model, the roofline, and where a measured run's time went.

    Raises:
        UsageError: model, box, run or trace cannot be read, or two parts of the question contradict each other.
        EngineError: the server does not answer.
    """
    from assay import wiring
    from assay.api.characterize_roofline import explained, facts_of, of_box, of_cpu, split
    from assay.formats.traces import read_trace
    from assay.records.attribution import Characterization

    found = _Found()
    trace = read_trace(question.trace) if question.trace else None
    question, run = _campaign(question, found)
    server = None
    if question.url:
        from assay.api.measured_run import of_server

        progress.phase(f"watching {question.url} for {question.watch_s:g} s")
        server, run, said = of_server(question.url, question.watch_s)
        found.notes += said
    shape = _shape(question, found)
    machine = wiring.probe().machine()
    gpu, box = _gpu(machine, question, run, found, progress)
    on_cpu = box is None or (shape is None and question.on is None)
    ceilings = _measured(machine, question, shape, run, progress) if on_cpu else None
    threads = _threads(question, run, machine) if on_cpu else None
    answer = Characterization(
        machine=box.name if box else f"{machine.cpu_model}, {machine.usable_cores} cores",
        ceilings=ceilings,
        gpu_ceilings=gpu,
        threads=threads,
        model=shape.name if shape else None,
        model_facts=facts_of(shape) if shape else {},
        run=run,
        server=server,
        trace=trace,
        notes=found.notes,
    )
    if shape is None:
        if trace is not None or run is not None:
            answer = answer.model_copy(update={"attributions": split(run, None, None, answer)})
        return answer
    try:
        hardware = (
            of_box(shape, box, question.context_tokens)
            if box
            else of_cpu(shape, ceilings, threads or 1, question.context_tokens)
        )
        return explained(answer, hardware, ceilings)
    except UsageError as error:
        if box is not None:
            raise
        return answer.model_copy(
            update={
                "notes": [*answer.notes, f"no roofline of {shape.name}: {error.message} ({error.hint})"],
                "attributions": split(run, None, None, answer),
            }
        )


def _campaign(question: Question, found: _Found) -> tuple[Question, MeasuredRun | None]:
    """Target and run of the campaign in the folder; a load test's result may stand for the run."""
    from assay.api.inspect import status
    from assay.api.measured_run import of_campaign, of_load_test

    if question.run and question.url:
        raise UsageError("--run and --url contradict each other", hint="give the one that is to be explained")
    if question.run and Path(question.run).exists():
        return question, of_load_test(Path(question.run))
    if not (question.folder / "assay.db").exists():
        if question.run:
            raise UsageError(
                f"there is no load test {question.run!r}, and {question.folder} holds no campaign",
                hint="name the folder of an `assay bench`, or a campaign with --folder and one of its runs",
            )
        return _target(question), None
    state = status(question.folder)
    if question.url or (question.on and question.on.lower() != CPU and not question.run):
        return replace(question, model=question.model or state.model.path), None
    run = of_campaign(state, question.run)
    if run is None:
        found.notes.append("the campaign has no valid run of the baseline yet")
    if question.model is not None and run is not None:
        found.notes.append(f"{run.source} served {state.model.name}; the roofline is of {question.model}")
    return replace(question, model=question.model or state.model.path), run


def _target(question: Question) -> Question:
    """A campaign that never ran still names its model."""
    from assay import wiring
    from assay.store.spec_file import read_spec

    spec = question.folder / "assay.toml"
    if question.model or question.url or not spec.exists():
        return question
    target = read_spec(spec).target
    return replace(question, model=wiring.engine(target.engine).model(target).path)


def _shape(question: Question, found: _Found) -> ModelShape | None:
    from assay import models

    if question.model is not None:
        return models.load(_embedded(question.model))
    if question.url is None:
        return None
    from assay.api.measured_run import served_model

    name = served_model(question.url)
    try:
        return models.load(name) if name else None
    except UsageError as error:
        found.notes.append(f"the server's model is not known here: {error.message}; name it with --model")
        return None


def _embedded(model: str) -> str:
    from assay import wiring
    from assay.records.spec import EMBEDDED, Target

    return wiring.engine("llamacpp").model(Target(model=EMBEDDED)).path if model == EMBEDDED else model


def _measured(
    machine: Machine, question: Question, shape: ModelShape | None, run: MeasuredRun | None, progress: Progress
) -> Ceilings:
    """Ceilings of this machine, measured where they are not known yet."""
    from assay.probes.ceilings import ceilings
    from assay.roofline.cpu import weight_shapes

    wanted = _storages(shape)
    counts = [count for count in (question.threads, run.threads if run else None) if count]
    weights = Path(shape.source) if shape and shape.source.endswith(GGUF) else None
    return ceilings(
        machine,
        Path.cwd() if weights is None else weights.parent,
        lambda text, done_s, total_s: progress.step(text, done_s=done_s, total_s=total_s),
        storages=wanted,
        shapes=weight_shapes(shape) if shape else (),
        threads=[*counts, machine.physical_cores],
        model=weights if weights and weights.is_file() else None,
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


def _threads(question: Question, run: MeasuredRun | None, machine: Machine) -> int:
    told = question.threads or (run.threads if run else None)
    return told or max(1, min(machine.physical_cores, machine.usable_cores))


def _gpu(
    machine: Machine, question: Question, run: MeasuredRun | None, found: _Found, progress: Progress
) -> tuple[GpuCeilings | None, Box | None]:
    """The box that is meant, and what was measured of it; no box: the processors are.

    Raises:
        UsageError: no such device, a file cannot be read, or measurements are given for processors.
    """
    from assay.probes.ceilings.gpu import local_box, read
    from assay.probes.devices import box
    from assay.probes.measured_file import with_measured

    told = read(question.measured) if question.measured else None
    if question.on and question.on.lower() != CPU:
        named = box(question.on)
        return told, with_measured(named, told) if told else named
    if _means_processors(machine, question, run):
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


def _gpu_ceilings(machine: Machine, question: Question, found: _Found, progress: Progress) -> GpuCeilings | None:
    """Measured here or before; None with a note why not, and data sheets stand in."""
    from assay.probes.ceilings.gpu import gpu_ceilings
    from assay.probes.ceilings.port import NotMeasurable

    progress.phase("ceilings of the GPUs, where they are not known yet: up to two minutes")
    try:
        return gpu_ceilings(machine, again=question.again)
    except NotMeasurable as reason:
        found.notes.append(f"the GPUs' ceilings are not measured: {reason}; their data sheets stand in")
        return None
