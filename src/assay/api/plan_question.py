"""What a campaign asks, before it is planned: assay.toml read, and refused where it cannot be asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.api.init import SPEC
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.ports import Engine
    from assay.records.base import Flags
    from assay.records.machine import EngineBuild, ModelFacts
    from assay.records.spec import CampaignSpec
    from assay.records.state import CampaignState


def declared_spec(folder: Path, *, declared: CampaignSpec | None = None) -> CampaignSpec:
    """The question in the folder.

    Args:
        folder: a campaign's.
        declared: what its record says, which stands for what the file leaves out.

    Raises:
        UsageError: there is no assay.toml, or it is wrong.
    """
    from assay.store.spec_file import read_spec

    if not (folder / SPEC).exists():
        raise UsageError(f"{folder} has no {SPEC}", hint="write one with `assay init`")
    return read_spec(folder / SPEC, declared=declared)


def checked_baseline(engine: Engine, build: EngineBuild, spec: CampaignSpec) -> CampaignSpec:
    """The question with its baseline under the build's main spellings, which conditions and deltas use.

    assay.toml may have any spelling that the build takes: main ones differ from version to version. The version that
    was asked for somewhere else has done its work, and is no part of what is recorded.

    Raises:
        UsageError: the baseline has a flag that this build does not take, has one twice, or holds a secret.
    """
    from assay.api.secret_flags import refuse_secret_target

    flags = spec.target.flags
    if spec.target.launch != build.launch:
        raise UsageError(
            f"target.launch: the {engine.name} adapter starts its server as a plain process only",
            hint="remove target.launch; docs/engines.md says which adapters take one",
        )
    engine.argv(build, spec.target.model, flags, 1)  # refuses flags that Assay sets itself
    refuse_secret_target(spec.target)
    if reason := engine.check_flags(build, flags):
        raise UsageError(f"target.flags: {reason}", hint="mend it in assay.toml; the build's own --help is the list")
    settled = _without_version(in_main_spellings(engine, build, spec))
    refuse_secret_target(settled.target)  # a beginning of a name tells less than the name
    return settled


def in_main_spellings(engine: Engine, build: EngineBuild, spec: CampaignSpec) -> CampaignSpec:
    """The question with its flags as they are recorded.

    Raises:
        UsageError: two spellings of one flag are given.
    """
    found: Flags = {}
    given: dict[str, str] = {}
    for name, value in spec.target.flags.items():
        [(main, settled)] = engine.canonical(build, {name: value}).items()
        if main in given:
            raise UsageError(
                f"target.flags: {given[main]} and {name} are one flag, {main}", hint="keep one of them in assay.toml"
            )
        found[main], given[main] = settled, name
    return spec.model_copy(update={"target": spec.target.model_copy(update={"flags": found})})


def _without_version(spec: CampaignSpec) -> CampaignSpec:
    return spec.model_copy(update={"target": spec.target.model_copy(update={"engine_version": None})})


def refuse_beyond_context(spec: CampaignSpec, build: EngineBuild, model: ModelFacts) -> None:
    """Requests must fit into the context.

    Raises:
        UsageError: the longest does not.
    """
    from assay.plan.context import beyond_context

    if problem := beyond_context(spec, build, model):
        raise UsageError(
            problem,
            hint="lower workload.shared_prefix_tokens, input_tokens or output_tokens, or give the server more context",
        )


def declares_random_weights(folder: Path, state: CampaignState) -> bool:
    """Whether assay.toml says of a campaign that exists that its weights are random; any other change is refused.

    It moves no threshold and changes no measured number: it only says what the answers are worth. Who finds out late
    that a checkpoint was made up may say so at any time; to take it back would need another model.
    """
    from assay import wiring

    spec = declared_spec(folder, declared=state.spec)
    if spec.target.flags != state.spec.target.flags:  # perhaps in spelling only
        spec = in_main_spellings(wiring.engine(state.spec.target.engine), state.build, spec)
    spec = _without_version(spec)
    declares = spec.target.random_weights and not state.spec.target.random_weights
    if declares:
        spec = spec.model_copy(update={"target": spec.target.model_copy(update={"random_weights": False})})
    _refuse_changed_spec(folder, spec, state)
    return declares


def _refuse_changed_spec(folder: Path, spec: CampaignSpec, state: CampaignState) -> None:
    """The question and its thresholds are declared before the first measurement, and stand."""
    from assay.store.spec_declared import differences

    if changed := differences(spec, state.spec):
        raise UsageError(
            f"{folder / SPEC} changed after the campaign was created: {'; '.join(changed)}",
            hint="undo the change, or ask the new question in a new folder: thresholds are not moved after measuring",
        )
