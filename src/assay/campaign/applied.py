"""Whether what an arm changes is in force, by the server's own word."""

from __future__ import annotations

from typing import Any

from assay.campaign.bench import Bench
from assay.plan.proof import proved, refuted
from assay.records.run import RunIntent


def not_applied(bench: Bench, intent: RunIntent, effective: dict[str, Any], fallbacks: list[str]) -> str | None:
    """Only what this arm changes is held against the server's word; the baseline is what it is."""
    if not intent.arm.deltas:
        return None
    baseline = bench.state.spec.target.flags
    changed = {name: value for name, value in intent.arm.flags.items() if baseline.get(name) != value}
    return bench.engine.in_force(changed, effective, fallbacks) or _contradicted(bench, intent, effective)


def _contradicted(bench: Bench, intent: RunIntent, effective: dict[str, Any]) -> str | None:
    """The entries' own proofs (`assay.plan.proof`); a path that the server does not report proves nothing."""
    env = {**bench.target.env, **intent.arm.env}
    for hypothesis in bench.state.hypotheses:
        if hypothesis.id in intent.arm.deltas and (
            said := refuted(
                hypothesis.optimization.verify, intent.arm.flags, env, effective, engine=bench.target.engine
            )
        ):
            return f"{hypothesis.id} is not in force: {said}"
    return None


def proofs(bench: Bench, intent: RunIntent, effective: dict[str, Any]) -> dict[str, str]:
    """By hypothesis: what the server reports of it."""
    env = {**bench.target.env, **intent.arm.env}
    told = {
        hypothesis.id: proved(hypothesis.optimization.verify, intent.arm.flags, env, effective)
        for hypothesis in bench.state.hypotheses
        if hypothesis.id in intent.arm.deltas
    }
    return {name: word for name, word in told.items() if word is not None}
