"""What a campaign asks, before it is planned: assay.toml read, and refused where it cannot be asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.api.init import SPEC
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.ports import Engine
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


def check_baseline(engine: Engine, build: EngineBuild, spec: CampaignSpec) -> None:
    """The baseline's flags must exist in this build, under the spellings that conditions and deltas use.

    Raises:
        UsageError: one does not, or has another spelling.
    """
    from assay.api.secret_flags import refuse_secret_flags

    flags = spec.target.flags
    if spec.target.launch != build.launch:
        raise UsageError(
            f"target.launch: the {engine.name} adapter starts its server as a plain process only",
            hint="remove target.launch; docs/engines.md says which adapters take one",
        )
    engine.argv(build, spec.target.model, flags, 1)  # refuses flags that Assay sets itself
    refuse_secret_flags(flags, "target.flags")
    if reason := engine.check_flags(build, flags):
        raise UsageError(f"target.flags: {reason}", hint="mend it in assay.toml; the build's own --help is the list")
    for name, long_name in zip(flags, engine.canonical(build, flags), strict=True):
        if name != long_name:
            raise UsageError(
                f"target.flags: {name} is written {long_name} in assay.toml",
                hint="use the long spelling, and true or false for switches",
            )


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
    spec = declared_spec(folder, declared=state.spec)
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
