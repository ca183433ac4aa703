"""Arms: the baseline with a set of optimizations applied."""

from __future__ import annotations

from collections.abc import Iterable

from assay.records.hypothesis import Hypothesis
from assay.records.machine import EngineBuild
from assay.records.run import Arm
from assay.records.spec import Target


def baseline_arm(target: Target) -> Arm:
    """The configuration in use today."""
    return Arm(label="baseline", flags=dict(target.flags))


def arm_with(target: Target, deltas: Iterable[Hypothesis]) -> Arm:
    """The baseline with every delta applied in order; later deltas win over earlier ones."""
    flags, artifact, ids = dict(target.flags), None, []
    env: dict[str, str] = {}
    for hypothesis in deltas:
        optimization = hypothesis.optimization
        for name in optimization.remove_flags:
            flags.pop(name, None)
        flags.update(optimization.flags)
        env.update(optimization.env)
        artifact = optimization.artifact or artifact
        ids.append(hypothesis.id)
    return Arm(label=" + ".join(ids) or "baseline", flags=flags, env=env, artifact=artifact, deltas=ids)


def build_for(build: EngineBuild, arm: Arm) -> EngineBuild:
    """The build as it starts this arm: the arm's variables are handed through what its commands are wrapped in."""
    if not arm.env or build.launch is None:
        return build
    return build.model_copy(update={"variables": sorted({*build.variables, *arm.env})})
