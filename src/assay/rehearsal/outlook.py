"""A user's own campaign rehearsed in memory: the real planner in many drawn worlds, and what that says beforehand."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from assay.plan.soaks_made import latest
from assay.plan.verdicts import BUDGET_ENDED
from assay.records.hypothesis import Hypothesis
from assay.records.rehearsal import CandidateOutlook, Chance, Outlook, PowerPoint
from assay.records.spec import CampaignSpec
from assay.records.state import CampaignState
from assay.rehearsal.prior import FAILING, WAYS, Truths, draw, world_of
from assay.rehearsal.world import drive, start

EFFECTS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5)
"""True effects that power is simulated for."""
WANTED_POWER = 0.8
SPENT = 0.9
SHARE_OF_NULLS = 0.5
SHARE_FOR_POWER = 0.2
FEWEST = 10
SOAKS_ARE_MUCH = 0.25
"""Share of the budget."""
RAISES = (2, 4, 8)
MOST_NOISE = 3.0
"""Times the known noise that a world has at most: beyond, few degrees of freedom would speak of other machines."""
SECONDS_PER_HOUR = 3600
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known, or assumed, of the box before the rehearsal."""

    run_sd: float
    run_sd_source: str
    run_sd_freedom: float | None = None
    """Degrees of freedom behind it: each world then draws its own noise around it; None: taken as it is."""
    run_s: float
    launch_s: float
    run_s_source: str
    launch_range_s: tuple[float, float] | None = None
    """The shortest and the longest launch by a guess; None: it was measured, or given."""


def rehearse(
    spec: CampaignSpec, hypotheses: Sequence[Hypothesis], known: Known, *, campaigns: int, seed: int, say: Say
) -> Outlook:
    """Drive the planner through many drawn worlds.

    Args:
        spec: the campaign's question and budget.
        hypotheses: its plan; what waits for approval is taken as approved.
        known: noise and cost of a run.
        campaigns: how many worlds are drawn; false adoption takes half as many more, each point of power a fifth.
        seed: of all draws.
        say: told what is being done.
    """
    plan = [one.model_copy(update={"approved": True}) for one in hypotheses if one.status != "cancelled"]
    rehearsal = _Rehearsal(spec, plan, known, seed)
    say(f"{campaigns} campaigns in drawn worlds")
    drawn = [rehearsal.drawn(number) for number in range(campaigns)]
    nulls = max(FEWEST, round(SHARE_OF_NULLS * campaigns))
    say(f"{nulls} campaigns in which nothing helps")
    null = [rehearsal.with_effect(number, 0.0) for number in range(nulls)]
    each = max(FEWEST, round(SHARE_FOR_POWER * campaigns))
    say(f"{each} campaigns for each of some true effects")
    power = rehearsal.power(each)
    detectable = _detectable(power)
    ends = [end for end, _ in drawn]
    useless = [sum(truths.effects.get(name, 0.0) <= 0 for name in end.stack) for end, truths in drawn]
    hours = sorted(end.spent_s / SECONDS_PER_HOUR for end in ends)
    by_budget = statistics.fmean(_ended_by_budget(end) for end in ends)
    return Outlook(
        campaigns=campaigns,
        seed=seed,
        hours_median=statistics.median(hours),
        hours_p90=float(np.quantile(hours, 0.9)),
        runs_median=statistics.median(len(end.runs) for end in ends),
        budget_hours=spec.budget.total_s / SECONDS_PER_HOUR,
        ended_by_budget=by_budget,
        adopted_mean=statistics.fmean(len(end.stack) for end in ends),
        adopted_useless=statistics.fmean(useless),
        candidates=[_candidate(one, ends) for one in plan],
        power=power,
        detectable=detectable,
        false_adoption=chance([bool(end.stack) for end, _ in null]),
        run_sd=known.run_sd,
        run_sd_source=known.run_sd_source,
        run_s=known.run_s,
        run_s_source=known.run_s_source,
        assumptions=[*_assumptions(spec, hypotheses), *_guessed(known, statistics.median(hours), ends)],
        advice=[*_advice(rehearsal, detectable, each, by_budget, say), *_soaks(spec, ends)],
    )


def _ended_by_budget(end: CampaignState) -> bool:
    """Whether a candidate went without brackets for want of time (the confirmation's share is kept back), or all is."""
    cut = any(BUDGET_ENDED in verdict.reason for verdict in end.verdicts.values())
    return cut or end.spent_s > SPENT * end.spec.budget.total_s


def chance(hits: Sequence[bool]) -> Chance:
    """A share with its 95% interval. Source: Wilson 1927, the score interval of a proportion."""
    n, z = len(hits), 1.96
    share = sum(hits) / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Chance(share=share, low=max(0.0, middle - half), high=min(1.0, middle + half), campaigns=n)


class _Rehearsal:
    """One plan, in any number of worlds."""

    def __init__(self, spec: CampaignSpec, plan: Sequence[Hypothesis], known: Known, seed: int) -> None:
        self.spec, self.plan, self._known, self._seed = spec, plan, known, seed
        self.open = [one for one in plan if one.status == "planned"]

    def drawn(self, number: int) -> tuple[CampaignState, Truths]:
        """A campaign in a world drawn from the predictions."""
        truths = draw(self.open, np.random.default_rng([self._seed, number]))
        return self._driven(truths, number, self.spec), truths

    def with_effect(
        self, number: int, effect: float, spec: CampaignSpec | None = None
    ) -> tuple[CampaignState, str | None]:
        """A campaign in which one hypothesis, another each time, has this effect, and all others do nothing."""
        chosen = self.open[number % len(self.open)].id if self.open else None
        effects = {chosen: math.log1p(effect)} if chosen else {}
        return self._driven(Truths(effects=effects), number, spec or self.spec), chosen

    def power(self, each: int) -> list[PowerPoint]:
        """Power around where it reaches 80%, by halving: larger effects are found more often."""
        found: dict[float, PowerPoint] = {}
        low, high = 0, len(EFFECTS) if self.open else 0
        while low < high:
            middle = (low + high) // 2
            effect = EFFECTS[middle]
            found[effect] = PowerPoint(effect=effect, adopted=self.adopted(effect, each))
            low, high = (low, middle) if found[effect].adopted.share >= WANTED_POWER else (middle + 1, high)
        return [found[effect] for effect in sorted(found)]

    def adopted(self, effect: float, each: int, spec: CampaignSpec | None = None) -> Chance:
        """How often this effect is adopted."""
        ends = (self.with_effect(number, effect, spec) for number in range(each))
        return chance([chosen in end.stack for end, chosen in ends])

    def _driven(self, truths: Truths, number: int, spec: CampaignSpec) -> CampaignState:
        workload = spec.workload.model_copy(update={"seed": spec.workload.seed + number})
        journal = start(self.plan, spec.model_copy(update={"workload": workload}))
        world = world_of(
            truths,
            run_sd=self._noise(number),
            run_s=self._known.run_s,
            launch_s=self._known.launch_s,
            seed=self._seed * 1_000_003 + number,
        )
        drive(journal, world)
        return journal.state

    def _noise(self, number: int) -> float:
        """The noise that this world has, given how well it is known: sd * sqrt(f / chi2_f)."""
        freedom = self._known.run_sd_freedom
        if freedom is None:
            return self._known.run_sd
        drawn = np.random.default_rng([self._seed, number, 1]).chisquare(freedom)
        return self._known.run_sd * min(MOST_NOISE, math.sqrt(freedom / max(drawn, 1e-9)))


def _candidate(hypothesis: Hypothesis, ends: Sequence[CampaignState]) -> CandidateOutlook:
    kinds = Counter(str(end.verdicts[hypothesis.id].kind) if hypothesis.id in end.verdicts else "none" for end in ends)
    return CandidateOutlook(
        id=hypothesis.id,
        tier=hypothesis.optimization.tier,
        predicted=hypothesis.predicted,
        failing=FAILING[hypothesis.optimization.tier] if hypothesis.status == "planned" else 1.0,
        verdicts={kind: number / len(ends) for kind, number in kinds.most_common()},
    )


def _detectable(power: Sequence[PowerPoint]) -> float | None:
    """Where power first reaches 80%, interpolated between the effects tried."""
    before = PowerPoint(effect=0.0, adopted=chance([False]))
    for point in power:
        if point.adopted.share >= WANTED_POWER:
            rise = point.adopted.share - before.adopted.share
            share = (WANTED_POWER - before.adopted.share) / rise if rise > 0 else 1.0
            return before.effect + share * (point.effect - before.effect)
        before = point
    return None


def _assumptions(spec: CampaignSpec, hypotheses: Sequence[Hypothesis]) -> list[str]:
    ways = ", ".join(f"{way} {share:.0%}" for way, share in WAYS.items())
    told = [
        "a predicted range holds the true effect in 80% of cases, spread normally around its middle",
        (
            f"a hypothesis fails with {FAILING[1]:.0%} (tier 1), {FAILING[2]:.0%} (tier 2), {FAILING[3]:.0%} (tier 3); "
            f"of those that fail: {ways}"
        ),
        "effects of several hypotheses multiply; runs differ by log-normal noise alone, without drift",
    ]
    if spec.budget.soak_s:
        told.append("memory grows in every soak alike, so what a candidate stands on is soaked beside it")
    asked = spec.policy.ask_before_tier
    if any(one.status == "planned" and not one.approved and one.optimization.tier >= asked for one in hypotheses):
        told.append("what the policy wants approved is taken as approved")
    return told


def _guessed(known: Known, hours: float, ends: Sequence[CampaignState]) -> list[str]:
    """What the guess of a launch does to the hours: each run has one launch."""
    if known.launch_range_s is None:
        return []
    runs = statistics.median(len(end.runs) for end in ends)
    low, high = (
        max(0.0, hours + runs * (launch_s - known.launch_s) / SECONDS_PER_HOUR) for launch_s in known.launch_range_s
    )
    span = f"{known.launch_range_s[0]:.3g} s and {known.launch_range_s[1]:.3g} s"
    then = f"{low:.3g} h to {high:.3g} h" if high >= 1 else f"{60 * low:.2g} min to {60 * high:.2g} min"
    return [f"a launch is a guess, between {span}: the same runs take {then} then; --launch says which"]


def _advice(rehearsal: _Rehearsal, detectable: float | None, each: int, by_budget: float, say: Say) -> list[str]:
    spec, count = rehearsal.spec, len(rehearsal.open)
    if not count:
        return ["no hypothesis is left to be tried: `assay todo --all` says what does not apply here, and why"]
    wanted = 2 * spec.objective.min_effect
    hours = f"{spec.budget.total_s / SECONDS_PER_HOUR:.3g} h"
    plural = "hypothesis" if count == 1 else "hypotheses"
    if detectable is not None and detectable <= wanted:
        found = f"with {count} {plural} and {hours}, effects of {detectable:.1%} and above are found with 80%"
        return [f"{found}: enough for twice the smallest effect that matters ({wanted:.1%})"]
    below = f"effects below {detectable:.1%}" if detectable is not None else "effects of any size"
    mend = _mend(rehearsal, wanted, each, by_budget, say)
    return [f"with {count} {plural} and {hours}, {below} will mostly end undecided: {mend}"]


def _soaks(spec: CampaignSpec, ends: Sequence[CampaignState]) -> list[str]:
    """What the soak does to the budget, where that is much."""
    soak_s, total_s = spec.budget.soak_s, spec.budget.total_s
    if not soak_s:
        return []
    remedy = "raise budget.total_s, or lower budget.soak_s"
    adopting = [end for end in ends if end.stack]
    unsoaked = sum(latest(end, end.stack) is None for end in adopting)
    if unsoaked or 2 * soak_s > total_s:
        missed = f"{unsoaked} of {len(adopting)} campaigns that adopt something" if adopting else "any campaign"
        what = f"soaks of {soak_s:g} s of a candidate and of what it stands on"
        return [f"the budget has no time for {what} in {missed}: {remedy}"]
    share = statistics.fmean(sum(run.intent.soak_s for run in end.runs) for end in ends) / total_s
    return [f"soaks of {soak_s:g} s take {share:.0%} of the budget: {remedy}"] if share > SOAKS_ARE_MUCH else []


def _mend(rehearsal: _Rehearsal, wanted: float, each: int, by_budget: float, say: Say) -> str:
    """The smallest raise of the budget that finds twice the smallest effect that matters, as far as it was tried."""
    budget = rehearsal.spec.budget
    for times in RAISES:
        say(f"the same with {times} times the budget")
        larger = budget.model_copy(
            update={
                "total_s": budget.total_s * times,
                "max_brackets": budget.max_brackets * times,
                "composition_brackets": budget.composition_brackets * times,
            }
        )
        raised = rehearsal.spec.model_copy(update={"budget": larger})
        if rehearsal.adopted(wanted, max(FEWEST, each // 2), raised).share >= WANTED_POWER:
            total = f"budget.total_s to {larger.total_s:.0f}"
            brackets = (
                f"budget.max_brackets to {larger.max_brackets} and budget.composition_brackets to "
                f"{larger.composition_brackets}"
            )
            what = f"{total}, {brackets}" if by_budget > 0.1 else f"{brackets} ({total})"  # noqa: PLR2004 - seldom
            return f"raise {what} to find {wanted:.1%} with 80%"
    return (
        f"even {RAISES[-1]} times the budget does not find {wanted:.1%} with 80%: quiet the machine, lengthen the "
        "windows, or try fewer hypotheses (policy.only)"
    )
