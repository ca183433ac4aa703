"""Who is called unstable for requests that failed in its soak (`assay.plan.soak_counts`), by what arm and reference do.

Soaks of both are played one after the other as the planner asks for them, until the arm is blamed, nothing is left to
be told apart, or the tries are used up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.plan.soak_counts import MAX_TRIES, Counts, fails_more, is_open

NONE = Counts(soaks=0, requests=0, failed=0)
REQUESTS = 400
"""Of one soak: a minute of 64 streams whose answers take ten seconds."""
SHARES = (
    (0.0, 0.0), (0.001, 0.001), (0.005, 0.005), (0.02, 0.02), (0.1, 0.1),
    (0.001, 0.0), (0.005, 0.0), (0.01, 0.0), (0.02, 0.0), (0.04, 0.02), (0.06, 0.02), (0.1, 0.02),
)  # fmt: skip
"""Of the requests of an arm and of its reference, what fails: alike, and not alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Of so many arms."""

    blamed: int
    at_once: int
    """Under the rule that was: one failed request in the first soak is enough."""
    soaks: int
    """Of the arms, all of them."""


def ended(own: float, base: float, arms: int) -> Ended:
    """How arms end whose requests fail with these chances, each by itself."""
    rng = np.random.default_rng([round(1e6 * own), round(1e6 * base)])
    blamed = at_once = soaks = 0
    for _ in range(arms):
        first, tries, guilty = _played(rng, own, base)
        blamed, at_once, soaks = blamed + guilty, at_once + (first > 0), soaks + tries
    return Ended(blamed=blamed, at_once=at_once, soaks=soaks)


def _played(rng: np.random.Generator, own: float, base: float) -> tuple[int, int, bool]:
    """Failures in the first soak, soaks of the arm, and whether it is blamed."""
    first = int(rng.binomial(REQUESTS, own))
    arm, reference = _soaked(NONE, first), NONE
    while arm.failed:
        if reference.soaks and fails_more(arm, reference):
            return first, arm.soaks, True
        if reference.soaks and not is_open(arm, reference):
            break
        if reference.soaks < arm.soaks:
            reference = _soaked(reference, int(rng.binomial(REQUESTS, base)))
        elif arm.soaks < MAX_TRIES:
            arm = _soaked(arm, int(rng.binomial(REQUESTS, own)))
        else:
            break
    return first, arm.soaks, False


def _soaked(counts: Counts, failed: int) -> Counts:
    return Counts(soaks=counts.soaks + 1, requests=counts.requests + REQUESTS, failed=counts.failed + failed)
