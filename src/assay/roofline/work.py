"""What one kind of operation has to do in a step on the busiest rank, before any processor is named."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records.device import Collective
from assay.records.model_shape import Compute
from assay.roofline.efficiency import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One kind of operation: all its calls in a step together.

    The floor's part holds what cannot be avoided (weights once, cached tokens once, an even spread over expert ranks);
    the other part what kernels are expected to move and compute.
    """

    name: str
    part: str
    kind: Kind = "gemm"
    calls: int = 1
    flops: float = 0.0
    floor_flops: float = 0.0
    bytes: float = 0.0
    """Expected traffic with device memory."""
    floor_bytes: float = 0.0
    compute: Compute | None = None
    rows_per_expert: float | None = None
    """Grouped matmuls: tokens of each touched expert, which kernels round up to a tile."""
    collective: Collective | None = None
    world: int = 1
    message_bytes: float = 0.0
    """Of one call, what one rank contributes."""
    avoidable: bool = False
    """It could be fused into another operation, or left out: no floor."""

    def times(self, layers: int) -> Work:
        """The same in so many layers."""
        # Written out, because `dataclasses.replace` takes three times as long and a search makes ten thousands.
        return Work(
            name=self.name,
            part=self.part,
            kind=self.kind,
            calls=self.calls * layers,
            flops=self.flops * layers,
            floor_flops=self.floor_flops * layers,
            bytes=self.bytes * layers,
            floor_bytes=self.floor_bytes * layers,
            compute=self.compute,
            rows_per_expert=self.rows_per_expert,
            collective=self.collective,
            world=self.world,
            message_bytes=self.message_bytes,
            avoidable=self.avoidable,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one attention rank of a pipeline stage sees of an operating point."""

    sequences: float
    """Of its data-parallel group, in one micro-batch."""
    new_tokens: float
    """Of each sequence."""
    context_tokens: float
    all_sequences: float
    """Of all data-parallel groups in one micro-batch: what the experts see."""

    @property
    def tokens(self) -> float:
        """Tokens of its group in one micro-batch."""
        return self.sequences * self.new_tokens

    @property
    def all_tokens(self) -> float:
        """Tokens of all groups in one micro-batch."""
        return self.all_sequences * self.new_tokens
