"""What a model is made of, as far as time and memory depend on it: matrices, attention, layers.

A model is a list of layer groups (alike layers counted once) and what lies outside of the layers. Everything else
(parameters, bytes, floating-point operations, cache) is arithmetic over it; `assay.roofline` does it.

>>> bf16 = Storage(name="bf16", bits_per_weight=16)
>>> Matrix(name="q_proj", part="attention", rows=4096, cols=2048, storage=bf16).parameters
8388608
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeVar

from pydantic import Field

from assay.records.base import Frozen

Number = TypeVar("Number", int, float)
Compute = Literal["fp32", "bf16", "fp8", "fp4", "int8"]
"""The arithmetic that a matmul with such weights runs in."""
Part = Literal[
    "embedding",
    "head",
    "attention",
    "linear_attention",
    "indexer",
    "dense_ffn",
    "router",
    "routed_experts",
    "shared_experts",
    "vector",
]
"""What a matrix belongs to. `vector` is everything without a matmul: norms, biases, sinks, convolution taps."""
LOOKED_UP: frozenset[Part] = frozenset({"embedding", "vector"})
"""Parts that no matmul reads whole."""


class Storage(Frozen):
    """How the weights of a matrix are stored, and what they are multiplied in."""

    name: str
    """bf16, fp8-block128, nvfp4, mxfp4, int4-g128, Q4_K ..."""
    bits_per_weight: float = Field(gt=0)
    """Stored bits per weight, scales and zero points included: 4.5 for NVFP4."""
    compute: Compute = "bf16"


class Matrix(Frozen):
    """One weight matrix of a layer, or several of one shape."""

    name: str
    part: Part
    rows: int = Field(ge=1)
    """Outputs."""
    cols: int = Field(ge=1)
    """Inputs; 1 for a vector."""
    copies: int = Field(default=1, ge=1)
    """How many there are: the number of experts for routed ones."""
    active_copies: float = Field(default=1.0, ge=0)
    """How many of them one token goes through: top-k for routed experts."""
    storage: Storage

    @property
    def parameters(self) -> int:
        """All copies."""
        return self.rows * self.cols * self.copies

    @property
    def active_parameters(self) -> float:
        """Parameters that one token's forward pass multiplies with."""
        return self.rows * self.cols * self.active_copies

    @property
    def weight_bytes(self) -> float:
        """Bytes of all copies as stored."""
        return self.parameters * self.storage.bits_per_weight / 8


class Indexer(Frozen):
    """The small attention that chooses which cached tokens the large one reads (DeepSeek-V3.2, GLM-5)."""

    heads: int = Field(ge=1)
    head_dim: int = Field(ge=1)
    top_k: int = Field(ge=1)
    """Cached tokens that the attention reads at most."""
    cache_bytes_per_token: float = Field(ge=0)
    """Its own keys, per token and layer: 132 for 128 FP8 values and a scale."""
    shared: bool = False
    """Takes the tokens that an earlier layer's indexer chose: no weights, keys or arithmetic of its own (GLM-5.2)."""


class Attention(Frozen):
    """The sequence mixer of a layer: what is cached, and what a token reads of it.

    `full`: heads read keys and values of every cached token, or of the last `window` ones. `mla`: one latent of
    `latent_rank + rope_dim` per token for all heads. `linear`: a state of constant size per sequence, no cache.
    """

    kind: Literal["full", "mla", "linear"]
    heads: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    qk_head_dim: int = Field(ge=1)
    v_head_dim: int = Field(ge=1)
    window: int | None = None
    """Tokens that a sliding window (or attention chunk) sees; None: all."""
    latent_rank: int | None = None
    """MLA's kv_lora_rank."""
    rope_dim: int | None = None
    """MLA's rotary part, cached beside the latent."""
    indexer: Indexer | None = None
    state_elements: int = 0
    """Linear attention: elements of the state per sequence and layer, convolution window included."""

    @property
    def cached_elements_per_token(self) -> int:
        """Elements that one token adds to the cache in one layer; 0 for linear attention."""
        if self.kind == "linear":
            return 0
        if self.kind == "mla":
            return (self.latent_rank or 0) + (self.rope_dim or 0)
        return self.kv_heads * (self.qk_head_dim + self.v_head_dim)


class LayerGroup(Frozen):
    """Layers that are alike."""

    name: str
    """`dense`, `moe`, `sliding`, `linear` ..."""
    count: int = Field(ge=1)
    attention: Attention | None
    matrices: list[Matrix]


class Encoder(Frozen):
    """What turns images into tokens: it is loaded beside the language model, and runs for images alone."""

    name: str
    """`vision`."""
    parameters: int = Field(ge=1)
    """With the projection to the text model."""
    weight_bytes: float = Field(gt=0)


class ModelShape(Frozen):
    """A model as its time and memory depend on it."""

    name: str
    architecture: str
    source: str
    """What it was read from: a path, or the name of our own data."""
    hidden: int = Field(ge=1)
    vocab: int = Field(ge=1)
    max_positions: int | None = None
    num_experts: int = 0
    top_k: int = 0
    """Routed experts that one token goes through."""
    tied_embeddings: bool = False
    """The head is the embedding: it then stands in `outer` once, as `head`, and is counted once."""
    outer: list[Matrix]
    """Outside of the layers: embedding, head, final norm."""
    layers: list[LayerGroup]
    draft_layers: list[LayerGroup] = Field(default_factory=list)
    """Multi-token-prediction layers; not in `parameters`, they run only when speculation uses them."""
    encoders: list[Encoder] = Field(default_factory=list)
    """Not in `parameters` nor in `weight_bytes`, which are the language model's; they take memory."""
    assumed: list[str] = Field(default_factory=list)
    """What the files did not say and was assumed, one sentence each; empty when nothing was."""

    @property
    def num_layers(self) -> int:
        """Layers of the main model."""
        return sum(group.count for group in self.layers)

    @property
    def is_moe(self) -> bool:
        """Has routed experts."""
        return self.num_experts > 0

    def matrices(self) -> Iterator[tuple[int, Matrix]]:
        """Every matrix of the main model with the number of layers that have it."""
        yield from ((1, matrix) for matrix in self.outer)
        for group in self.layers:
            yield from ((group.count, matrix) for matrix in group.matrices)

    @property
    def parameters(self) -> int:
        """All parameters of the main model."""
        return sum(count * matrix.parameters for count, matrix in self.matrices())

    @property
    def active_parameters(self) -> float:
        """Parameters that one token goes through: everything but experts not chosen; the embedding counts in full."""
        return sum(
            count * (matrix.parameters if matrix.part in LOOKED_UP else matrix.active_parameters)
            for count, matrix in self.matrices()
        )

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights as stored."""
        return sum(count * matrix.weight_bytes for count, matrix in self.matrices())

    def parameters_by_part(self) -> dict[str, int]:
        """Parameters of each part."""
        return _by_part((matrix.part, count * matrix.parameters) for count, matrix in self.matrices())

    def weight_bytes_by_part(self) -> dict[str, float]:
        """Bytes of each part as stored."""
        return _by_part((matrix.part, count * matrix.weight_bytes) for count, matrix in self.matrices())

    def cache_bytes_per_token(self, bytes_per_element: float = 2.0, *, with_indexer: bool = True) -> float:
        """Bytes that one token adds to the cache of the whole model, windows not yet full.

        Args:
            bytes_per_element: 2 for BF16, 1 for FP8.
            with_indexer: count the indexer's keys, which have a format of their own.
        """
        total = 0.0
        for group in self.layers:
            if group.attention is None:
                continue
            total += group.count * group.attention.cached_elements_per_token * bytes_per_element
            if with_indexer and group.attention.indexer:
                total += group.count * group.attention.indexer.cache_bytes_per_token
        return total


def _by_part(items: Iterable[tuple[str, Number]]) -> dict[str, Number]:
    total: dict[str, Number] = {}
    for part, value in items:
        total[part] = total[part] + value if part in total else value
    return total
