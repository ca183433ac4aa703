"""The grouped matmuls that one rank's experts are, read off a model and a layout.

>>> from assay.records.estimate import Layout
>>> from assay.models import load
>>> rank_shape(load("glm-5"), Layout(tp=8, ep=8)).told
'32 of 256 experts, hidden 6144, width 2048, top-8, bf16'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from assay.errors import UsageError
from assay.records.estimate import Layout
from assay.records.model_shape import Matrix, ModelShape
from assay.roofline import sharding

Dtype = Literal["bf16", "fp8"]
BYTES: dict[Dtype, float] = {"bf16": 2.0, "fp8": 1.0}
FP8_BLOCK = 128
"""Rows and columns of weights that share a scale: DeepSeek's and GLM's FP8 checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertShape:
    """One rank's part of one layer's routed experts."""

    model: str
    layout: str
    experts: int
    """Of the layer, over all ranks."""
    local_experts: int
    """Of them on this rank: all under TP, a part under EP."""
    top_k: int
    hidden: int
    width: int
    """Of the intermediate layer on this rank: gate and up have so many rows each, down so many columns."""
    dtype: Dtype
    layers: int
    """Layers of the model that have experts."""

    @property
    def expert_bytes(self) -> float:
        """Weights of one expert's three matrices; scales of FP8 blocks included."""
        elements = 3 * self.hidden * self.width
        scales = 4 * elements / FP8_BLOCK**2 if self.dtype == "fp8" else 0.0
        return BYTES[self.dtype] * elements + scales

    @property
    def pair_flops(self) -> float:
        """Operations of one token in one of its experts: 2 * 3 * hidden * width."""
        return 6.0 * self.hidden * self.width

    @property
    def told(self) -> str:
        """In words."""
        held = f"{self.local_experts} of {self.experts}" if self.local_experts < self.experts else f"{self.experts}"
        return f"{held} experts, hidden {self.hidden}, width {self.width}, top-{self.top_k}, {self.dtype}"

    def as_job(self) -> dict[str, Any]:
        """As programs read it."""
        return asdict(self)


def rank_shape(model: ModelShape, layout: Layout, dtype: Dtype | None = None) -> ExpertShape:
    """What one rank computes.

    Args:
        model: with routed experts.
        layout: which rank's slice.
        dtype: of the weights; None: the model's own where the lab has kernels for it.

    Raises:
        UsageError: no routed experts, a layout that does not divide them, or weights the lab has no kernels for.
    """
    experts, layers = _experts_of(model)
    down = next((one for one in experts if sharding.kernel_name(one.name, one.part).endswith(".down")), None)
    if down is None:
        raise UsageError(f"{model.name} has no down projection of routed experts", hint="name a model with experts")
    slices = sharding.expert_slices(layout)
    if layout.ep < 1 or slices < 1 or model.num_experts % layout.ep or (layout.tp * layout.dp) % layout.ep:
        raise UsageError(
            f"{layout.name} does not divide the {model.num_experts} experts of {model.name}",
            hint="ep divides tp * dp and the number of experts: tp8, or tp8,ep8",
        )
    width = round(down.cols * sharding.expert_slice(down, layout))
    return ExpertShape(
        model=model.name,
        layout=layout.name,
        experts=model.num_experts,
        local_experts=model.num_experts // layout.ep,
        top_k=model.top_k,
        hidden=model.hidden,
        width=width,
        dtype=dtype or _dtype(down),
        layers=layers,
    )


def _experts_of(model: ModelShape) -> tuple[Sequence[Matrix], int]:
    """Matrices of the routed experts of the most frequent kind of layer, and how many layers have any."""
    groups = [
        (group.count, [one for one in group.matrices if one.part == "routed_experts" and one.cols > 1])
        for group in model.layers
    ]
    held = [(count, matrices) for count, matrices in groups if matrices]
    if not model.is_moe or not held:
        raise UsageError(
            f"{model.name} has no routed experts", hint="`assay estimate --list` names models; take an MoE"
        )
    return max(held, key=lambda pair: pair[0])[1], sum(count for count, _ in held)


def _dtype(matrix: Matrix) -> Dtype:
    """BF16 and FP8 as they are; 4-bit weights are priced in FP8, which the lab's kernels have."""
    return "bf16" if matrix.storage.compute in ("bf16", "fp32") else "fp8"
