"""Versions of engines: how they are ordered, and which checked one stands for another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"\d{1,9}")
_CANDIDATE = re.compile(r"(?<=\d)(?:a|b|rc)(\d{1,9})")
_PART = 3
"""Numbers that make a release; what follows is a patch of it."""
_MOST = 10**9
_MOST_NUMBERS = 4


def key(version: str) -> tuple[int, ...]:
    """Something to sort by: the numbers of the version; a leading `v` and what is local (`+cu129`) do not count.

    A candidate (`1.2.0rc3`) comes before its release, and after every patch of the one before.

    >>> key("v0.5.12.post1+cu129") > key("0.5.12") > key("0.5.9")
    True
    >>> key("1.1.4") < key("1.2.0rc3") < key("1.2.0")
    True
    """
    candidate = _CANDIDATE.search(version)
    numbers = _numbers(version[: candidate.start()] if candidate else version)
    if candidate is None or not numbers:
        return numbers
    return (*numbers[:-1], numbers[-1] - 1, _MOST, int(candidate[1]))


def release(version: str) -> tuple[int, ...]:
    """Its first three numbers, missing ones as 0."""
    numbers = _numbers(_CANDIDATE.split(version, maxsplit=1)[0])[:_PART]
    return numbers + (0,) * (_PART - len(numbers))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(version.partition("+")[0])[:6])


def is_version(text: str) -> bool:
    """Whether a text names a version at all: at most four numbers, then what is added to a release.

    >>> is_version("0.5.9.post1.dev3+g1a2b"), is_version("1.2.3.4.5.6")
    (True, False)
    """
    parts = text.partition("+")[0].removeprefix("v").split(".")
    is_shaped = re.fullmatch(r"v?\d{1,9}(\.\w{1,20}){0,5}(\+[\w.]{1,40})?", text) is not None
    return is_shaped and sum(part.isdigit() for part in parts) <= _MOST_NUMBERS


def standing_for(version: str, checked: Sequence[str]) -> str | None:
    """The checked version whose flags this one has: itself, else the newest before it; None when it is older than all.

    >>> standing_for("0.5.9.post1", ["0.5.8", "0.5.9", "0.5.10"])
    '0.5.9'
    """
    before = [each for each in checked if key(each) <= key(version) or release(each) == release(version)]
    return max(before, key=key, default=None)


def in_run(version: str, first: str, last: str) -> bool:
    """Whether a checked version lies in an unbroken run of checked ones, both ends included."""
    return key(first) <= key(version) <= key(last)


def around(version: str, runs: Iterable[tuple[str, str]]) -> tuple[str | None, str | None]:
    """The end of the last run that was over before a version, and the begin of the first one that comes after it.

    >>> around("0.5.9", [("0.4.0", "0.4.6"), ("0.5.1", "0.5.4"), ("0.5.12", "0.5.23")])
    ('0.5.4', '0.5.12')
    """
    here, both = key(version), list(runs)
    before = [last for _, last in both if key(last) < here]
    after = [first for first, _ in both if key(first) > here]
    return max(before, key=key, default=None), min(after, key=key, default=None)


def within(version: str, since: str | None, until: str | None) -> bool:
    """Whether a version lies in a range, both ends included; a patch of the last release counts."""
    after = since is None or key(version) >= key(since)
    return after and (until is None or release(version) <= release(until))
