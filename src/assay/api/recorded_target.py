"""What a campaign's record says of its target: the model's shape, the box, how it was served.

The record may be a colleague's: its machine is then not this one, and its model's path leads nowhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import UsageError
from assay.units import giga

if TYPE_CHECKING:
    from assay.plan.target_step import Served
    from assay.records.ceilings import GpuCeilings
    from assay.records.device import Box
    from assay.records.machine import Machine, ModelFacts
    from assay.records.model_shape import ModelShape
    from assay.records.run import Arm
    from assay.records.state import CampaignState

ALIKE = 0.05
"""Relative difference up to which bytes of weights and of a folder may be of one model: it holds more than weights."""
BOX_FLAG = "--box"
"""Of a rehearsal: the box whose steps it computes."""
CONVERTING = "--quantization"
"""With it, engines serve other weights than the files hold."""


def shape_of(state: CampaignState, named: str | None, notes: list[str]) -> ModelShape | None:
    """The model of the record; None with a note where neither the record nor this machine tells its shape.

    Args:
        state: of the campaign.
        named: a file, folder or name that stands for it.
        notes: what there is to say is added.

    Raises:
        UsageError: what is named cannot be read.
    """
    from assay import models

    facts = state.model
    if named is not None:
        shape = models.load(named)
        notes.append(_agreement(shape, named, facts))
        return shape
    if state.shape is not None:
        return state.shape
    problem = ""
    for name in (facts.path, Path(facts.path).name.lower().removesuffix(".json")):
        try:
            shape = models.load(name)
        except UsageError as error:
            problem = problem or error.message
            continue
        if name == facts.path or state.is_simulated or not differences(shape, facts):
            return shape
    notes.append(
        f"no estimate: the record does not hold the shape of its model ({facts.name or facts.path}, "
        f"{facts.architecture}, {facts.num_layers} layers), and {problem}; name a folder with its config.json: --model"
    )
    return None


def differences(shape: ModelShape, facts: ModelFacts) -> list[str]:
    """In what a shape contradicts the record's words on its model."""
    pairs: list[tuple[str, object, object]] = [
        ("layers", shape.num_layers, facts.num_layers),
        ("experts", shape.num_experts or None, facts.num_experts),
    ]
    if not facts.path.endswith(".gguf"):  # whose words for architectures are its own
        pairs.insert(0, ("architecture", shape.architecture, facts.architecture))
    found = [f"{name} {ours or 'none'}, there {theirs}" for name, ours, theirs in pairs if theirs and ours != theirs]
    size = facts.size_bytes
    if size and abs(shape.weight_bytes - size) > ALIKE * size:
        found.append(f"{giga(shape.weight_bytes)} GB of weights, there {giga(size)} GB")
    return found


def _agreement(shape: ModelShape, named: str, facts: ModelFacts) -> str:
    told = differences(shape, facts)
    model = facts.name or facts.path
    if told:
        return f"the roofline is of {named}, which is not the model of the record, {model}: {'; '.join(told)}"
    return f"the shape of {model} is taken from {named}; layers, experts and size agree with the record"


def is_elsewhere(state: CampaignState, machine: Machine) -> bool:
    """Whether its runs were made on another machine than this, or computed for a box (a rehearsal)."""
    return state.machine.fingerprint != machine.fingerprint or BOX_FLAG in state.spec.target.flags


def box_of(state: CampaignState, told: GpuCeilings | None, notes: list[str]) -> Box | None:
    """The record's GPUs, with ceilings from a file before what is known of their kind; None with a note: no GPUs.

    Raises:
        UsageError: the ceilings cannot be laid over them.
    """
    from assay.api.plan_facts import box_of as known
    from assay.probes.measured_file import with_measured

    missing: dict[str, str] = {}
    box = known(state.spec, state.machine, None, missing)
    where = f"another machine ({machine_words(state)}, fingerprint {state.machine.fingerprint})"
    if box is None:
        unknown = (
            f"{missing['box']} (--on BOX names one)"
            if state.machine.gpus
            else ("the ceilings of its processors are not known here (--on cpu takes those of this machine)")
        )
        notes.append(f"no estimate: the run was made on {where}; {unknown}")
        return None
    if told is not None:
        return with_measured(box, told)
    if state.is_simulated:
        return box
    notes.append(
        f"the run was made on {where}: the estimate rests on what is known of such devices; --measured FILE lays its "
        "own ceilings over that"
    )
    return box


def machine_words(state: CampaignState) -> str:
    """The machine of the record: its GPUs, else its processors."""
    machine = state.machine
    if BOX_FLAG in state.spec.target.flags:
        return f"{state.spec.target.flags[BOX_FLAG]}, simulated"
    names = [gpu.name for gpu in machine.gpus]
    told = [f"{names.count(name)}x {name}" for name in dict.fromkeys(names)]
    return ", ".join(told) or f"{machine.cpu_model}, {machine.usable_cores} cores"


def served(state: CampaignState, arm: Arm) -> Served | None:
    """Layout and limits of an arm; None for engines whose steps are not estimated."""
    from assay.api.plan_facts import served_of

    target = state.spec.target.model_copy(update={"flags": arm.flags})
    return served_of(state.spec.model_copy(update={"target": target}), state.build)


def other_weights(arm: Arm) -> str | None:
    """What to say of an arm that serves other weights than the model's files hold."""
    if arm.artifact is None and CONVERTING not in arm.flags:
        return None
    return f"{arm.label} serves converted weights; the estimate is of those in the model's files"
