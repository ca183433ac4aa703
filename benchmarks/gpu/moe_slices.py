"""The shapes that the kernel is measured at: ranks' shares of models' MoE layers."""

from __future__ import annotations

from dataclasses import dataclass

from assay.kernels.choose import Shape

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
SLOTS = 8


@dataclass(frozen=True)
class Slice:
    """A rank's share of a model's MoE layer; with fewer experts here than there are: expert parallelism."""

    name: str
    experts: int
    global_experts: int
    intermediate: int
    hidden: int

    def shape(self, dtype: str) -> Shape:
        return Shape(experts=self.experts, intermediate=self.intermediate, hidden=self.hidden, dtype=dtype)

    @property
    def mapped(self) -> int | None:
        return self.global_experts if self.global_experts != self.experts else None


SLICES = {
    "tp8": Slice("GLM-5 TP8", 256, 256, 256, 6144),
    "ep8": Slice("GLM-5 EP8", 32, 256, 2048, 6144),
    "qwen": Slice("Qwen3-30B-A3B", 128, 128, 768, 2048),
}
