"""Tensors of a GGUF as pieces of a model: each stays itself, so that bytes add up to those of the file.

Source of the names: ggml-org/llama.cpp, gguf-py/gguf/constants.py (TENSOR_NAMES).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from assay.errors import UsageError
from assay.models.config import LARGEST
from assay.models.gguf_header import GgufTensor
from assay.models.gguf_types import TYPES
from assay.models.pieces import Piece
from assay.records.model_shape import Part

LAYER = re.compile(r"^blk\.(\d{1,5})\.(.+)$")
SINGLE_EXPERT = re.compile(r"^ffn_(?:gate|up|down)\.\d+\.")
VECTORS = re.compile(r"norm|ssm_conv1d|ssm_a$|ssm_d$|ssm_dt$|_lerp_|_scale$|rot_embd|rope_f")
NAMES: tuple[tuple[Part, str], ...] = (
    ("embedding", r"^token_embd|^position_embd|^per_layer_token_embd|^token_types|nextn\.embed_tokens"),
    ("head", r"^output\.|nextn\.shared_head_head"),
    ("router", r"ffn_gate_inp|altup_router"),
    ("shared_experts", r"_shexp"),
    ("routed_experts", r"exps"),
    ("indexer", r"^indexer\."),
    ("linear_attention", r"^ssm_|^time_mix_|^shortconv\."),
    ("attention", r"^attn_"),
    ("dense_ffn", r"^ffn_|^channel_mix_|nextn\.|^inp_gate|^proj|^laurel|^per_layer|^altup"),
)
PARTS = tuple((part, re.compile(pattern)) for part, pattern in NAMES)


def place(name: str) -> tuple[int | None, str]:
    """Layer (None: outside of the layers) and the name inside it."""
    match = LAYER.match(name)
    return (int(match[1]), match[2]) if match else (None, name)


def by_layer(tensors: Iterable[GgufTensor], file: str) -> dict[int | None, dict[str, GgufTensor]]:
    """Tensors by layer and name inside it, layers in order.

    Raises:
        UsageError: two have one name.
    """
    found: dict[int | None, dict[str, GgufTensor]] = {None: {}}
    for tensor in tensors:
        layer, name = place(tensor.name)
        if name in found.setdefault(layer, {}):
            raise UsageError(f"{file} has two tensors named {tensor.name[:80]!r}", hint="fetch the file again")
        found[layer][name] = tensor
    order = sorted(layer for layer in found if layer is not None)
    return {None: found[None], **{layer: found[layer] for layer in order}}


def piece(name: str, tensor: GgufTensor, *, stateful: bool, top_k: int, num_experts: int, file: str) -> Piece:
    """One tensor as a piece.

    Raises:
        UsageError: its shape or type cannot be.
    """
    _check(tensor, file)
    part = part_of(name, tensor)
    if part == "attention" and stateful:
        part = "linear_attention"
    sizes = [size for size in tensor.dimensions if size > 1] or [1]
    if SINGLE_EXPERT.match(name):
        rows, cols = tensor.elements // sizes[0], sizes[0]
        active = top_k / max(num_experts, 1)
        return Piece(name=name, part="routed_experts", rows=rows, cols=cols, active_copies=active)
    if part == "routed_experts":
        return _experts(name, tensor, top_k)
    if part == "vector":
        return Piece(name=name, part=part, rows=tensor.elements)
    copies = tensor.elements // (sizes[0] * sizes[1]) if len(sizes) > 1 else 1
    return Piece(
        name=name,
        part=part,
        rows=sizes[1] if len(sizes) > 1 else 1,
        cols=sizes[0],
        copies=copies,
        active_copies=copies,
    )


def part_of(name: str, tensor: GgufTensor) -> Part:
    """What a tensor belongs to, by its name; without a matmul it is a vector, experts' biases apart."""
    stem = name.removesuffix(".weight").removesuffix(".bias")
    found = next((part for part, pattern in PARTS if pattern.search(name)), None)
    if found == "routed_experts" and "norm" not in stem and len(tensor.dimensions) > 1:
        return found
    flat = sum(size > 1 for size in tensor.dimensions) < 2  # noqa: PLR2004 - a matrix has two sides
    if found in {"embedding", "head", "router", "shared_experts"} and name.endswith(".weight"):
        return "vector" if flat and found != "router" else found
    if flat or VECTORS.search(stem) or name.endswith(".bias"):
        return "vector"
    return found or "dense_ffn"


def is_known(name: str) -> bool:
    """Whether the name tells what the tensor belongs to."""
    return any(pattern.search(name) for _, pattern in PARTS) or VECTORS.search(name) is not None


def _experts(name: str, tensor: GgufTensor, top_k: int) -> Piece:
    """[inputs, outputs, experts], or [outputs, experts] for a bias."""
    *inner, copies = tensor.dimensions
    cols = inner[0] if len(inner) > 1 else 1
    return Piece(
        name=name,
        part="routed_experts",
        rows=tensor.elements // copies // cols,
        cols=cols,
        copies=copies,
        active_copies=min(top_k, copies),
    )


def _check(tensor: GgufTensor, file: str) -> None:
    if tensor.kind not in TYPES:
        raise UsageError(
            f"{file}: the tensor {tensor.name[:80]!r} has type {tensor.kind}, which is not known",
            hint="is the file of a fork of llama.cpp? convert it with a released one",
        )
    size = tensor.dimensions[0] if tensor.dimensions else 0
    if not 1 <= tensor.elements <= LARGEST**2 or size % TYPES[tensor.kind][1]:
        raise UsageError(
            f"{file}: the tensor {tensor.name[:80]!r} cannot have the shape {list(tensor.dimensions)}",
            hint="fetch the file again",
        )
