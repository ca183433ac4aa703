"""How long a step takes in the simulated world: the roofline's estimate, changed by what is true of the flags.

The expected time of every operation is multiplied by the factors of the truths that name it; the sum is divided by the
gains of the truths that speak of the whole step. Steps of up to 128 sequences are estimated exactly, larger ones at the
nearest multiple of 8; between contexts (and chunk lengths) of a grid it is interpolated linearly, because attention's
time is linear in the context.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from assay.records.device import Box
from assay.records.estimate import Layout, OperatingPoint, OpTime, Phase
from assay.records.model_shape import ModelShape
from assay.rehearsal.world_file import Truth
from assay.roofline import host as hosts
from assay.roofline import step

CONTEXTS = (0, 256, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144)
CHUNKS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768)
EXACT_UP_TO = 128
COARSE = 8


class StepTimes:
    """Times of steps of one model on one box, calculated when they are first asked for."""

    def __init__(
        self,
        shape: ModelShape,
        box: Box,
        layout: Layout,
        truths: Sequence[Truth] = (),
        *,
        cache_bytes_per_element: float = 2.0,
    ) -> None:
        self._shape, self._box, self._layout = shape, box, layout
        self._truths = [truth for truth in truths if truth.factor != 1 or truth.gain]
        self._element_bytes = cache_bytes_per_element
        self._known: dict[tuple[Phase, int, int, int], float] = {}

    def decode_s(self, sequences: int, context_tokens: float) -> float:
        """One token of each sequence, whose mean context is given."""
        batch = sequences if sequences <= EXACT_UP_TO else COARSE * round(sequences / COARSE)
        low, high, share = _between(CONTEXTS, context_tokens)
        at_low = self._at("decode", batch, low, 1)
        return at_low if share == 0 else at_low + share * (self._at("decode", batch, high, 1) - at_low)

    def prefill_s(self, tokens: int, context_tokens: float = 0.0) -> float:
        """A chunk of prompt whose sequence has that many tokens already."""
        context, _, _ = _between(CONTEXTS, context_tokens)
        low, high, share = _between(CHUNKS, tokens)
        at_low = self._at("prefill", 1, context, low)
        return at_low if share == 0 else at_low + share * (self._at("prefill", 1, context, high) - at_low)

    def _at(self, phase: Phase, sequences: int, context_tokens: int, new_tokens: int) -> float:
        key = (phase, sequences, context_tokens, new_tokens)
        if key not in self._known:
            self._known[key] = self._calculated(*key)
        return self._known[key]

    def _calculated(self, phase: Phase, sequences: int, context_tokens: int, new_tokens: int) -> float:
        point = OperatingPoint(phase=phase, sequences=sequences, context_tokens=context_tokens, new_tokens=new_tokens)
        found = step.estimate(self._shape, self._box, self._layout, point, cache_bytes_per_element=self._element_bytes)
        truths = [truth for truth in self._truths if _acts(truth, point)]
        kernels_s = sum(op.time_s.mid * _factor(op, truths) for op in found.ops)
        time_s = hosts.step_mid_s(found, kernels_s)
        for truth in truths:
            time_s /= 1 + truth.gain
        return time_s


def _acts(truth: Truth, point: OperatingPoint) -> bool:
    low, high = truth.sequences
    return truth.phase in {None, point.phase} and low <= point.sequences <= high


def _factor(op: OpTime, truths: Sequence[Truth]) -> float:
    factor = 1.0
    for truth in truths:
        if {op.name, op.name.partition(".")[0], op.part, op.collective}.isdisjoint(truth.ops):
            continue
        if truth.max_message_bytes is not None and (op.message_bytes or float("inf")) > truth.max_message_bytes:
            continue
        factor *= truth.factor
    return factor


def _between(grid: Sequence[int], value: float) -> tuple[int, int, float]:
    """The grid's neighbours of a value, and how far between them it lies; the last one beyond the end."""
    place = bisect_right(grid, value) - 1
    if place < 0:
        return grid[0], grid[0], 0.0
    if place == len(grid) - 1:
        return grid[-1], grid[-1], 0.0
    low, high = grid[place], grid[place + 1]
    return low, high, (value - low) / (high - low)
