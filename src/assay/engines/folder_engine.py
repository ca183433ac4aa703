"""What engines share that serve a model's folder and tell their flags in a help."""

from __future__ import annotations

from pathlib import Path

from assay.engines import declared_flags
from assay.engines.folder_facts import find_model, read_facts
from assay.engines.launch_prefix_model import facts_elsewhere
from assay.ports import LaunchFailed
from assay.records.base import Flags
from assay.records.failure import Cause
from assay.records.hypothesis import Requantize
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.run import Failure
from assay.records.spec import Target


class FolderEngine:
    """The common part of an `assay.ports.Engine`."""

    title: str
    """How people write its name: vLLM."""

    def model(self, target: Target) -> ModelFacts:
        """The model's folder, or the hub's name of one that is in the local cache; behind ssh a folder over there."""
        return facts_elsewhere(target) or read_facts(find_model(target.model))

    def check_flags(self, build: EngineBuild, flags: Flags) -> str | None:
        """Unknown, renamed, removed, or a value that this build does not take."""
        return declared_flags.problem(build, flags)

    def canonical(self, build: EngineBuild, flags: Flags) -> Flags:
        """The spelling that the build's help names first, `--no-` as False."""
        return declared_flags.canonical(build, flags)

    def make_artifact(self, model: ModelFacts, artifact: Requantize, folder: Path) -> str:  # noqa: ARG002 - the port's
        """GGUF types are no artifacts of such an engine.

        Raises:
            LaunchFailed: always.
        """
        line = f"{self.title} serves no GGUF made by Assay: {artifact.type} cannot be made of {model.name}"
        raise LaunchFailed(Failure(stage="artifact", cause=Cause.ARTIFACT, line=line, log=""))
