"""SAMPLE DATA: what each hypothesis of the made-up campaign is made to be, and what was concluded of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from assay.records.hypothesis import Hypothesis, Optimization
from assay.records.verdict import Effect, Verdict, VerdictKind

NUM_URGENT = 3
NOT_A_FLAG = "error: invalid argument: --mlock-all"
NO_FLASH = "llama_init_from_model: quantized V cache requires flash_attn to be enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one hypothesis is made to be: percent values."""

    name: str
    title: str
    predicted: tuple[float, float]
    kind: str
    effect: tuple[float, float, float] | None = None
    reason: str = ""
    tier: int = 1
    more: dict[str, Any] = field(default_factory=dict)
    """Cause and line of the verdict."""


CASES = [
    Case(name="parallel-slots", title="Serve eight slots at once", predicted=(0.1, 0.8), kind="adopted",
         effect=(32.1, 21.4, 43.8), reason="gain on top of the baseline, on fresh runs"),
    Case(name="threads-batch", title="All cores for prompt processing", predicted=(0.0, 0.15), kind="adopted",
         effect=(7.9, 1.2, 15.0), reason="gain on top of parallel-slots, on fresh runs"),
    Case(name="ubatch-large", title="Larger physical batch", predicted=(-0.05, 0.1), kind="no-effect",
         effect=(0.4, -3.2, 4.1), reason="the interval lies within ±5.0%"),
    Case(name="poll-busy", title="Busy polling between batches", predicted=(0.05, 0.1), kind="no-effect",
         effect=(-1.1, -4.6, 2.5), reason="the interval lies within ±5.0%"),
    Case(name="one-thread", title="A single thread (control)", predicted=(-0.6, -0.2), kind="worse",
         effect=(-41.7, -48.0, -34.6), reason="the interval lies below zero"),
    Case(name="threads-oversubscribed", title="Twice as many threads as cores", predicted=(-0.1, 0.05), kind="worse",
         effect=(-62.4, -70.2, -52.5), reason="the interval lies below zero"),
    Case(name="speculation-ngram", title="n-gram speculation", predicted=(-0.1, 0.4), kind="undecided",
         effect=(6.2, -4.9, 18.6), reason="cannot tell from noise: the budget ended after 4 brackets"),
    Case(name="lock-memory", title="Lock all memory", predicted=(0.0, 0.02), kind="blocked",
         reason="this build has no flag --mlock-all (nearest: --mlock)", more={"cause": "plan"}),
    Case(name="kv-q8-0-without-flash-attention", title="8-bit KV cache, flash attention off", tier=2,
         predicted=(-0.05, 0.05), kind="blocked", reason=f"incompatible-combination at stage load: {NO_FLASH}",
         more={"cause": "incompatible-combination", "line": NO_FLASH}),
    Case(name="mlock-everything", title="An older spelling", predicted=(0.0, 0.02), kind="blocked",
         reason=f"unknown-flag at stage arguments: {NOT_A_FLAG}", more={"cause": "unknown-flag", "line": NOT_A_FLAG}),
    Case(name="cache-reuse", title="Reuse shifted prefixes", predicted=(0.0, 0.05), kind="not-applied",
         reason="the server says: cache_reuse is not supported by this context",
         more={"line": "srv load_model: cache_reuse is not supported by this context, it will be disabled"}),
    Case(name="requantize-q4-0", title="Weights in 4 bits", tier=2, predicted=(0.1, 0.5), kind="wrong-output",
         reason="31 of 48 next tokens agree with the baseline's: below the floor of 90%"),
    Case(name="context-cap", title="Smaller context", tier=2, predicted=(0.0, 0.1), kind="unstable",
         effect=(2.0, -9.8, 15.3), reason="crashed under load in 2 of 3 runs",
         more={"cause": "crashed", "line": "GGML_ASSERT(n_tokens <= n_batch) failed"}),
    Case(name="numa-distribute", title="Spread over <NUMA> nodes | one node here", predicted=(0.0, 0.1), tier=3,
         kind="cancelled"),
]  # fmt: skip


def effect_of(percent: tuple[float, float, float]) -> Effect:
    """Percent values with their interval, as an effect."""
    middle, low, high = (math.log1p(value / 100) for value in percent)
    return Effect(
        log_ratio=middle, low=low, high=high, num_brackets=3, standard_error=(high - low) / 4, degrees_of_freedom=6,
        confidence=0.95,
    )  # fmt: skip


def verdict_on(case: Case, runs: list[str]) -> Verdict:
    """What was concluded of it."""
    effect = effect_of(case.effect) if case.effect else None
    held = None
    if effect is not None and case.kind != "unstable":
        held = effect.percent_low <= 100 * case.predicted[1] and effect.percent_high >= 100 * case.predicted[0]
    shown = f"{effect.percent:+.1f}% [{effect.percent_low:+.1f}, {effect.percent_high:+.1f}]: " if effect else ""
    return Verdict(
        candidate=case.name, kind=VerdictKind(case.kind), reason=shown + case.reason, effect=effect, runs=runs,
        predicted=case.predicted if held is not None else None, prediction_held=held, **case.more,
    )  # fmt: skip


def hypothesis_of(number: int, case: Case) -> Hypothesis:
    """What was planned."""
    optimization = Optimization(
        id=case.name, title=case.title, tier=case.tier, engine="llamacpp", flags={f"--{case.name}": True},
        mechanism="made up", predicted=case.predicted, numerics="exact", risk="none: made up",
    )  # fmt: skip
    blocked = case.more.get("cause") == "plan"
    return Hypothesis(
        number=number, optimization=optimization, priority="high" if number <= NUM_URGENT else "medium",
        status="cancelled" if case.kind == "cancelled" else "blocked" if blocked else "planned",
        blocked_reason=case.reason if blocked else None, predicted=case.predicted,
        document=f"improvements/{number:02d}-{case.name}.md",
    )  # fmt: skip
