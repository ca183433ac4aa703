"""Entries that need others: who waits for whom, and what is known of their flags once those are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from assay.plan.applying import Draft, Findings, FlagFinding, Target
from assay.records.base import Flags
from assay.records.hypothesis import Optimization


def resolved(
    drafts: Mapping[str, Draft], target: Target, findings: Findings | None, only: Sequence[str]
) -> list[Draft]:
    """Every draft with what it waits for, and with what is known of its flags in its own company.

    Args:
        drafts: by id.
        target: what they are held against.
        findings: what is known of flags; None: nothing.
        only: ids that the campaign asks for by name: what does nothing is tried all the same.
    """
    known: dict[str, Draft] = {}
    for name in drafts:
        _resolve(name, drafts, known, ())
    if findings is None:
        return list(known.values())
    today = {one.text for one in findings(target.baseline, target.situation.spec.target.env)}
    return [_judged(one, known, target, findings, today, named=one.optimization.id in only) for one in known.values()]


def _resolve(name: str, drafts: Mapping[str, Draft], known: dict[str, Draft], above: tuple[str, ...]) -> Draft | None:
    if name in known or name not in drafts:
        return known.get(name)
    draft = drafts[name]
    if draft.outcome != "skipped":
        waits: list[str] = []
        for needed in draft.optimization.requires:
            other = None if needed in above else _resolve(needed, drafts, known, (*above, name))
            if other is not None and other.already:
                continue
            if other is None or other.outcome != "planned":
                draft = draft.skipped(f"needs {needed}, which {_why_not(other)}")
                break
            waits += [*other.waits_for, needed]
        else:
            draft = replace(draft, waits_for=list(dict.fromkeys(waits)))
    known[name] = draft
    return draft


def _why_not(other: Draft | None) -> str:
    if other is None:
        return "is not among the entries that are asked for"
    return f"is {other.outcome}: {other.reason}"


def _judged(
    draft: Draft, known: Mapping[str, Draft], target: Target, findings: Findings, today: set[str], *, named: bool
) -> Draft:
    """What is known of its flags, where the baseline and what it waits for are in force too."""
    optimization = draft.optimization
    if draft.outcome == "skipped" or not (optimization.flags or optimization.env or optimization.remove_flags):
        return draft
    company = [*(known[name].optimization for name in draft.waits_for), optimization]
    flags, env = _merged(target.baseline, target.situation.spec.target.env, company)
    new = [one for one in findings(flags, env) if one.text not in today and _concerns(one, optimization)]
    draft = replace(draft, findings=new)
    if draft.outcome != "planned":
        return draft
    if refused := next((one for one in new if one.kind == "refused"), None):
        return replace(draft, outcome="blocked", reason=refused.text)
    inert = next((one for one in new if one.kind == "inert"), None)
    if inert is None:
        return draft
    if _acts_at_this_load(optimization, target):
        told = "what is known of these flags says that nothing comes of them; at this load the estimate says otherwise"
        return replace(draft, notes=[*draft.notes, told])
    if not named:
        return draft.skipped(f"nothing comes of it here: {inert.text}")
    warned = optimization.model_copy(update={"expectation": f"known to do nothing here: {inert.text}"})
    return replace(draft, optimization=warned)


def _acts_at_this_load(optimization: Optimization, target: Target) -> bool:
    """Rules read a command; the estimate knows the load: a limit that the command allows need not be reached."""
    step = target.situation.step
    ceiling = step.ceilings.get(optimization.ceiling) if step and optimization.ceiling else None
    return ceiling is not None and ceiling.applies and ceiling.gain.high > 0


def _concerns(finding: FlagFinding, optimization: Optimization) -> bool:
    return any(name in optimization.flags or name in optimization.env for name in finding.flags)


def _merged(baseline: Flags, env: Mapping[str, str], company: Sequence[Optimization]) -> tuple[Flags, dict[str, str]]:
    flags, settings = dict(baseline), dict(env)
    for one in company:
        for name in one.remove_flags:
            flags.pop(name, None)
        flags.update(one.flags)
        settings.update(one.env)
    return flags, settings
