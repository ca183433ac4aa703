"""One catalogue entry held against a target: does it apply, how is it spelled, what objects to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from assay.errors import UsageError
from assay.plan import spellings
from assay.plan.expression import UNDECIDED, Decided, ExpressionError, check, decided, evaluate
from assay.plan.same_settings import stands
from assay.plan.situation import Situation, within
from assay.records.base import Flags
from assay.records.hypothesis import Optimization
from assay.records.machine import EngineBuild
from assay.records.reasoning import Outcome

CheckFlags = Callable[[Flags], "str | None"]
"""The engine's word on flags (`assay.ports.Engine.check_flags`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagFinding:
    """What is known of flags on this version, model and machine, beyond whether they exist."""

    kind: Literal["inert", "refused", "note"]
    """inert: nothing will come of them; refused: the engine stops."""
    flags: tuple[str, ...]
    text: str
    """With its source."""


Findings = Callable[[Flags, Mapping[str, str]], Sequence[FlagFinding]]
"""Of a whole configuration: flags and what is added to the environment (`assay.api.plan_findings.findings`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What an entry is held against."""

    situation: Situation
    facts: Mapping[str, Any]
    check_flags: CheckFlags

    @property
    def build(self) -> EngineBuild:
        """The engine."""
        return self.situation.build

    @property
    def baseline(self) -> Flags:
        """Flags in use today."""
        return self.situation.spec.target.flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry as far as it was considered."""

    optimization: Optimization
    """The variant that was taken, values computed; the first one where none was."""
    outcome: Outcome
    reason: str = ""
    conditions: list[Decided] = field(default_factory=list)
    already: bool = False
    """Skipped because the baseline has it."""
    waits_for: list[str] = field(default_factory=list)
    findings: list[FlagFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def skipped(self, reason: str, **changes: Any) -> Draft:
        """The same, not worth a trial."""
        return replace(self, outcome="skipped", reason=reason, **changes)


def consider(variants: Sequence[Optimization], target: Target) -> Draft:
    """Hold an entry against a target.

    Raises:
        UsageError: an expression of the entry does not fit its facts.
    """
    first = variants[0]
    try:
        draft = Draft(
            optimization=first, outcome="planned", conditions=decided(first.applies_when, target.facts)
        )  # fmt: skip
        if reason := _no_search(first, target):
            return draft.skipped(reason)
        applying, objection = _applying(variants, target)
        if objection is not None:
            return _about(objection[0], draft, target).skipped(objection[1])
        of_this_version, notes = _of_this_version(applying, target.build)
        if not of_this_version:
            return draft.skipped(_other_versions(applying, target.build))
        computed = [_computed(variant, target) for variant in of_this_version]
    except ExpressionError as error:
        raise UsageError(f"catalogue entry {first.id}: {error.message}", hint=error.hint) from error
    draft = _about(of_this_version[0], replace(draft, notes=notes), target)
    usable = [variant for variant in computed if not isinstance(variant, str)]
    if not usable:
        return draft.skipped(str(computed[0]))
    objections = [target.check_flags(variant.flags) for variant in usable]
    at = objections.index(None) if None in objections else 0
    return _with_variant(draft, usable[at], objections[at], target)


def _about(variant: Optimization, draft: Draft, target: Target) -> Draft:
    """The draft with the conditions of this variant, by which it is decided."""
    return replace(draft, conditions=decided(variant.applies_when, target.facts))


def _with_variant(draft: Draft, variant: Optimization, objection: str | None, target: Target) -> Draft:
    draft = replace(_about(variant, draft, target), optimization=variant)
    if variant.needs_work:
        return replace(draft, outcome="blocked", reason=f"needs work: {variant.needs_work}")
    if not changes_anything(variant, target):
        return draft.skipped("the baseline has it already", already=True)
    return replace(draft, outcome="blocked", reason=objection) if objection else draft


def _applying(
    variants: Sequence[Optimization], target: Target
) -> tuple[list[Optimization], tuple[Optimization, str] | None]:
    """The variants whose own condition holds; and the objection that decides, where none of this version's does."""
    objections = [(one, _does_not_apply(one, target)) for one in variants]
    applying = [one for one, reason in objections if reason is None]
    if applying and _of_this_version(applying, target.build)[0]:
        return applying, None
    others = [(one, reason) for one, reason in objections if reason is not None]
    fitting = [(one, reason) for one, reason in others if within(target.build.version, one.versions) is not False]
    decisive = fitting if applying else [*fitting, *others]
    return applying, decisive[0] if decisive else None


def _does_not_apply(optimization: Optimization, target: Target) -> str | None:
    outcome = check(optimization.applies_when, target.facts)
    return None if outcome.holds else outcome.reason


def _no_search(optimization: Optimization, target: Target) -> str | None:
    """Why a dial is not searched here; None when it is, or when the entry has none."""
    dial, build = optimization.dial, target.build
    if dial is None:
        return None
    if not target.situation.spec.policy.search_dials:
        return f"a search of up to {dial.max_launches} runs: set policy.search_dials = true to have it made"
    missing = [knob.flag for knob in dial.knobs if build.flags and build.flag(knob.flag) is None]
    return f"this build has no {' and no '.join(missing)}" if missing else None


def _of_this_version(variants: Sequence[Optimization], build: EngineBuild) -> tuple[list[Optimization], list[str]]:
    """Variants for the installed version first; the installed engine's own help wins over what entries say."""
    inside = {id(one): within(build.version, one.versions) for one in variants}
    fitting = [one for one in variants if inside[id(one)] is not False]
    others = [one for one in variants if inside[id(one)] is False and one.flags and _has_all(build, one)]
    if fitting or not others:
        return fitting, []
    told = f"the entry names {others[0].versions or 'any version'}; {build.version} has the flags all the same"
    return others, [told]


def _has_all(build: EngineBuild, variant: Optimization) -> bool:
    known = [build.flag(name.partition(".")[0]) for name in variant.flags]
    return all(info is not None and not info.removed for info in known)


def _other_versions(variants: Sequence[Optimization], build: EngineBuild) -> str:
    wanted = " or ".join(dict.fromkeys(one.versions for one in variants))
    return f"for {build.engine} {wanted}; this is {build.version}"


def changes_anything(optimization: Optimization, target: Target) -> bool:
    """Whether the arm would differ from the baseline."""
    baseline, env = target.baseline, target.situation.spec.target.env
    adds = not all(stands(target.build, baseline, name, value) for name, value in optimization.flags.items())
    removes = any(name in baseline for name in optimization.remove_flags)
    sets = any(env.get(name) != value for name, value in optimization.env.items())
    return adds or removes or sets or optimization.artifact is not None or optimization.dial is not None


def _computed(optimization: Optimization, target: Target) -> Optimization | str:
    """The entry with its "= ..." values computed, or which one cannot be.

    A flag that the baseline spells otherwise (`-np` for `--parallel`) takes the baseline's spelling, so that it
    replaces the baseline's value and does not stand beside it.
    """
    baseline, build = target.baseline, target.build
    flags: Flags = {}
    removed = [spellings.as_in(baseline, build, name) for name in optimization.remove_flags]
    for name, value in optimization.flags.items():
        found = evaluate(value[1:], target.facts) if isinstance(value, str) and value.startswith("=") else value
        if not isinstance(found, bool | int | float | str):
            return f"{UNDECIDED}the value of {name} ({value}) hangs on a fact that is unknown"
        opposite = next((other for other in spellings.other_side(build, name) if other in baseline), None)
        if opposite is not None and baseline[opposite] is not found:
            continue  # the baseline says the same by the other side of the switch
        removed += [opposite] if opposite is not None else []
        flags[spellings.as_in(baseline, build, name)] = found
    env = {
        name: evaluate(value[1:], target.facts) if value.startswith("=") else value
        for name, value in optimization.env.items()
    }
    if unknown := [name for name, value in env.items() if value is None]:
        if "tuned." in optimization.env[unknown[0]]:
            return "no tuned configuration is here yet: `assay tune moe` makes one"
        return f"{UNDECIDED}the value of {unknown[0]} ({optimization.env[unknown[0]]}) is unknown here"
    settings = {name: str(value) for name, value in env.items()}
    return optimization.model_copy(update={"flags": flags, "remove_flags": removed, "env": settings})
