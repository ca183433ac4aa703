"""A search as it is shown: what it ranked, and what it left out and why."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from assay.records.base import Frozen
from assay.records.device import Box
from assay.records.estimate import Layout
from assay.records.estimate_report import Load, ModelFacts
from assay.records.model_shape import ModelShape
from assay.roofline import layouts, memory, search, sharding
from assay.roofline.candidates import AS_STORED, Candidate, Miss
from assay.roofline.layout_choice import missing_bytes

Kind = Literal["impossible", "too large", "beyond the bounds"]
WORTH = 1.05
"""Times the tokens/s of the stored weights, from which on another format is listed."""
STAGES = (
    "Pipeline stages wait for the slowest of them (layers that do not divide, the head on the last), and a prompt that "
    "comes alone fills and drains the pipeline; engines that cut prompts finer wait less."
)
"""Assumed of layouts with stages."""


class Refused(Frozen):
    """A layout with a format of weights that is no candidate."""

    layout: Layout
    storage: str
    kind: Kind
    reason: str


class SearchReport(Frozen):
    """Layouts and formats of weights for a number of devices and a service level."""

    model: ModelFacts
    box: Box
    devices: int
    """Used at most."""
    load: Load
    ttft_s: float | None
    tpot_s: float | None
    cache_dtype: str
    memory_fraction: float
    candidates: list[Candidate]
    """Most expected tokens/s first."""
    misses: list[Miss]
    """What fits and is too slow with a single request in flight, nearest to the bounds first."""
    refused: list[Refused]
    assumptions: list[str]


def worth_another_format(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Without formats that give hardly more than the same layout with the weights as stored: they change answers."""
    stored = {each.layout: each.output_tokens_per_s.mid for each in candidates if each.storage == AS_STORED}
    return [
        each
        for each in candidates
        if each.storage == AS_STORED or each.output_tokens_per_s.mid > WORTH * stored.get(each.layout, 0.0)
    ]


def layout_notes(shape: ModelShape, candidates: Sequence[Candidate]) -> list[str]:
    """What the listed layouts imply that no other says: padded experts, stages that wait."""
    notes = []
    padded = {layout: sharding.padding(shape, layout) for layout in {each.layout for each in candidates}}
    most = max(padded, key=lambda layout: found[2] if (found := padded[layout]) else 0.0, default=None)
    if most is not None and (worst := padded[most]) is not None:
        notes.append(
            f"Experts of width {worst[0]:,} divide by few layouts, and engines pad their slices: by at most "
            f"{worst[2] / 1e9:.1f} GB of each device's weights here ({most.name})."
        )
    return [*notes, STAGES] if any(each.layout.pp > 1 for each in candidates) else notes


def refused(
    shape: ModelShape,
    box: Box,
    devices: int,
    found: Collection[tuple[str, Layout]],
    misses: Collection[Miss],
    *,
    request_tokens: int,
    memory_fraction: float,
    cache_bytes_per_element: float,
) -> list[Refused]:
    """Every layout that `assay.roofline.search.rank` considers and does not return.

    Args:
        shape: the model as stored.
        box: the devices.
        devices: how many were to be used at most.
        found: format and layout of the candidates.
        misses: what fits and is too slow.
        request_tokens: prompt and answer.
        memory_fraction: as given to the search.
        cache_bytes_per_element: as given to the search.
    """
    left_out: list[Refused] = []
    too_slow = {(each.storage, each.layout): each for each in misses}
    for name, stored in search.stored_in(shape, box):
        for layout in search.considered(shape, devices):
            if (name, layout) in found:
                continue
            slow = too_slow.get((name, layout))
            told = (
                ("beyond the bounds", f"a single request in flight takes {slow.over:,.2f} times a bound")
                if slow
                else _why(stored, box, layout, request_tokens, memory_fraction, cache_bytes_per_element)
            )
            left_out.append(Refused(layout=layout, storage=name, kind=told[0], reason=told[1]))
    return left_out


def _why(
    shape: ModelShape, box: Box, layout: Layout, request_tokens: int, fraction: float, element_bytes: float
) -> tuple[Kind, str]:
    """Why a layout is no candidate although nothing was estimated for it."""
    why_not = layouts.check(shape, box, layout)
    if why_not is not None:
        return "impossible", why_not
    room = memory.budget(shape, box, layout, memory_fraction=fraction, cache_bytes_per_element=element_bytes)
    if not room.fits:
        return "too large", f"{missing_bytes(room) / 1e9:.1f} GB are missing on each device"
    return "too large", f"the cache holds {room.cache_tokens:,} tokens, no request of {request_tokens:,}"
