"""The verb that says where the time goes: characterize."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.api.characterize_machine import CPU
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.api.characterize_hardware import Hardware
    from assay.ports import Progress
    from assay.records.attribution import Characterization, MeasuredRun
    from assay.records.ceilings import Ceilings
    from assay.records.device import Box
    from assay.records.estimate import Routing
    from assay.records.machine import Machine
    from assay.records.model_shape import ModelShape
    from assay.records.state import CampaignState, RunRecord

WATCH_S = 10.0


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
    routing: Routing | None = None
    """How tokens choose experts; None: as the record's weights do, else evenly."""


@dataclass(slots=True)
class Found:
    """What was gathered on the way."""

    notes: list[str] = field(default_factory=list)
    state: CampaignState | None = None
    """Of the campaign in the folder."""
    record: RunRecord | None = None
    """Its run that is explained; None: none, or what is explained is a load test or a server."""
    run: MeasuredRun | None = None
    elsewhere: bool = False
    """The run was made on another machine than this one."""


def characterize(question: Question, progress: Progress) -> Characterization:
    """Ceilings of the machine, arithmetic of the model, the roofline, and where a measured run's time went.

    Raises:
        UsageError: model, box, run or trace cannot be read, or two parts of the question contradict each other.
        EngineError: the server does not answer.
    """
    from assay import wiring
    from assay.api import characterize_machine, recorded_target
    from assay.api.characterize_roofline import explained, facts_of, split
    from assay.formats.traces import read_trace
    from assay.records.attribution import Characterization

    found = Found()
    trace = read_trace(question.trace) if question.trace else None
    question = _campaign(question, found)
    server = None
    if question.url:
        from assay.api.measured_run import of_server

        progress.phase(f"watching {question.url} for {question.watch_s:g} s")
        server, found.run, said = of_server(question.url, question.watch_s)
        found.notes += said
    shape = _shape(question, found)
    machine = wiring.probe().machine()
    state = found.state if found.record is not None and question.on is None else None
    found.elsewhere = state is not None and recorded_target.is_elsewhere(state, machine)
    gpu, box = characterize_machine.box_of(machine, question, found, progress)
    on_cpu = not found.elsewhere and (box is None or (shape is None and question.on is None))
    if on_cpu and question.routing is not None:
        raise UsageError(
            "--routing: an estimate of processors takes experts to be chosen evenly",
            hint="leave it out, or name a box of GPUs: --on BOX",
        )
    if shape is not None and question.routing is not None and not shape.is_moe:
        raise UsageError(
            f"--routing: {shape.name} has no experts to choose among",
            hint="leave it out: every token takes the same weights",
        )
    ceilings = characterize_machine.cpu_ceilings(machine, question, shape, found.run, progress) if on_cpu else None
    threads = characterize_machine.threads_of(question, found.run, machine) if on_cpu else None
    answer = Characterization(
        machine=box.name if box else _words(machine, state if found.elsewhere else None),
        ceilings=ceilings,
        gpu_ceilings=gpu,
        threads=threads,
        model=shape.name if shape else None,
        model_facts=facts_of(shape) if shape else {},
        run=found.run,
        server=server,
        trace=trace,
        notes=found.notes,
    )
    if shape is None or (box is None and not on_cpu):
        measured = trace is not None or found.run is not None
        return answer.model_copy(update={"attributions": split(found.run, None, None, answer) if measured else []})
    try:
        return explained(answer, _hardware(shape, box, ceilings, threads, question, found), ceilings)
    except UsageError as error:
        if box is not None:
            raise
        return answer.model_copy(
            update={
                "notes": [*answer.notes, f"no roofline of {shape.name}: {error.message} ({error.hint})"],
                "attributions": split(found.run, None, None, answer),
            }
        )


def _words(machine: Machine, state: CampaignState | None) -> str:
    """The machine that the answer is of: this one, or the record's."""
    from assay.api.recorded_target import machine_words

    return machine_words(state) if state else f"{machine.cpu_model}, {machine.usable_cores} cores"


def _hardware(
    shape: ModelShape,
    box: Box | None,
    ceilings: Ceilings | None,
    threads: int | None,
    question: Question,
    found: Found,
) -> Hardware:
    """What computes: a box as the run's arm was served on it, or this machine's processors.

    Raises:
        UsageError: too little is known of it.
    """
    from assay.api.characterize_hardware import of_box, of_cpu
    from assay.api.recorded_target import served
    from assay.roofline import scheduling

    if box is None:
        return of_cpu(shape, ceilings, threads or 1, question.context_tokens)
    as_served = served(found.state, found.record.intent.arm) if found.state and found.record else None
    said = found.run.engine if found.run else None
    return of_box(
        shape, box, question.context_tokens, as_served, question.routing, scheduling.of_words(said) if said else None
    )


def _campaign(question: Question, found: Found) -> Question:
    """Target and run of the campaign in the folder; a load test's result may stand for the run."""
    from assay.api.inspect import status
    from assay.api.measured_run import of_campaign, of_load_test, run_of

    if question.run and question.url:
        raise UsageError("--run and --url contradict each other", hint="give the one that is to be explained")
    if question.run and Path(question.run).exists():
        found.run = of_load_test(Path(question.run))
        return question
    if not (question.folder / "assay.db").exists():
        if question.run:
            raise UsageError(
                f"there is no load test {question.run!r}, and {question.folder} holds no campaign",
                hint="name the folder of an `assay bench`, or a campaign with --folder and one of its runs",
            )
        return _target(question)
    found.state = status(question.folder)
    if question.url or (question.on and question.on.lower() != CPU and not question.run):
        return question
    found.record = run_of(found.state, question.run)
    found.run = of_campaign(found.state, question.run)
    if found.run is None:
        found.notes.append("the campaign has no valid run of the baseline yet")
    elif found.state.is_simulated:
        found.notes.append(
            f"{found.run.source}: computed by this arithmetic, in scaled time; it is not held against it"
        )
        found.run = None
    return question


def _target(question: Question) -> Question:
    """A campaign that never ran still names its model."""
    from assay import wiring
    from assay.store.spec_file import read_spec

    spec = question.folder / "assay.toml"
    if question.model or question.url or not spec.exists():
        return question
    target = read_spec(spec).target
    return replace(question, model=wiring.engine(target.engine).model(target).path)


def _shape(question: Question, found: Found) -> ModelShape | None:
    from assay import models
    from assay.api.recorded_target import shape_of

    named = question.model if question.model is None else _embedded(question.model)
    if found.state is not None and (named is None or found.record is not None):
        return shape_of(found.state, named, found.notes)
    if named is not None:
        return models.load(named)
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
