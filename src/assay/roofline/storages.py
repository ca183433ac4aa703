"""Formats of weights, and the same model with its weights in other ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from assay.records.model_shape import LayerGroup, Matrix, ModelShape, Part, Storage

QUANTIZED: frozenset[Part] = frozenset(
    {"attention", "linear_attention", "dense_ffn", "routed_experts", "shared_experts"}
)
"""Parts that quantized checkpoints store in fewer bits; embedding, head, routers and indexers stay as they are."""
FORMATS = {
    one.name: one
    for one in (
        Storage(name="bf16", bits_per_weight=16),
        Storage(name="f16", bits_per_weight=16),
        # Scales per tensor or channel: none to speak of.
        Storage(name="fp8", bits_per_weight=8, compute="fp8"),
        # Blocks of 128 x 128 share an FP32 scale.
        Storage(name="fp8-block128", bits_per_weight=8 + 32 / 128**2, compute="fp8"),
        Storage(name="int8", bits_per_weight=8),
        # Groups of 128 share a BF16 scale and a 4-bit zero point; of 32, a scale and a zero point in BF16.
        Storage(name="int4-g128", bits_per_weight=4 + 20 / 128),
        Storage(name="int4-g32", bits_per_weight=5),
        # 16 weights share an FP8 scale; 32 a scale of 8 bits.
        Storage(name="nvfp4", bits_per_weight=4.5, compute="fp4"),
        Storage(name="mxfp4", bits_per_weight=4.25, compute="fp4"),
        Storage(name="mxfp4-bf16", bits_per_weight=4.25),
        Storage(name="q8_0", bits_per_weight=8.5, compute="int8"),
        # Of a whole Llama 3 8B file: 4.58 GiB for 8.03 B parameters.
        Storage(name="q4_k_m", bits_per_weight=4.9, compute="int8"),
    )
}
"""Formats by name. Weight-only formats multiply in BF16; GGUF's on GPUs in INT8."""
STORAGES = {name: FORMATS[name] for name in ("bf16", "fp8-block128", "int4-g128", "nvfp4")}
"""Those that a checkpoint would be converted to: what a search considers."""


def stored_as(shape: ModelShape, storage: Storage) -> ModelShape:
    """The model with every quantizable matrix in that format, unless it has fewer bits already."""
    return _with(shape, lambda matrix: storage if _shrinks(matrix, storage) else None)


def stored_by_part(shape: ModelShape, formats: Mapping[str, str]) -> ModelShape:
    """The model with its weights in the formats named for each part, in more bits or fewer.

    Args:
        shape: the model.
        formats: names of `FORMATS` by part; `default` stands for every part of `QUANTIZED`.
    """
    if not formats:
        return shape
    return _with(shape, lambda matrix: _named(matrix, formats))


def without_indexer(shape: ModelShape) -> ModelShape:
    """The model as engines run it that ignore its indexer: attention reads the whole cache."""
    groups = []
    for group in shape.layers:
        if group.attention is not None and group.attention.indexer is not None:
            attention = group.attention.model_copy(update={"indexer": None})
            matrices = [matrix for matrix in group.matrices if matrix.part != "indexer"]
            group = group.model_copy(update={"attention": attention, "matrices": matrices})  # noqa: PLW2901
        groups.append(group)
    return shape.model_copy(update={"layers": groups})


def would_shrink(shape: ModelShape, storage: Storage) -> bool:
    """Whether that format stores some quantizable matrix in clearly fewer bits."""
    return any(_shrinks(matrix, storage) for group in shape.layers for matrix in group.matrices)


def _with(shape: ModelShape, choose: Callable[[Matrix], Storage | None]) -> ModelShape:
    def matrix(one: Matrix) -> Matrix:
        storage = choose(one)
        return one if storage is None else one.model_copy(update={"storage": storage})

    def group(one: LayerGroup) -> LayerGroup:
        return one.model_copy(update={"matrices": [matrix(each) for each in one.matrices]})

    return shape.model_copy(
        update={"layers": [group(one) for one in shape.layers], "outer": [matrix(one) for one in shape.outer]}
    )


def _named(matrix: Matrix, formats: Mapping[str, str]) -> Storage | None:
    if matrix.cols == 1:  # biases stay
        return None
    name = formats.get(matrix.part, formats.get("default") if matrix.part in QUANTIZED else None)
    return None if name is None else FORMATS[name]


def _shrinks(matrix: Matrix, storage: Storage) -> bool:
    clearly = 1.1
    if matrix.part not in QUANTIZED or matrix.cols == 1:  # biases stay
        return False
    return matrix.storage.bits_per_weight > clearly * storage.bits_per_weight
