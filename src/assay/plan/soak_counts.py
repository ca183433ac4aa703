"""What went wrong in soaks, counted: does more of it go wrong with an arm than with what it stands on?

A failed request may be the server's fault, the traffic's or the network's, and a server may fall (die, or stand still
for good) of what every server here falls of. Whose fault it is, one count cannot tell; two can. What fails in both
alike is no candidate's doing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.records.soak import Soak
from assay.stats.agreement import more_disagreement_p_value

MAX_TRIES = 3
"""Soaks of one arm: for a word on its memory, and for enough requests to tell two rates apart."""
FAILS_MORE = 0.05
"""Chance of blaming an arm that fails no more than its reference, shared out over the looks; and, once more, of blaming
one that falls no more."""
LOOKS = 2 * MAX_TRIES - 1
"""The counts are compared after each soak of either, from the first at which both have one."""
HIGHER = 1.5
"""Times the reference's share (of failed requests, of soaks it fell in): below, nothing is left to be told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Requests of all soaks of one arm."""

    soaks: int
    requests: int
    """In those that the server stood: where it fell, what was in flight fails with it."""
    failed: int
    fell: int = 0
    """Soaks in which the server died or fell silent for good."""

    @property
    def words(self) -> str:
        """For example "3 of 412 requests failed"."""
        return f"{self.failed or 'none'} of {self.requests:,} requests failed"

    @property
    def fell_words(self) -> str:
        """For example "in 2 of 3 soaks"."""
        return f"in {self.fell or 'none'} of {self.soaks} soak{'s' * (self.soaks > 1)}"


def counted(soaks: Iterable[Soak]) -> Counts:
    """Add them up."""
    told = list(soaks)
    lived = stood(told)
    return Counts(
        soaks=len(told),
        requests=sum(soak.requests for soak in lived),
        failed=sum(soak.failed for soak in lived),
        fell=len(told) - len(lived),
    )


def stood(soaks: Iterable[Soak]) -> list[Soak]:
    """Those in which the server did not fall: of the others nothing else can be said, nor held against anything."""
    return [soak for soak in soaks if not soak.fell]


def chance_of_falls(own: Counts, base: Counts) -> float:
    """Chance, at the most, that an arm falls in all `k` of its soaks and its reference in none of `m`, both alike.

    The largest q^k (1 - q)^m of any rate q at which both fall, which is k^k m^m / (k + m)^(k + m): 0.25 of one soak
    each, 0.035 of three against two. An arm is blamed for falling on no other outcome, and the soaks end there, so this
    is the whole chance of blaming one that falls as its reference does. 1.0 for any other outcome.
    Source: Barnard 1945, "A new test for 2 x 2 tables" (the unconditional test, by its supremum over q).
    """
    k, m = own.soaks, base.soaks
    if not k or not m or own.fell < k or base.fell:
        return 1.0
    return float(k**k * m**m / (k + m) ** (k + m))


def falls_more(own: Counts, base: Counts) -> bool:
    """Whether the arm is shown to fall where its reference does not."""
    return chance_of_falls(own, base) <= FAILS_MORE


def may_fall_more(own: Counts, base: Counts) -> bool:
    """Whether it fell in a clearly higher share of its soaks, which may still be chance."""
    return own.fell * base.soaks > HIGHER * base.fell * own.soaks and not falls_more(own, base)


def p_value(own: Counts, base: Counts) -> float:
    """Chance of so many failures of the arm, or more, among all that failed, if both fail alike (Fisher's exact test).

    Each request counts as one that fails by itself; failures that come together (a connection that breaks under all
    streams) make it smaller than it is. 1.0 where nothing failed.
    """
    return more_disagreement_p_value(own.failed, own.requests, base.failed, base.requests)


def fails_more(own: Counts, base: Counts) -> bool:
    """Whether the arm is shown to fail more of its requests."""
    return p_value(own, base) <= FAILS_MORE / LOOKS


def is_open(own: Counts, base: Counts) -> bool:
    """Whether more soaks could tell what these do not: a clearly higher share that may still be chance."""
    higher = own.failed * base.requests > HIGHER * base.failed * own.requests
    return own.failed > 0 and higher and not fails_more(own, base)


def compared_falls(own: Counts, base: Counts) -> str:
    """How often both fell, in a clause, where the arm did."""
    if falls_more(own, base):
        likeness = f"the arm falls more, p <= {chance_of_falls(own, base):.2g}"
    else:
        likeness = "too few to tell them apart" if may_fall_more(own, base) else "no difference"
    return f"it fell {own.fell_words}, its reference {base.fell_words} ({likeness})"


def compared(own: Counts, base: Counts) -> str:
    """The two counts in a clause, where the arm has failures."""
    lived = base.soaks - base.fell
    soaks = f" in {lived} soaks" if lived > 1 else ""
    return f"its reference: {base.words}{soaks} ({_likeness(own, base)}, p = {p_value(own, base):.2g})"


def _likeness(own: Counts, base: Counts) -> str:
    if fails_more(own, base):
        return "the arm fails more"
    return "too few to tell them apart" if is_open(own, base) else "no difference"
