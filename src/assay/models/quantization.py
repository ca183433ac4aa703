"""From a quantization_config to the storage of each matrix.

What is quantized without being listed: the matrices of attention, feed-forward parts and experts. What is not: router,
embedding, norms, the head (but for compressed-tensors and ModelOpt, which list it when it is left alone), and the few
projections that no quantizer touches (`NEVER`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.models.config import Config
from assay.models.module_names import ModuleNames, ancestors, bare
from assay.models.pieces import Piece
from assay.models.quantization_methods import METHODS, Method, unknown_method
from assay.models.storages import BF16, BY_DTYPE
from assay.records.model_shape import Part, Storage

QUANTIZED: frozenset[Part] = frozenset(
    {"attention", "linear_attention", "indexer", "dense_ffn", "routed_experts", "shared_experts"}
)
NEVER = frozenset({"weights_proj", "eh_proj", "in_proj_ba", "in_proj_a", "in_proj_b"})


@dataclass(frozen=True, slots=True)
class Scheme:
    """How each piece of a model is stored."""

    base: Storage
    """Of what is not quantized."""
    default: Storage | None = None
    parts: frozenset[Part] = QUANTIZED
    skipped: ModuleNames = field(default_factory=lambda: ModuleNames([], ""))
    single: dict[str, Storage] = field(default_factory=dict)
    """Modules that are stored in a way of their own."""

    def __call__(self, layer: int | None, piece: Piece) -> Storage:
        """The storage of a piece; an `assay.models.assemble.Store`."""
        if piece.cols == 1 or piece.part == "vector" or piece.name in NEVER:
            return self.base
        module = piece.module if layer is None else f"layers.{layer}.{piece.module}"
        if self.single and (own := self._own(module)):
            return own
        if self.default is None or piece.part not in self.parts or module in self.skipped:
            return self.base
        return self.default

    def _own(self, module: str) -> Storage | None:
        return next((self.single[holder] for holder in ancestors(module) if holder in self.single), None)


def scheme(config: Config, quantization: Config | None = None) -> Scheme:
    """The scheme of a model.

    Args:
        config: the text model's configuration.
        quantization: what a file beside it says (hf_quant_config.json), used when config.json has nothing.
    """
    base = _base(config)
    told = config.child("quantization_config") or config.child("compression_config") or quantization
    if told is None or not told.data:
        return Scheme(base)
    method = (told.text("quant_method") or ("modelopt" if "quant_algo" in told else "none")).lower().replace("_", "-")
    return _scheme(METHODS.get(method, unknown_method)(told), base, told.file)


def _scheme(method: Method, base: Storage, file: str) -> Scheme:
    parts = QUANTIZED if method.parts is None else method.parts
    return Scheme(
        base=base,
        default=method.default,
        parts=parts | {"head"} if method.lists_head else parts,
        skipped=ModuleNames(method.skipped, file),
        single={bare(name): storage for name, storage in method.single.items()},
    )


def _base(config: Config) -> Storage:
    dtype = config.text("torch_dtype", "dtype")
    name = (dtype or "").removeprefix("torch.")
    if name in BY_DTYPE:
        return BY_DTYPE[name]
    if "quantization_config" not in config:
        told = "torch_dtype is missing" if dtype is None else f"torch_dtype {dtype[:20]!r} is not known"
        config.assume(f"weights are stored in BF16: {told}")
    return BF16
