"""Which operation of a model each kernel of a decode step is: by its name, and where the name is not enough by place.

cuBLAS multiplies qkv, output projection, router, dense layers and head with kernels of one name, and vLLM's experts
multiply twice with the same. A layer's order tells them apart: norm, qkv product, rotary embedding and cache write,
attention, output projection, norm, router's product, top-k, sort, gate-up, activation, down, sum. The head is the
product after all of this.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.formats.kernel_kinds import Kind
from assay.records.traced_step import Operation

_BY_NAME: dict[Kind, Operation] = {
    "communication": "communication",
    "gate_up": "experts gate-up",
    "down": "experts down",
    "sort": "experts sort, sum",
    "router": "router",
    "attention": "attention",
    "rope": "rope, cache write",
    "norm": "norms",
    "activation": "activation",
    "quantize": "quantization",
    "inputs": "inputs",
    "sampling": "sampling",
}
_PLACES: frozenset[Kind] = frozenset(
    {"gate_up", "down", "experts", "sort", "router", "attention", "rope", "norm", "activation"}
)
"""Kernels whose names say where in a layer they are."""
_IN_LAYERS: frozenset[Kind] = _PLACES - {"norm"}
"""The last norm stands after the layers."""


def operations_of(kinds: Sequence[Kind]) -> list[Operation]:
    """The operation of each kernel of one step, in their order on the device."""
    before, after = _neighbours(kinds), _neighbours(kinds[::-1])[::-1]
    places = [place for place, kind in enumerate(kinds) if kind in _PLACES]
    layers = [place for place in places if kinds[place] in _IN_LAYERS]
    first, last = (places[0] if places else len(kinds)), (layers[-1] if layers else -1)
    head = next((place for place in range(last + 1, len(kinds)) if _is_head(kinds, before, place)), len(kinds))
    return [_operation(kinds, before, after, place, (first, last, head)) for place in range(len(kinds))]


def _neighbours(kinds: Sequence[Kind]) -> list[Kind | None]:
    """Of each kernel, the nearest one before it whose name says where it is."""
    found: list[Kind | None] = []
    near: Kind | None = None
    for kind in kinds:
        found.append(near)
        near = kind if kind in _PLACES else near
    return found


def _is_head(kinds: Sequence[Kind], before: Sequence[Kind | None], place: int) -> bool:
    """A product behind the last layer; that layer's output or down projection follows attention or activation."""
    return kinds[place] == "product" and before[place] not in ("attention", "activation", "experts")


def _operation(
    kinds: Sequence[Kind],
    before: Sequence[Kind | None],
    after: Sequence[Kind | None],
    place: int,
    marks: tuple[int, int, int],
) -> Operation:
    first, last, head = marks
    kind = kinds[place]
    if kind == "experts":
        return "experts down" if before[place] in ("activation", "experts", "gate_up") else "experts gate-up"
    if kind == "product":
        return "head" if place >= head else _product(before[place], after[place], outside=last < 0)
    if kind == "plain":
        if place < first:
            return "inputs"
        return "sampling" if place > last else "other"
    return _BY_NAME[kind]


def _product(before: Kind | None, after: Kind | None, *, outside: bool) -> Operation:
    """Which product stands between these two."""
    if outside:
        return "other"
    if after == "router":
        return "router"
    if before == "attention":
        return "output projection"
    if before == "activation":
        return "experts down" if after == "sort" else "dense down"
    if after == "activation":
        return "experts gate-up" if before in ("sort", "router") else "dense gate-up"
    if before in ("sort", "router", "experts") and after != "norm":
        return "experts gate-up"
    return "qkv projection"
