"""What the report says of the step: where its time goes by calculation, what was measured beside it, what is next."""

from __future__ import annotations

import math
import re
import statistics

from assay.plan.bottleneck import Parts
from assay.records.range import Range
from assay.records.state import CampaignState
from assay.render.report_facts import baseline_runs
from assay.render.words import SIMULATED, effect_words, milliseconds_words

Bottlenecks = tuple[Parts, Parts | None]
SHOWN_PARTS = 3
BY_CALCULATION = "By calculation"
"""How the plan's sentence on the step begins (`assay.plan.surroundings`)."""
PLANNED_MS = re.compile(r" takes [\d.,]+ ms \(([\d.,]+) to ([\d.,]+)\)")
"""The range in that sentence; its numbers are recorded nowhere else."""


def bottleneck(state: CampaignState, found: Bottlenecks | None) -> str:
    """The step of the baseline and of the stack; by the plan's own sentence where it cannot be calculated again."""
    if found is None:
        planned = [said for said in state.reasoning.surroundings.sentences if said.startswith(BY_CALCULATION)]
        return " ".join([planned[0], *_as_planned(state, planned[0]), *_acting(state)]) if planned else ""
    before, after = found
    told = (
        f"{BY_CALCULATION}, a decode step of the baseline ({before.sequences:,} sequences of "
        f"{before.context_tokens:,} tokens) takes {_range_words(before.time_s)}: {_shares(before)}."
    )
    if measured := beside(state, (before.time_s.low, before.time_s.high)):
        told += f" {measured}"
    if after is not None:
        told += f" With {' + '.join(state.stack)} in force, as it was measured: {_shares(after)}."
    return f"{told} {_largest(after or before)}"


def beside(state: CampaignState, range_s: tuple[float, float]) -> str:
    """The baseline's measured time per token, held against the calculated range of its step; empty without runs.

    A token waits for the whole step, and for the prompts that share it or come between, so TPOT is at least the step.
    """
    values = [
        run.outcome.measures.tpot.p50_s
        for run in baseline_runs(state)
        if run.outcome and run.outcome.measures and run.outcome.measures.tpot.p50_s is not None
    ]
    if not values:
        return ""
    measured_s, (low_s, high_s) = statistics.median(values), range_s
    what = SIMULATED if state.is_simulated else "Measured"
    told = f"{what}: {milliseconds_words(measured_s)} ms a token (TPOT p50 of the baseline, median of its runs)"
    if measured_s < low_s:
        return (
            f"{told}. That is below the calculated range: unless a step yields several tokens (drafts), the "
            "calculation is too slow here, and its shares may be off too."
        )
    if measured_s > high_s:
        return (
            f"{told}. That is above the calculated range: prompts in shared steps, or a calculation that is too fast."
        )
    return f"{told}, inside the calculated range."


def _as_planned(state: CampaignState, sentence: str) -> list[str]:
    told = [f"This is the baseline's step as the plan estimated it (Assay {state.assay_version}), before any run."]
    if found := PLANNED_MS.search(sentence):
        low_s, high_s = (float(bound.replace(",", "")) / 1000 for bound in found.groups())
        told.append(beside(state, (low_s, high_s)))
    return [one for one in told if one]


def _acting(state: CampaignState) -> list[str]:
    """What adopted changes were to act on, where the step cannot be calculated again: the model's shape is not here."""
    told = []
    for name in state.stack:
        entry, effect = state.reasoning.entries.get(name), state.verdicts[name].effect
        if entry is not None and entry.ceiling is not None and effect is not None:
            share = f"{100 * entry.ceiling.touched_share:.0f}% of its time"
            most = f"{100 * entry.ceiling.gain.high:+.1f}% at most"
            told.append(f"{name} acts in operations that take {share}, by calculation for {most}; "
                        f"measured: {effect_words(effect)}.")  # fmt: skip
    return told


def _largest(last: Parts) -> str:
    """Amdahl's two bounds: of everything but the largest part, and of that part alone."""
    share = last.shares[last.largest]
    free = f"{100 * last.ceiling:+,.0f}%" if math.isfinite(last.ceiling) else "everything"
    return (
        f"The largest part ({last.largest}, {100 * share:.0f}%) is what the next change has to move. If all the rest "
        f"took no time, decode would gain {100 * (1 / share - 1):+.0f}%: a change that leaves this part as it is "
        f"cannot bring more. If this part took no time, decode would gain {free}."
    )


def _range_words(time_s: Range) -> str:
    low, mid, high = (milliseconds_words(bound) for bound in (time_s.low, time_s.mid, time_s.high))
    return f"{mid} ms ({low} to {high})"


def _shares(parts: Parts) -> str:
    return ", ".join(f"{name} {100 * share:.0f}%" for name, share in list(parts.shares.items())[:SHOWN_PARTS])
