"""A target that is somewhere else, as far as it is known here: its machine, its engine, its model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.flags.dialect import Dialect
    from assay.plan.situation import Situation
    from assay.records.device import Box
    from assay.records.elsewhere import Elsewhere
    from assay.records.machine import EngineBuild, Machine, ModelFacts
    from assay.records.model_shape import ModelShape
    from assay.records.snapshot import MachineSnapshot
    from assay.records.spec import CampaignSpec, Target

THROUGH_PYTHON = frozenset({"sglang"})
"""Engines that Assay starts as a module of their Python, whatever programs they bring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is told of the target; what is not told is as it was when the folder was planned before."""

    on: str | None = None
    """A box by name: `8xRTX-PRO-6000`."""
    machine: Path | None = None
    """A file that `assay assess --save` wrote there."""
    version: str | None = None
    """Of the engine; None: the one in assay.toml, else the newest recorded one."""
    model: str | None = None
    """A name, file or folder that has the model's shape; None: the target's model is known by its name."""

    @property
    def is_asked(self) -> bool:
        """Whether anything was told."""
        return any((self.on, self.machine, self.version, self.model))

    @property
    def names_machine(self) -> bool:
        """Whether it says which machine."""
        return bool(self.on or self.machine)


def known(spec: CampaignSpec, question: Question, before: Elsewhere | None) -> tuple[Situation, Elsewhere]:
    """The target as far as it can be known from here, and what that rests on.

    Args:
        spec: the question in assay.toml.
        question: machine, engine version and model.
        before: how the folder was planned before, which stands for what is not told.

    Raises:
        UsageError: no machine is named, or machine, version, model or a flag is not known.
    """
    from assay import wiring
    from assay.api.plan_facts import situation_of
    from assay.api.plan_question import checked_baseline
    from assay.records.elsewhere import Elsewhere
    from assay.store.spec_file import spec_hash

    version = question.version or (before.version if before else None)
    build, flags_from = _engine(spec.target, version or spec.target.engine_version)
    settled = checked_baseline(wiring.engine(spec.target.engine), build, spec)
    named = question.model or (before.model if before else None)
    shape, facts = _model(spec.target, named)
    seen, box = _machine(question, before)
    machine = seen.machine if seen else _here_with(box)
    situation = situation_of(
        settled, machine, build, facts, snapshot=seen, on=None if seen else box, shape=shape
    )  # fmt: skip
    elsewhere = Elsewhere(
        box=None if seen else box,
        snapshot=seen,
        machine=_words(seen, situation.box),
        version=version,
        engine=build.version,
        flags_from=flags_from,
        model=named,
        shape=shape.name,
        spec_hash=spec_hash(spec),
    )
    return situation, elsewhere


def _machine(question: Question, before: Elsewhere | None) -> tuple[MachineSnapshot | None, str | None]:
    """The machine as its file has it, or the box that is named."""
    from assay.store.machine_file import read_machine

    if question.on and question.machine:
        raise UsageError("--on and --machine both name the machine", hint="give the file alone: it knows more")
    if question.machine:
        return read_machine(question.machine), None
    if question.on:
        return None, question.on
    if before is None:
        raise UsageError(
            "--engine-version and --model are for another machine, and none is named",
            hint="name its GPUs, as --on 8xRTX-PRO-6000, or give --machine FILE (`assay assess --save FILE` there)",
        )
    return before.snapshot, before.box


def _here_with(box: str | None) -> Machine:
    """This machine with the GPUs of a box, whose names decide the class that predictions are scored in."""
    from assay import wiring
    from assay.probes import devices
    from assay.records.machine import GpuIdentity

    found = devices.box(box or "")
    return wiring.probe().machine().model_copy(update={"gpus": [GpuIdentity(name=found.device.name)] * found.count})


def _words(seen: MachineSnapshot | None, box: Box | None) -> str:
    from assay.render.words import gpu_words

    if seen is None:
        return box.name if box else "a box"
    return f"{gpu_words(seen.machine.gpus) or seen.machine.cpu_model} (fingerprint {seen.machine.fingerprint})"


def _engine(target: Target, version: str | None) -> tuple[EngineBuild, str]:
    """The engine as a version of it is recorded, started as assay.toml says; and where its flags are from."""
    from assay.api.catalogue import recorded_build
    from assay.flags.dialect import dialects
    from assay.flags.knowledge import of_named_version

    if target.engine not in dialects():
        raise UsageError(
            f"no flags are recorded of {target.engine}",
            hint=f"engines that can be planned for from elsewhere: {', '.join(dialects())}",
        )
    known = of_named_version(target.engine, version)
    told = {
        "argv": _argv(target, known.dialect),
        "version": f"{known.dialect.title} {known.version}",
        "launch": target.launch,
    }
    newest = "" if version else "; the newest recorded version, as none was named"
    return recorded_build(known).model_copy(update=told), known.source + newest


def _argv(target: Target, dialect: Dialect) -> list[str]:
    """How it is started there, before any flag: by the program, the Python or the environment that assay.toml names."""
    programs = {name: words for name, words in dialect.programs.items() if "." not in name}
    program, words = next(iter(programs.items()))
    serve = [word for word in words if word][:1]
    modules = {name: words[-1:] for name, words in dialect.programs.items() if "." in name}
    module, its_serve = next(iter(modules.items()), (dialect.modules[0] if dialect.modules else "", []))
    through_python = dialect.engine in THROUGH_PYTHON
    named = target.executable or ("python3" if through_python else program)
    if module and PurePath(named).name.startswith("python"):
        return [named, "-m", module, *its_serve]
    if PurePath(named).name in programs or named == program:
        return [named, *serve]
    if through_python:
        return [f"{named}/bin/python", "-m", module]
    return [f"{named}/bin/{program}", *serve]


def _model(target: Target, named: str | None) -> tuple[ModelShape, ModelFacts]:
    """The model by what was named, or by its own name; its path is the one on the other machine."""
    from assay import models
    from assay.api.catalogue import facts_of

    problem = ""
    for name in [named] if named else dict.fromkeys((target.model, PurePath(target.model).name.lower())):
        try:
            shape, facts = models.load(name), facts_of(name)
        except UsageError as error:
            problem = problem or error.message
        else:
            return shape, facts.model_copy(update={"path": target.model})
    raise UsageError(
        f"the shape of the model is not known here: {problem}",
        hint="name the model that it is, or a folder here with its config.json: --model glm-5-nvfp4 (names: `assay "
        "estimate --list`)",
    )
