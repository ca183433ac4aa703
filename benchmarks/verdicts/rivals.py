"""How others decide, from the description of their rules; no code of theirs.

keep-and-confirm: the rule of the best whole-loop peer. The baseline is measured once. Each candidate is measured once
on top of what was kept so far; at 1% or more above the reference it is measured once more, and kept if that is 0.5% or
more above it. What was measured last of what was kept is the next reference. It reports the last reference over the
first.

best-of-sweep: tuners that measure every setting once, the baseline too, and report the best over the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.verdicts.box import Box

KEEP_FROM = math.log1p(0.01)
CONFIRM_FROM = math.log1p(0.005)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What a method ended with."""

    adopted: list[int]
    """Places of the candidates."""
    claimed: float
    """Log ratio that it reports."""
    runs: int


def keep_and_confirm(effects: Sequence[float], box: Box) -> Decided:
    """One campaign of the whole-loop rule."""
    noise = iter(box.logs(2 * len(effects) + 1))
    first = reference = float(next(noise))
    kept: list[int] = []
    held, runs = 0.0, 1
    for place, effect in enumerate(effects):
        runs += 1
        if held + effect + float(next(noise)) - reference < KEEP_FROM:
            continue
        runs += 1
        again = held + effect + float(next(noise))
        if again - reference >= CONFIRM_FROM:
            kept.append(place)
            held, reference = held + effect, again
    return Decided(adopted=kept, claimed=reference - first, runs=runs)


def best_of_sweep(effects: Sequence[float], box: Box) -> Decided:
    """One sweep, every setting measured once."""
    noise = box.logs(len(effects) + 1)
    seen = [effect + float(noise[place + 1]) - float(noise[0]) for place, effect in enumerate(effects)]
    best = max(range(len(seen)), key=seen.__getitem__)
    if seen[best] <= 0:
        return Decided(adopted=[], claimed=0.0, runs=len(noise))
    return Decided(adopted=[best], claimed=seen[best], runs=len(noise))
