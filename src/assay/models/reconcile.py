"""Weight files against config.json: the bytes of the files are taken, and differences are said.

Both sides are compared part by part in each layer (attention, routed experts, ...): names of tensors differ from
engine to engine, what they belong to does not. Within a part the split follows config.json.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from assay.models.assemble import Store
from assay.models.pieces import Layer, Piece
from assay.models.safetensors import Folder, Tensor
from assay.models.skeleton import Skeleton
from assay.models.storages import BF16, FP8, FP16, FP32
from assay.records.model_shape import Storage

Place = tuple[int | None, str]
"""Layer and part; None: outside of the layers."""
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.(.*)$")
EXPERT = re.compile(r"experts\.\d+\.")
OTHER_MODALITY = re.compile(r"(?:^|\.)(?:vision|visual|audio|image|multi_modal|mm_projector|embed_vision)")
PARTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (part, re.compile(pattern))
    for part, pattern in (
        ("other", r"attn\.(?:masked_)?bias$|inv_freq$"),  # buffers that old checkpoints hold: masks, frequencies
        ("shared_experts", r"shared_experts?\."),
        ("routed_experts", r"experts\."),
        ("vector", r"norm|(?:^|\.)ln_|\.bias$|_bias$|sinks|A_log|dt_bias|conv1d|correction_bias"),
        ("indexer", r"indexer"),
        ("attention", r"attn|attention|mixer"),
        ("router", r"router|gate\.(?:weight|wg)|shared_expert_gate"),
        ("dense_ffn", r"mlp|feed_forward|block_sparse_moe|eh_proj|(?:^|\.)fc\."),
        ("embedding", r"embed|wte|wpe"),
        ("head", r"head"),
    )
)
PLAIN = {"BF16": BF16, "F16": FP16, "F32": FP32, "F8_E4M3": FP8, "F8_E5M2": FP8}
TOLD_FROM = 0.02
"""Scales and padding of less than this share of a part are taken from the files without a word."""


def reconciled(
    skeleton: Skeleton, store: Store, folder: Folder, encoder_bytes: float = 0.0
) -> tuple[Skeleton, Store, list[str]]:
    """The skeleton and storages that agree with the files, and what had to be changed for that."""
    said: list[str] = []
    if folder.names:
        skeleton = _as_named(skeleton, folder.names, said)
    if folder.missing:
        said.append(
            f"{len(folder.missing)} weight files of the index are not here ({folder.missing[0]} ...): bytes are "
            "those that config.json implies"
        )
    if not folder.tensors:
        return skeleton, store, [*said, *_against_total(skeleton, store, folder.total_bytes, encoder_bytes)]
    scales = _Scales(skeleton, store, folder.tensors)
    return skeleton, scales.store, [*said, *scales.said()]


def _as_named(skeleton: Skeleton, names: frozenset[str], said: list[str]) -> Skeleton:
    """Draft layers and head are there when a tensor of theirs is."""
    places = {_place(name, len(skeleton.layers)) for name in names}
    layers_there = {layer for layer, _ in places if layer is not None}
    if skeleton.draft_layers and not any(layer.index in layers_there for layer in skeleton.draft_layers):
        said.append(f"the {len(skeleton.draft_layers)} draft layers of config.json are not in the weight files")
        skeleton = replace(skeleton, draft_layers=())
    if not skeleton.tied and (None, "head") not in places:
        said.append("there is no head in the weight files: it is the embedding")
        outer = tuple(piece for piece in skeleton.outer if piece.name != "embed_tokens")
        skeleton = replace(skeleton, tied=True, outer=outer)
    return skeleton


def _against_total(skeleton: Skeleton, store: Store, total_bytes: int | None, encoder_bytes: float) -> list[str]:
    if total_bytes is None:
        return []
    implied = sum(_implied(skeleton, store).values()) + encoder_bytes
    if abs(implied / total_bytes - 1) < TOLD_FROM:
        return []
    return [f"the index says {total_bytes:,} bytes of weights, config.json implies {implied:,.0f}"]


def _implied(skeleton: Skeleton, store: Store) -> dict[Place, float]:
    """Bytes of each part of each layer by config.json."""
    found: dict[Place, float] = defaultdict(float)
    for piece in skeleton.outer:
        found[None, _bucket(piece)] += _piece_bytes(piece, store(None, piece))
    for layer in (*skeleton.layers, *skeleton.draft_layers):
        for piece in layer.pieces:
            found[layer.index, _bucket(piece)] += _piece_bytes(piece, store(layer.index, piece))
    return dict(found)


def _piece_bytes(piece: Piece, storage: Storage) -> float:
    return piece.rows * piece.cols * piece.copies * storage.bits_per_weight / 8


def _bucket(piece: Piece) -> str:
    """Files do not tell linear attention from the other sort by name."""
    return "attention" if piece.part == "linear_attention" else piece.part


def _place(name: str, num_layers: int) -> Place:
    """Where a tensor belongs; `other` for what is no part of the text model."""
    if OTHER_MODALITY.search(name):
        return None, "other"
    in_draft = name.startswith("mtp.")
    match = LAYER.search(name)
    if match is None:
        return (num_layers, _part(name)) if in_draft else (None, _part(name))
    layer = int(match[1]) if len(match[1]) < 6 else num_layers  # noqa: PLR2004 - no model has 100,000 layers
    return layer + (num_layers if in_draft else 0), _part(EXPERT.sub("experts.", match[2]))


@lru_cache(maxsize=4096)
def _part(name: str) -> str:
    return next((part for part, pattern in PARTS if pattern.search(name)), "other")


class _Scales:
    """Bytes of the files over bytes that config.json implies, for each part of each layer."""

    def __init__(self, skeleton: Skeleton, store: Store, tensors: Iterable[Tensor]) -> None:
        self.base = store
        self.implied = _implied(skeleton, store)
        self.held: dict[Place, float] = defaultdict(float)
        self.dtypes: dict[Place, set[str]] = defaultdict(set)
        self.elements: dict[Place, int] = defaultdict(int)
        count = len(skeleton.layers)
        for tensor in tensors:
            place = _place(tensor.name, count)
            if place == (None, "embedding") and skeleton.tied:
                place = (None, "head")
            self.held[place] += tensor.size_bytes
            self.elements[place] += tensor.elements
            self.dtypes[place].add(tensor.dtype)
        self.parameters = _parameters(skeleton)

    def store(self, layer: int | None, piece: Piece) -> Storage:
        """The storage by config.json, with the bits that the files have."""
        place = (layer, _bucket(piece))
        storage, held, implied = self.base(layer, piece), self.held.get(place, 0.0), self.implied[place]
        if held in {0, implied}:
            return storage
        plain = self._plain(place)
        if plain and piece.part != "vector":
            return plain
        return storage.model_copy(update={"bits_per_weight": storage.bits_per_weight * held / implied})

    def _plain(self, place: Place) -> Storage | None:
        """One dtype for the whole part, and as many elements as parameters: nothing is left to config.json."""
        if len(self.dtypes[place]) != 1 or self.elements[place] != self.parameters.get(place):
            return None
        return PLAIN.get(next(iter(self.dtypes[place])))

    def said(self) -> list[str]:
        """Parts whose bytes differ by more than scales explain, and bytes that belong to no part."""
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for place, implied in self.implied.items():
            sums[place[1]][0] += self.held.get(place, 0.0)
            sums[place[1]][1] += implied
        found = [
            f"{part}: the weight files hold {held:,.0f} bytes and are believed, config.json implies {implied:,.0f}"
            if held
            else f"{part}: no tensor of it was found in the weight files; {implied:,.0f} bytes are from config.json"
            for part, (held, implied) in sums.items()
            if abs(held / implied - 1) > TOLD_FROM
        ]
        left = sum(held for place, held in self.held.items() if place not in self.implied)
        if left:
            found.append(f"{left:,.0f} bytes of the weight files are no part of the model as read, and not counted")
        return found


def _parameters(skeleton: Skeleton) -> dict[Place, int]:
    found: dict[Place, int] = defaultdict(int)
    every: Iterable[Layer] = (*skeleton.layers, *skeleton.draft_layers)
    for layer, pieces in [(None, skeleton.outer), *((layer.index, layer.pieces) for layer in every)]:
        for piece in pieces:
            found[layer, _bucket(piece)] += piece.rows * piece.cols * piece.copies
    return found
