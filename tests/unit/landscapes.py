"""Times of a fused-MoE kernel over its launch configurations, generated from the roofline with seeded peculiarities."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from functools import cache

from assay.lab.tuning.search import Ask, Told
from assay.lab.tuning.space import Config, Problem, traffic_s

EXPERTS, TOP_K, HIDDEN, WIDTH = 256, 8, 6144, 256
"""GLM-5's experts under TP8."""
QUICK_NOISE, FULL_NOISE = 0.01, 0.004


def problem(tokens: int, element_bytes: float = 2.0) -> Problem:
    """On a chip like an H200."""
    return Problem(
        tokens=tokens,
        distinct=EXPERTS * (1 - (1 - TOP_K / EXPERTS) ** tokens),
        pairs=tokens * TOP_K,
        hidden=HIDDEN,
        width=WIDTH,
        element_bytes=element_bytes,
        read_bytes_per_s=4.1e12,
        flop_per_s=7.8e14 * 2 / element_bytes,
        smem_per_block_bytes=232_448,
        sms=132,
    )


@dataclass
class Landscape:
    """What measuring would give; remembers how often it was asked."""

    seed: int
    problems: dict[int, Problem]
    asked: list[Ask] = field(default_factory=list)

    def true_s(self, tokens: int, config: Config) -> float | None:
        """Roofline times peculiarities of every value and pair of values; None where it does not fit."""
        here = self.problems[tokens]
        staged = (config.block_m + config.block_n) * config.block_k * here.element_bytes * (config.num_stages - 1)
        if staged > here.smem_per_block_bytes:
            return None
        tiles = -(-max(1.0, here.rows) // config.block_m) * here.distinct
        padded = tiles * config.block_m * 6 * HIDDEN * WIDTH / here.flop_per_s
        skinny = 1 + 24 / config.block_m + 40 / config.block_n
        in_flight = (config.num_stages - 1) * config.block_k * config.block_n * here.element_bytes
        time_s = max(traffic_s(config, here), here.floor_s, padded * skinny) * (1 + 20_000 / in_flight)
        time_s *= 1 + 0.002 * config.block_m / max(1.0, here.rows)
        values = astuple(config)
        effects = sum(
            self._draw(0.02, place, value, tokens // 64)
            + sum(self._draw(0.02, place, value, other, values[other]) for other in range(place))
            for place, value in enumerate(values)
        )
        return time_s * math.exp(effects + self._draw(0.01, *values)) + 5e-6

    def measure(self, asks: Sequence[Ask]) -> list[Told]:
        """With the noise of a real measurement."""
        found = []
        for ask in asks:
            self.asked.append(ask)
            time_s = self.true_s(ask.tokens, ask.config)
            noise = QUICK_NOISE if ask.effort == "quick" else FULL_NOISE
            error = self._draw(noise, len(self.asked), "noise")
            told = (
                Told(time_s=None, problem="shared memory") if time_s is None else Told(time_s=time_s * math.exp(error))
            )
            found.append(told)
        return found

    def _draw(self, spread: float, *what: object) -> float:
        return spread * _drawn(self.seed, *what)


@cache
def _drawn(*what: object) -> float:
    return random.Random(str(what)).gauss(0, 1)
