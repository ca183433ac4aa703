"""Requests that failed in soaks, counted: does an arm fail more of them than what it stands on?

A failed request may be the server's fault, the traffic's or the network's. Whose it is, one count cannot tell; two
can. What fails in both alike is no candidate's doing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.records.soak import Soak
from assay.stats.agreement import more_disagreement_p_value

MAX_TRIES = 3
"""Soaks of one arm: for a word on its memory, and for enough requests to tell two rates apart."""
FAILS_MORE = 0.05
"""Chance of blaming an arm that fails no more than its reference, shared out over the looks."""
LOOKS = 2 * MAX_TRIES - 1
"""The counts are compared after each soak of either, from the first at which both have one."""
HIGHER = 1.5
"""Times the reference's share of failed requests: below it, nothing is left to be told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Requests of all soaks of one arm."""

    soaks: int
    requests: int
    failed: int

    @property
    def words(self) -> str:
        """For example "3 of 412 requests failed"."""
        return f"{self.failed or 'none'} of {self.requests:,} requests failed"


def counted(soaks: Iterable[Soak]) -> Counts:
    """Add them up."""
    told = list(soaks)
    return Counts(
        soaks=len(told), requests=sum(soak.requests for soak in told), failed=sum(soak.failed for soak in told)
    )


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


def compared(own: Counts, base: Counts) -> str:
    """The two counts in a clause, where the arm has failures."""
    soaks = f" in {base.soaks} soaks" if base.soaks > 1 else ""
    return f"its reference: {base.words}{soaks} ({_likeness(own, base)}, p = {p_value(own, base):.2g})"


def _likeness(own: Counts, base: Counts) -> str:
    if fails_more(own, base):
        return "the arm fails more"
    return "too few to tell them apart" if is_open(own, base) else "no difference"
