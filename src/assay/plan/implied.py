"""What one arm's failure says about arms that were not tried: they are skipped, with the reason.

An implication counts only where the untried arm differs from the failed one in nothing that could change the outcome:
a flag that the build does not know fails whatever stands beside it, while a context that does not fit may fit with a
smaller cache type. What failed by accident implies nothing, and what implies every arm (this model, this machine) is
contradicted by the baseline, which runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.plan.steps import RecordVerdict
from assay.plan.verdicts import IMPLIED, RETRY_CAUSES
from assay.records.base import Flags, FlagValue
from assay.records.failure import Implication
from assay.records.hypothesis import Hypothesis
from assay.records.run import Failure
from assay.records.state import CampaignState
from assay.records.verdict import Verdict, VerdictKind

KNOBS = (
    ("max_model_len", "context_length", "ctx_size", "c", "max_seq_len"),
    ("gpu_memory_utilization", "mem_fraction_static", "kv_cache_free_gpu_memory_fraction", "memory_fraction"),
    ("max_num_seqs", "max_running_requests", "max_batch_size", "parallel", "np", "concurrency"),
    ("max_num_batched_tokens", "max_num_tokens", "chunked_prefill_size", "ubatch_size", "ub", "tokens_per_step"),
    ("tensor_parallel_size", "tp_size", "tp", "world_size"),
)
"""Names of one quantity over the engines, and in the rules of data/failures."""
CHOICES = ("backend", "runner", "kernel", "dtype", "type", "quantization", "attn", "attention", "reduce")
"""Parts of the names of flags that choose an implementation."""


@dataclass(frozen=True, slots=True)
class Implied:
    """An arm that must fail, and why."""

    id: str
    reason: str


def next_implied(state: CampaignState) -> RecordVerdict | None:
    """The verdict on an arm that must fail as another did; None where nothing follows."""
    by_id = {hypothesis.id: hypothesis for hypothesis in state.hypotheses}
    tried = {run.intent.candidate for run in state.runs}
    waiting = [
        hypothesis
        for hypothesis in state.hypotheses
        if hypothesis.status == "planned" and hypothesis.id not in tried and hypothesis.id not in state.verdicts
    ]
    for run in state.runs if waiting else ():
        failed = by_id.get(run.intent.candidate or "")
        verdict = state.verdicts.get(failed.id) if failed else None
        failure = run.outcome.failure if run.outcome else None
        if failed is None or failure is None or verdict is None or verdict.kind is not VerdictKind.BLOCKED:
            continue
        if run.intent.arm.deltas != [failed.id]:
            continue
        if follows := implied(failure, failed, waiting):
            # Not tried, like arms that the build cannot take: nothing was measured, so no prediction is scored.
            told = Verdict(candidate=follows[0].id, kind=VerdictKind.BLOCKED, cause=IMPLIED, reason=follows[0].reason)
            return RecordVerdict(verdict=told)
    return None


def implied(failure: Failure, failed: Hypothesis, others: Iterable[Hypothesis]) -> list[Implied]:
    """The untried arms that must fail as `failed` did.

    Args:
        failure: of an arm that differs from the baseline by `failed` alone.
        failed: that hypothesis.
        others: hypotheses that were not run.
    """
    if failure.cause in RETRY_CAUSES:
        return []
    found = []
    for other in others:
        for implication in failure.implies:
            if other.id != failed.id and _follows(implication, failed, other):
                reason = f"not tried: {failed.id} failed with {failure.cause}, and {_lower(implication.text)}"
                found.append(Implied(other.id, reason))
                break
    return found


def _follows(implication: Implication, failed: Hypothesis, other: Hypothesis) -> bool:
    match implication.scope:
        case "flag":
            return _sets(other, implication.knob or "")
        case "value":
            return _value_follows(implication, failed, other)
        case "backend":
            chosen = {name: value for name, value in failed.optimization.flags.items() if _is_choice(name)}
            return bool(chosen) and _holds(other.optimization.flags, chosen)
        case "combination" | "machine":
            return _same_artifact(failed, other) and _contains(other, failed)
        case "model":
            return failed.optimization.artifact is not None and _same_artifact(failed, other)
        case _:  # family: the baseline's own, which runs; arm: nothing
            return False


def _value_follows(implication: Implication, failed: Hypothesis, other: Hypothesis) -> bool:
    """The same quantity, as far as the implication reaches or farther, and nothing else that differs."""
    names = _names(implication.knob or "")
    ours, theirs = _setting(failed, names), _setting(other, names)
    if ours is None or theirs is None:
        return False
    if implication.direction == "same":
        return theirs[1] == ours[1]
    if not _same_but(failed, other, (ours[0], theirs[0])):
        return False
    reached, tried = _number(ours[1]), _number(theirs[1])
    if reached is None or tried is None:
        return False
    return tried >= reached if implication.direction == "above" else tried <= reached


def _names(knob: str) -> tuple[str, ...]:
    """The quantity's names; a knob may list several quantities."""
    asked = {_plain(part) for part in knob.replace(" and ", ",").split(",")}
    known = [group for group in KNOBS if asked & set(group)]
    return tuple(name for group in known for name in group) or tuple(asked - {""})


def _setting(hypothesis: Hypothesis, names: Sequence[str]) -> tuple[str, FlagValue] | None:
    return next(((name, value) for name, value in hypothesis.optimization.flags.items() if _plain(name) in names), None)


def _sets(hypothesis: Hypothesis, flag: str) -> bool:
    return flag.startswith("-") and any(_plain(name) == _plain(flag) for name in hypothesis.optimization.flags)


def _contains(other: Hypothesis, failed: Hypothesis) -> bool:
    """Whether the other arm is the failed one with more on top; one that changes nothing contains nothing."""
    ours, theirs = failed.optimization, other.optimization
    changes = bool(ours.flags or ours.remove_flags or ours.env or ours.artifact)
    return (
        changes
        and _holds(theirs.flags, ours.flags)
        and set(ours.remove_flags) <= set(theirs.remove_flags)
        and ours.env.items() <= theirs.env.items()
    )


def _same_but(failed: Hypothesis, other: Hypothesis, apart: tuple[str, str]) -> bool:
    ours, theirs = failed.optimization, other.optimization
    rest = [{name: value for name, value in each.flags.items() if name not in apart} for each in (ours, theirs)]
    same = rest[0] == rest[1] and ours.env == theirs.env and set(ours.remove_flags) == set(theirs.remove_flags)
    return same and _same_artifact(failed, other)


def _holds(flags: Flags, wanted: Flags) -> bool:
    return all(name in flags and flags[name] == value for name, value in wanted.items())


def _same_artifact(failed: Hypothesis, other: Hypothesis) -> bool:
    return failed.optimization.artifact == other.optimization.artifact


def _is_choice(flag: str) -> bool:
    return any(part in CHOICES for part in _plain(flag).split("_"))


def _plain(name: str) -> str:
    return name.strip().lstrip("-").replace("-", "_").replace(" ", "_").lower()


def _number(value: FlagValue) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
