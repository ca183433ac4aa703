"""What ranks have to tell each other in a step, by layout.

TP sums partial results after attention and after the feed-forward layer. Experts spread over ranks (EP) get their
tokens and send results back: by all-to-all over a fabric of NVLink's class, else by gathering all tokens and scattering
sums, or, where TP ranks hold the same tokens anyway, by the sum that TP makes. PP hands activations on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from assay.records.device import Box, Collective
from assay.records.estimate import Layout, Phase
from assay.records.model_shape import Matrix, ModelShape
from assay.roofline import communication
from assay.roofline.matmuls import ACTIVATION_BYTES
from assay.roofline.work import Share, Work

FP8_DISPATCH_BYTES = 1 + 4 / 128
"""An element sent to experts in FP8 with one FP32 scale per 128 (DeepEP's format)."""


def uses_all_to_all(box: Box, layout: Layout) -> bool:
    """Whether experts get their tokens by all-to-all: EP over a fabric, or where such a curve was measured."""
    known = any(curve.collective == "all_to_all" for curve in box.curves)
    return layout.ep > 1 and (communication.has_fabric(box) or known)


def of_layer(
    shape: ModelShape, box: Box, matrices: Sequence[Matrix], *, mixes: bool, layout: Layout, share: Share
) -> Iterator[Work]:
    """Collectives of one layer.

    Args:
        shape: the model.
        box: its fabric decides how experts get their tokens.
        matrices: of the layer.
        mixes: the layer has attention of some kind.
        layout: how the model is spread.
        share: what a rank sees.
    """
    token = shape.hidden * ACTIVATION_BYTES
    parts = {matrix.part for matrix in matrices}
    routed = "routed_experts" in parts
    spread = routed and layout.tp * layout.dp > 1
    all_to_all = spread and uses_all_to_all(box, layout)
    if mixes and layout.tp > 1:
        if all_to_all:
            yield _call("reduce_scatter", "attention", layout.tp, share.tokens * token)
            yield _call("all_gather", "experts", layout.tp, share.tokens / layout.tp * token)
        else:
            yield _call("all_reduce", "attention", layout.tp, share.tokens * token)
    if all_to_all:
        yield from _exchange(shape, matrices, layout, share)
    elif spread and layout.dp > 1:
        yield _call("all_gather", "tokens", layout.dp, share.tokens * token)
        yield _call("reduce_scatter", "experts", layout.tp * layout.dp, share.all_tokens * token)
        if layout.tp > 1:
            yield _call("all_gather", "experts", layout.tp, share.tokens / layout.tp * token)
    elif layout.tp > 1 and parts & {"dense_ffn", "routed_experts", "shared_experts"}:
        yield _call("all_reduce", "experts" if routed else "ffn", layout.tp, share.tokens * token)


def of_step(shape: ModelShape, layout: Layout, share: Share, phase: Phase) -> Iterator[Work]:
    """The embedding's sum and the gathering of logits (both avoidable), and what pipeline stages hand on."""
    token = shape.hidden * ACTIVATION_BYTES
    if layout.tp > 1:
        rows = share.tokens if phase == "decode" else share.sequences
        yield _call("all_reduce", "embedding", layout.tp, share.tokens * token, avoidable=True)
        yield _call(
            "all_gather", "logits", layout.tp, rows * shape.vocab / layout.tp * ACTIVATION_BYTES, avoidable=True
        )
    if layout.pp > 1:
        yield _call("point_to_point", "stages", 2, share.tokens * token, calls=layout.pp - 1)


def ranks_reached(num_experts: int, top_k: int, ranks: int) -> float:
    """Expected distinct ranks that a token's experts stand on: R * (1 - C(E - E/R, k) / C(E, k)), uniform routing."""
    held = num_experts // ranks
    missed = math.comb(num_experts - held, top_k) / math.comb(num_experts, top_k)
    return ranks * (1 - missed)


def _exchange(shape: ModelShape, matrices: Sequence[Matrix], layout: Layout, share: Share) -> Iterator[Work]:
    """Dispatch in FP8 when the experts compute in 8 or 4 bits, combine in BF16: each token to every rank it needs."""
    compute = next(matrix.storage.compute for matrix in matrices if matrix.part == "routed_experts")
    sent = FP8_DISPATCH_BYTES if compute in ("fp8", "fp4") else ACTIVATION_BYTES
    tokens = share.all_tokens / (layout.tp * layout.dp)
    elements = tokens * ranks_reached(shape.num_experts, shape.top_k, layout.ep) * shape.hidden
    yield _call("all_to_all", "dispatch", layout.ep, elements * sent)
    yield _call("all_to_all", "combine", layout.ep, elements * ACTIVATION_BYTES)


def _call(
    collective: Collective, what: str, world: int, message_bytes: float, *, calls: int = 1, avoidable: bool = False
) -> Work:
    return Work(
        name=f"{collective}.{what}",
        part="communication",
        calls=calls,
        bytes=communication.volume_factor(collective, world) * message_bytes * calls,
        collective=collective,
        world=world,
        message_bytes=message_bytes,
        avoidable=avoidable,
    )
