"""What `assay doctor` knows of a configuration, as a plan uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from assay.plan.applying import FlagFinding
    from assay.plan.situation import Situation
    from assay.records.base import Flags
    from assay.records.doctor import Finding, Launch

KINDS: dict[str, Literal["inert", "refused", "note"]] = {
    "dead": "inert", "inert": "inert", "contradiction": "refused", "needs": "refused", "substituted": "note",
    "capped": "note",
}  # fmt: skip
"""What the findings of `assay doctor` are to a plan."""
PREDICATES = ("is ", "was ", "takes ", "needs ", "says ", "does ", "has ")
"""How a finding begins that is said of its flag."""


def findings(situation: Situation) -> Callable[[Flags, Mapping[str, str]], Sequence[FlagFinding]] | None:
    """What `assay doctor` knows of a configuration on this target; None for an engine that nothing is recorded of."""
    from assay.api.doctor import model_facts
    from assay.flags.check import check
    from assay.flags.dialect import dialects
    from assay.flags.knowledge import from_history
    from assay.flags.versions import is_version

    build = situation.build
    if build.engine not in dialects() or build.engine == "llamacpp":
        return None
    word = build.version.rsplit(maxsplit=1)[-1] if build.version else ""
    version = word if is_version(word) else None
    knowledge = from_history(build.engine, version)
    model = model_facts(situation.shape) if situation.shape else None
    box, tokens = _gpu_facts(situation), situation.step.memory.cache_tokens if situation.step else None

    def examine(flags: Flags, env: Mapping[str, str]) -> list[FlagFinding]:
        checked = check(_launch(build.engine, flags, env), knowledge, model=model, box=box, cache_tokens=tokens)
        found = (_found(one) for one in checked.findings)
        return [one for one in found if one is not None]

    return examine


def _gpu_facts(situation: Situation) -> dict[str, Any] | None:
    from assay.flags.facts import BOX_FACTS
    from assay.plan.expression import ABSENT
    from assay.plan.situation import facts_of

    gpu = facts_of(situation)["gpu"]
    told = {name: gpu.get(name) for name in BOX_FACTS}
    return {name: None if value is ABSENT else value for name, value in told.items()} if gpu["count"] else None


def _launch(engine: str, flags: Flags, env: Mapping[str, str]) -> Launch:
    from assay.records.doctor import GivenFlag, Launch

    given = [
        GivenFlag(name=name, values=[] if value is True else [str(value)])
        for name, value in flags.items()
        if value is not False
    ]
    return Launch.model_validate({"engine": engine, "program": [engine], "environment": dict(env), "flags": given})


def _found(finding: Finding) -> FlagFinding | None:
    """What of a finding matters to a plan; whether a flag exists is the installed engine's word, not the history's."""
    from assay.plan.applying import FlagFinding

    kind = KINDS.get(finding.kind)
    if kind is None:
        return None
    sources = "; ".join(dict.fromkeys(evidence.source for evidence in finding.evidence))
    subject = f"{finding.flags[0]}{' ' if finding.what.startswith(PREDICATES) else ': '}"
    text = f"{subject}{finding.what} ({sources})"
    return FlagFinding(kind=kind, flags=tuple(finding.flags), text=text)
