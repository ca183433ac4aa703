"""How long a rank's experts take at best: distinct weights and activations over bandwidth, operations over rate."""

from __future__ import annotations

from dataclasses import dataclass

from assay.lab.shapes import BYTES, ExpertShape
from assay.records.estimate import Routing
from assay.roofline import experts
from assay.roofline.ceilings import Ceilings

ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """At one number of tokens."""

    tokens: int
    distinct: float
    """Experts of this rank that some token chooses: expected, or counted where routing was drawn."""
    pairs: float
    """Token-expert pairs on this rank."""
    memory_s: float
    compute_s: float

    @property
    def floor_s(self) -> float:
        """The larger of the two."""
        return max(self.memory_s, self.compute_s)

    @property
    def bound(self) -> str:
        """Which it is."""
        return "memory" if self.memory_s >= self.compute_s else "compute"


def expected(shape: ExpertShape, tokens: int, limits: Ceilings, routing: Routing) -> Floor:
    """Before anything is drawn: expected distinct experts on an average rank."""
    ranks = max(1, shape.experts // shape.local_experts)
    load = experts.load(shape.experts, shape.top_k, tokens, ranks, routing)
    return at(shape, tokens, load.mean_rank_distinct, load.mean_rank_tokens, limits)


def at(shape: ExpertShape, tokens: int, distinct: float, pairs: float, limits: Ceilings) -> Floor:
    """With so many distinct experts and pairs.

    memory = (distinct * bytes of an expert + activations) / read bandwidth, with activations = tokens read and written
    once (hidden elements of 2 bytes). What goes from one matmul to the next is left out: a fused kernel keeps it.
    """
    moved = distinct * shape.expert_bytes + 2 * ACTIVATION_BYTES * tokens * shape.hidden
    rate = limits.flop[shape.dtype]
    return Floor(
        tokens=tokens,
        distinct=distinct,
        pairs=pairs,
        memory_s=moved / limits.read.reached.mid,
        compute_s=pairs * shape.pair_flops / rate.reached.mid,
    )


def busiest_share(shape: ExpertShape, tokens: int, routing: Routing) -> tuple[float, float]:
    """Distinct experts and pairs on the busiest rank over those on an average one: what EP waits for; 1 under TP."""
    ranks = max(1, shape.experts // shape.local_experts)
    load = experts.load(shape.experts, shape.top_k, tokens, ranks, routing)
    return load.busiest_rank_distinct / load.mean_rank_distinct, load.busiest_rank_tokens / load.mean_rank_tokens


def element_bytes(shape: ExpertShape) -> float:
    """Of one weight and of one input of the product."""
    return BYTES[shape.dtype]
