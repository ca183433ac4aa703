"""The same model with its weights stored otherwise."""

from __future__ import annotations

from assay.records.model_shape import LayerGroup, Matrix, ModelShape, Part, Storage

QUANTIZED: frozenset[Part] = frozenset(
    {"attention", "linear_attention", "dense_ffn", "routed_experts", "shared_experts"}
)
"""Parts that quantized checkpoints store in fewer bits; embedding, head, routers and indexers stay as they are."""
STORAGES = {
    one.name: one
    for one in (
        Storage(name="bf16", bits_per_weight=16),
        Storage(name="fp8-block128", bits_per_weight=8 + 32 / 128**2, compute="fp8"),
        Storage(name="int4-g128", bits_per_weight=4 + 20 / 128),
        Storage(name="nvfp4", bits_per_weight=4.5, compute="fp4"),
    )
}
"""Blocks of 128 x 128 share an FP32 scale; groups of 128 a BF16 scale and a 4-bit zero point; 16 an FP8 scale."""


def stored_as(shape: ModelShape, storage: Storage) -> ModelShape:
    """The model with every quantizable matrix in that format, unless it has fewer bits already."""
    return shape.model_copy(update={"layers": [_group(group, storage) for group in shape.layers]})


def would_shrink(shape: ModelShape, storage: Storage) -> bool:
    """Whether that format stores some quantizable matrix in clearly fewer bits."""
    return any(_shrinks(matrix, storage) for group in shape.layers for matrix in group.matrices)


def _group(group: LayerGroup, storage: Storage) -> LayerGroup:
    return group.model_copy(update={"matrices": [_matrix(matrix, storage) for matrix in group.matrices]})


def _matrix(matrix: Matrix, storage: Storage) -> Matrix:
    return matrix.model_copy(update={"storage": storage}) if _shrinks(matrix, storage) else matrix


def _shrinks(matrix: Matrix, storage: Storage) -> bool:
    clearly = 1.1
    return matrix.part in QUANTIZED and matrix.storage.bits_per_weight > clearly * storage.bits_per_weight
