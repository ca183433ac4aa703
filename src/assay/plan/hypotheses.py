"""From the catalogue to hypotheses on this target: conditions, computed values, spellings, order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from assay.errors import UsageError
from assay.plan.expression import ExpressionError, check, evaluate
from assay.records.base import Flags, FlagValue
from assay.records.hypothesis import Hypothesis, Optimization, Priority
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.spec import CampaignSpec

HIGH, MEDIUM = 0.20, 0.03
"""Midpoints of the predicted range from which a hypothesis has high and medium priority."""
NEGATED = ("--no-", "-n")
"""How the spellings of a switch begin that turn it off (`--no-repack`, `-nr`), where it has both sides."""
CONTROLS = ("control", "known")
"""How the expectation of an entry begins that is tried to show that the judge says no; such entries come last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is worth trying here, and what was passed over and why."""

    hypotheses: list[Hypothesis]
    passed_over: dict[str, str]
    """Ids of entries left out of the todo, each with its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Applied:
    """An entry that applies: one of its variants, values computed, and the build's objection to it."""

    optimization: Optimization
    blocked_reason: str | None


def build(
    entries: Sequence[Sequence[Optimization]],
    spec: CampaignSpec,
    machine: Machine,
    engine_build: EngineBuild,
    model: ModelFacts,
    check_flags: Callable[[Flags], str | None],
) -> Plan:
    """Apply the catalogue to a target.

    Order: tier, then expected gain (midpoint of the predicted range), controls after the others.

    Args:
        entries: each entry as its variants (newer and older spellings); the first that the build has is taken.
        spec: the campaign.
        machine: where it runs.
        engine_build: the installed engine.
        model: the model.
        check_flags: the engine's word on flags (`assay.ports.Engine.check_flags`).

    Raises:
        UsageError: policy.only names an entry that does not exist, or an expression does not fit its facts.
    """
    wanted = _wanted(spec.policy.only, [variants[0].id for variants in entries])
    facts = facts_of(spec, machine, engine_build, model)
    applied: list[_Applied] = []
    passed_over: dict[str, str] = {}
    for variants in entries:
        if variants[0].id in wanted:
            found = _no_search(variants[0], spec, engine_build) or _apply(
                variants, spec.target.flags, engine_build, facts, check_flags
            )
            if isinstance(found, str):
                passed_over[variants[0].id] = found
            else:
                applied.append(found)
    applied.sort(key=lambda one: _order(one.optimization))
    hypotheses = [_hypothesis(number, one) for number, one in enumerate(applied, start=1)]
    return Plan(hypotheses=hypotheses, passed_over=passed_over)


def facts_of(spec: CampaignSpec, machine: Machine, engine_build: EngineBuild, model: ModelFacts) -> dict[str, Any]:
    """The names that expressions may use; docs/catalogue-entry.md lists them."""
    workload, flags = spec.workload, spec.target.flags

    def flag(name: str, default: FlagValue | None = None) -> Any:
        for spelling in _spellings(engine_build, name):
            if spelling in flags:
                return _as_number(flags[spelling])
        for spelling in _spellings(engine_build, name, opposite=True):
            if spelling in flags:
                return not flags[spelling]
        return default

    def has(name: str) -> bool:
        info = engine_build.flag(name)
        return info is not None and not info.removed

    return {
        "machine": machine.model_dump(),
        "model": model.model_dump(),
        "build": {"engine": engine_build.engine, "version": engine_build.version, "has": has},
        "target": {"flags": dict(flags), "model": spec.target.model},
        "workload": {
            "concurrency": workload.concurrency,
            "input_tokens_min": workload.input_tokens[0],
            "input_tokens_max": workload.input_tokens[1],
            "output_tokens_min": workload.output_tokens[0],
            "output_tokens_max": workload.output_tokens[1],
            "shared_prefix": False,
        },
        "objective": {"metric": spec.objective.metric, "min_effect": spec.objective.min_effect},
        "flag": flag,
        "has": has,
    }


def _no_search(optimization: Optimization, spec: CampaignSpec, engine_build: EngineBuild) -> str | None:
    """Why a dial is not searched here; None when it is, or when the entry has none."""
    dial = optimization.dial
    if dial is None:
        return None
    if not spec.policy.search_dials:
        return f"a search of up to {dial.max_launches} runs: set policy.search_dials = true to have it made"
    missing = [knob.flag for knob in dial.knobs if engine_build.flags and engine_build.flag(knob.flag) is None]
    return f"this build has no {' and no '.join(missing)}" if missing else None


def _wanted(only: Sequence[str], known: Sequence[str]) -> set[str]:
    for name in only:
        if name not in known:
            close = ", ".join(get_close_matches(name, known)) or ", ".join(sorted(known)) or "an empty catalogue"
            raise UsageError(
                f"policy.only names {name!r}, which is not in the catalogue", hint=f"did you mean: {close}"
            )
    return set(only) or set(known)


def _apply(
    variants: Sequence[Optimization],
    baseline: Flags,
    engine_build: EngineBuild,
    facts: dict[str, Any],
    check_flags: Callable[[Flags], str | None],
) -> _Applied | str:
    """The entry as it would be tried here, or why it is not worth a trial."""
    try:
        outcome = check(variants[0].applies_when, facts)
        if not outcome.holds:
            return outcome.reason
        computed = [_computed(variant, baseline, engine_build, facts) for variant in variants]
    except ExpressionError as error:
        raise UsageError(f"catalogue entry {variants[0].id}: {error.message}", hint=error.hint) from error
    usable = [variant for variant in computed if not isinstance(variant, str)]
    if not usable:
        return str(computed[0])
    objections = [check_flags(variant.flags) for variant in usable]
    first = objections.index(None) if None in objections else 0
    if not _changes_anything(usable[first], baseline):
        return "the baseline has it already"
    return _Applied(optimization=usable[first], blocked_reason=objections[first])


def _computed(
    optimization: Optimization, baseline: Flags, engine_build: EngineBuild, facts: dict[str, Any]
) -> Optimization | str:
    """The entry with its "= ..." values computed, or which one cannot be.

    A flag that the baseline spells otherwise (`-np` for `--parallel`) takes the baseline's spelling, so that it
    replaces the baseline's value and does not stand beside it.
    """
    flags: Flags = {}
    removed = [_spelled_as_in(baseline, engine_build, name) for name in optimization.remove_flags]
    for name, value in optimization.flags.items():
        found = evaluate(value[1:], facts) if isinstance(value, str) and value.startswith("=") else value
        if not isinstance(found, bool | int | float | str):
            return f"cannot be decided: the value of {name} ({value}) hangs on a fact that is unknown"
        opposite = next((other for other in _spellings(engine_build, name, opposite=True) if other in baseline), None)
        if opposite is not None and baseline[opposite] is not found:
            continue  # the baseline says the same by the other side of the switch
        removed += [opposite] if opposite is not None else []
        flags[_spelled_as_in(baseline, engine_build, name)] = found
    return optimization.model_copy(update={"flags": flags, "remove_flags": removed})


def _spellings(engine_build: EngineBuild, name: str, *, opposite: bool = False) -> list[str]:
    """Every spelling of a flag, or those of the other side of a switch (`--no-repack` for `--repack`)."""
    info = engine_build.flag(name)
    names = info.names if info else [name]
    is_pair = info is not None and info.value is None and any(other.startswith("--no-") for other in names)
    if not is_pair:
        return [] if opposite else names
    return [other for other in names if (other.startswith(NEGATED) != name.startswith(NEGATED)) is opposite]


def _spelled_as_in(baseline: Flags, engine_build: EngineBuild, name: str) -> str:
    return next((spelling for spelling in _spellings(engine_build, name) if spelling in baseline), name)


def _as_number(value: FlagValue) -> FlagValue:
    """Numbers that a person quoted in assay.toml are numbers to a condition."""
    if isinstance(value, str):
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
    return value


def _changes_anything(optimization: Optimization, baseline: Flags) -> bool:
    adds = any(name not in baseline or str(baseline[name]) != str(value) for name, value in optimization.flags.items())
    removes = any(name in baseline for name in optimization.remove_flags)
    return adds or removes or optimization.artifact is not None or optimization.dial is not None


def _order(optimization: Optimization) -> tuple[int, bool, float, str]:
    return (
        optimization.tier,
        optimization.expectation.startswith(CONTROLS),
        -sum(optimization.predicted),
        optimization.id,
    )


def _hypothesis(number: int, applied: _Applied) -> Hypothesis:
    optimization = applied.optimization
    middle = sum(optimization.predicted) / 2
    priority: Priority = "high" if middle >= HIGH else "medium" if middle >= MEDIUM else "low"
    return Hypothesis(
        number=number,
        optimization=optimization,
        priority=priority,
        status="blocked" if applied.blocked_reason else "planned",
        blocked_reason=applied.blocked_reason,
        predicted=optimization.predicted,
        document=f"improvements/{number:02d}-{optimization.id}.md",
    )
