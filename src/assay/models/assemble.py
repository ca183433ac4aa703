"""Skeletons and storages to shapes: layers that are alike become one group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.models.config import printable
from assay.models.pieces import Layer, Piece
from assay.models.skeleton import Skeleton
from assay.records.model_shape import Encoder, LayerGroup, ModelShape, Storage

LONGEST_NAME = 100
Store = Callable[[int | None, Piece], Storage]
"""How a piece of a layer is stored; None for what lies outside of the layers."""


def assemble(
    skeleton: Skeleton,
    store: Store,
    *,
    name: str,
    source: str,
    assumed: Sequence[str],
    encoders: Sequence[Encoder] = (),
) -> ModelShape:
    """The record of a model."""
    return ModelShape(
        name=printable(name, LONGEST_NAME),
        architecture=printable(skeleton.architecture, LONGEST_NAME),
        source=source,
        hidden=skeleton.hidden,
        vocab=skeleton.vocab,
        max_positions=skeleton.max_positions,
        num_experts=skeleton.num_experts,
        top_k=skeleton.top_k if skeleton.num_experts else 0,
        tied_embeddings=skeleton.tied,
        outer=[piece.stored(store(None, piece)) for piece in skeleton.outer],
        layers=grouped(skeleton.layers, store),
        draft_layers=grouped(skeleton.draft_layers, store, prefix="draft "),
        encoders=list(encoders),
        assumed=[printable(sentence) for sentence in assumed],
    )


def grouped(layers: Sequence[Layer], store: Store, prefix: str = "") -> list[LayerGroup]:
    """Alike layers counted once, in the order in which they first appear."""
    found: dict[tuple[object, ...], list[Layer]] = {}
    for layer in layers:
        storages = tuple(store(layer.index, piece) for piece in layer.pieces)
        found.setdefault((layer.mixer, layer.ffn, layer.attention, layer.pieces, storages), []).append(layer)
    names = _names([alike[0] for alike in found.values()])
    return [
        LayerGroup(
            name=prefix + name,
            count=len(alike),
            attention=alike[0].attention,
            matrices=[piece.stored(store(alike[0].index, piece)) for piece in alike[0].pieces],
        )
        for name, alike in zip(names, found.values(), strict=True)
    ]


def _names(layers: Sequence[Layer]) -> list[str]:
    """`dense`, `moe`; with the mixer where mixers differ: `sliding moe`; numbered where nothing else differs."""
    mixers_differ = len({layer.mixer for layer in layers}) > 1
    ffns_differ = len({layer.ffn for layer in layers}) > 1
    names: list[str] = []
    for layer in layers:
        words = [layer.mixer] if mixers_differ else []
        if ffns_differ or not mixers_differ or layer.ffn == "moe":
            words.append(layer.ffn)
        name = " ".join(words)
        alike = sum(known == name or known.startswith(f"{name} #") for known in names)
        names.append(f"{name} #{alike + 1}" if alike else name)
    return names
