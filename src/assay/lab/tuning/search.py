"""The search: where a model of what was measured points to, then steps to neighbours, tokens after tokens.

Each number of tokens begins where the one before ended.

It is asked for generations of measurements and told what they gave; it measures nothing itself, so that the same code
searches a GPU, a journal of an interrupted run, and the recorded landscapes of the tests.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from assay.lab.tuning.space import Config, Problem, double_steps, guess_s, steps, why_not
from assay.lab.tuning.surrogate import Evidence, ranked

Effort = Literal["quick", "full"]
FIRST_GUESSES, LATER_GUESSES = 16, 4
"""Of the rough model, for the first number of tokens and for those that have a neighbour to begin from."""
FIRST_SPREAD, LATER_SPREAD = 40, 6
"""Spread over what is allowed, so that the model sees every value; likewise."""
POINTED = 12
"""Of a generation that the model points to: about as many as there are compilers (`on_gpu.compile_pool`). A generation
takes as long as its slowest compilation, so a few larger ones are sooner done than many small ones."""
POINTED_GENERATIONS = 8
"""At most so many; the first that gains nothing ends them."""
HANDED_ON = 4
"""Best configurations of the neighbouring numbers of tokens that a search begins with."""
BEAM = 2
"""Best configurations whose neighbours are tried."""
BETTER = 0.005
"""A generation that gains less than this ends a search."""
MOST_GENERATIONS = 8
FINALISTS, CLOSE = 5, 0.04
"""So many, and none slower than the best by more, are measured again with full effort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One measurement that is wanted."""

    tokens: int
    config: Config
    effort: Effort


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What it gave."""

    time_s: float | None
    """None: it could not be launched, or its result was wrong."""
    problem: str | None = None


Measure = Callable[[Sequence[Ask]], Sequence[Told]]
"""A generation of measurements; answers in the same order."""
Watch = Callable[["Progress"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a search is."""

    tokens: int
    done: int
    """Numbers of tokens that are finished."""
    total: int
    measured: int
    """Measurements so far."""
    best_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """The best configuration for a number of tokens."""

    tokens: int
    config: Config
    time_s: float
    default_s: float | None
    """The engine's own choice, measured with the same effort; None when that failed."""
    measured: int
    """Configurations tried for it."""
    pruned: int


@dataclass(slots=True)
class _Point:
    """What is known at one number of tokens."""

    problem: Problem
    allowed: set[Config]
    pruned: int
    quick: dict[Config, float | None] = field(default_factory=dict)
    full: dict[Config, float | None] = field(default_factory=dict)

    def best(self, count: int) -> list[Config]:
        good = {config: time for config, time in self.quick.items() if time is not None}
        return sorted(good, key=lambda config: good[config])[:count]

    def evidence(self) -> Evidence:
        good = {config: time for config, time in self.quick.items() if time is not None}
        return Evidence(problem=self.problem, times_s=good)

    def best_s(self) -> float | None:
        return min((time for time in self.quick.values() if time is not None), default=None)


def search(
    space: Iterable[Config],
    problems: Sequence[Problem],
    defaults: Callable[[int], Config],
    measure: Measure,
    watch: Watch = lambda progress: None,  # noqa: ARG005 - nobody watches
) -> Iterator[Winner]:
    """The best configuration for each number of tokens, as soon as it is known; fewest tokens first.

    Args:
        space: everything that may be chosen.
        problems: one for each number of tokens.
        defaults: the engine's own choice for a number of tokens, always measured and never pruned.
        measure: what measures.
        watch: told after every generation.
    """
    every = list(space)
    finished: list[_Point] = []
    counted = 0
    for problem in sorted(problems, key=lambda one: one.tokens):
        default = defaults(problem.tokens)
        allowed = {one for one in every if why_not(one, problem) is None}
        point = _Point(problem, allowed | {default}, len(every) - len(allowed))

        def ask(configs: Iterable[Config], effort: Effort = "quick", point: _Point = point) -> None:
            nonlocal counted
            known = point.quick if effort == "quick" else point.full
            wanted = [one for one in dict.fromkeys(configs) if one not in known]
            asks = [Ask(tokens=point.problem.tokens, config=one, effort=effort) for one in wanted]
            if not asks:
                return
            for one, told in zip(wanted, measure(asks), strict=True):
                known[one] = told.time_s
            counted += len(asks)
            watch(
                Progress(
                    tokens=point.problem.tokens,
                    done=len(finished),
                    total=len(problems),
                    measured=counted,
                    best_s=point.best_s(),
                )
            )

        ask([default, *_beginnings(point, finished)])
        _follow(point, [each.evidence() for each in finished], ask)
        _climb(point, ask)
        winner = _final(point, default, ask)
        finished.append(point)
        if winner is not None:
            yield winner


def _beginnings(point: _Point, finished: Sequence[_Point]) -> list[Config]:
    """What the neighbour found, and what the rough model thinks of the rest, unlike each other."""
    handed = [one for one in (finished[-1].best(HANDED_ON) if finished else []) if one in point.allowed]
    guesses: list[Config] = []
    wanted = LATER_GUESSES if handed else FIRST_GUESSES
    for one in sorted(point.allowed, key=lambda config: (guess_s(config, point.problem), config)):
        if all((one.block_m, one.block_n, one.block_k) != (g.block_m, g.block_n, g.block_k) for g in guesses):
            guesses.append(one)
        if len(guesses) == wanted:
            break
    spread = sorted(point.allowed, key=_scattered)[: LATER_SPREAD if handed else FIRST_SPREAD]
    return [*handed, *guesses, *spread]


def _scattered(config: Config) -> int:
    """An order without any pattern, the same in every run: a journal fits the search that goes on from it."""
    return zlib.crc32(config.told.encode())


def _follow(point: _Point, neighbours: Sequence[Evidence], ask: Callable[[Iterable[Config]], None]) -> None:
    """Measure what the model expects to be fastest, and let it learn from that, until it finds nothing better."""
    for _ in range(POINTED_GENERATIONS):
        before = point.best_s()
        left = point.allowed - point.quick.keys()
        if before is None or not left:
            return
        ask(ranked(sorted(left), point.evidence(), neighbours)[:POINTED])
        if not _improved(point, before):
            return


def _climb(point: _Point, ask: Callable[[Iterable[Config]], None]) -> None:
    """To better neighbours until there are none; pairs of steps only where single ones help no more."""
    for _ in range(MOST_GENERATIONS):
        before = point.best_s()
        if before is None:
            return
        ask(one for best in point.best(BEAM) for one in steps(best, point.allowed))
        if _improved(point, before):
            continue
        ask(double_steps(point.best(1)[0], point.allowed))
        if not _improved(point, before):
            return


def _improved(point: _Point, before_s: float) -> bool:
    now = point.best_s()
    return now is not None and now < before_s * (1 - BETTER)


def _final(point: _Point, default: Config, ask: Callable[[Iterable[Config], Effort], None]) -> Winner | None:
    """The few best ones and the default once more, with full effort."""
    quickest = point.best_s()
    if quickest is None:
        return None
    close = [one for one in point.best(FINALISTS) if (point.quick[one] or 0) <= quickest * (1 + CLOSE)]
    ask([*close, default], "full")
    good = {config: time for config, time in point.full.items() if time is not None}
    if not good:
        return None
    best = min(good, key=lambda config: (good[config], config))
    return Winner(
        tokens=point.problem.tokens,
        config=best,
        time_s=good[best],
        default_s=good.get(default),
        measured=len(point.quick),
        pruned=point.pruned,
    )
