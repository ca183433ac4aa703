"""The matmuls of a step on one rank: every matrix, fused as engines fuse them, and the routed experts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.records.estimate import Layout, Phase, Routing
from assay.records.model_shape import LOOKED_UP, Attention, Compute, Matrix, ModelShape
from assay.roofline import experts, sharding
from assay.roofline.work import Share, Work

ACTIVATION_BYTES = 2.0
"""Of one activation element: BF16."""
UNPACKED_BITS = 16
"""Weights of fewer bits are unpacked or scaled on the way: kernels read them more slowly."""
INPUT_BYTES: dict[Compute, float] = {"fp32": 2.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 4.5 / 8}
"""Of one input element of a matmul, quantized to the arithmetic it runs in."""


def outer(shape: ModelShape, layout: Layout, share: Share, phase: Phase, cache_bytes: float) -> Iterator[Work]:
    """The head, over every token in decode and the last one of each sequence in prefill; and the embedding's rows."""
    rows = share.tokens if phase == "decode" else share.sequences
    for matrix in shape.outer:
        if matrix.part == "head":
            yield _matmul("head", [matrix], None, layout, rows, cache_bytes)
    table = next((one for one in shape.outer if one.part in ("embedding", "head")), None)
    if table is not None:
        looked_up = share.tokens * shape.hidden * table.storage.bits_per_weight / 8
        yield Work(name="embedding.lookup", part="embedding", kind="elementwise", bytes=looked_up, avoidable=True)


def of_layer(
    matrices: Sequence[Matrix],
    attention: Attention | None,
    layout: Layout,
    share: Share,
    cache_bytes: float,
) -> Iterator[Work]:
    """Every matmul of one layer but the routed experts'."""
    kernels: dict[str, list[Matrix]] = {}
    for matrix in matrices:
        if matrix.part not in LOOKED_UP and matrix.part != "routed_experts":
            kernels.setdefault(sharding.kernel_name(matrix.name, matrix.part), []).append(matrix)
    for name, fused in kernels.items():
        yield _matmul(name, fused, attention, layout, share.tokens, cache_bytes)


def routed_experts(
    shape: ModelShape, matrices: Sequence[Matrix], layout: Layout, share: Share, routing: Routing, cache_bytes: float
) -> Iterator[Work]:
    """The grouped matmuls of one layer's routed experts on the busiest expert rank.

    Weights are read of every expert that some token chooses; with `ep` ranks, each holds experts / ep of them and the
    busiest more tokens than the mean. The floor takes an even spread over ranks, the fewest distinct experts, and no
    padding.
    """
    kernels: dict[str, list[Matrix]] = {}
    for matrix in matrices:
        if matrix.part == "routed_experts":
            kernels.setdefault(sharding.kernel_name(matrix.name, matrix.part), []).append(matrix)
    if not kernels:
        return
    load = experts.load(shape.num_experts, shape.top_k, share.all_tokens, layout.ep, routing)
    fewest = experts.fewest_distinct(shape.num_experts, shape.top_k, share.all_tokens, routing) / layout.ep
    for name, fused in kernels.items():
        shares = [sharding.expert_slice(matrix, layout) for matrix in fused]
        elements = sum(matrix.rows * matrix.cols * part for matrix, part in zip(fused, shares, strict=True))
        each, slices = sum(map(_one_copy_bytes, fused)), sharding.expert_slices(layout)
        padded = sum(_one_copy_bytes(matrix) * part for matrix, part in zip(fused, shares, strict=True))
        weights = load.busiest_rank_distinct * padded
        moved = load.busiest_rank_tokens * _moved_bytes(fused, shares)
        yield Work(
            name=name,
            part="routed_experts",
            kind="grouped_gemm" if _main(fused).storage.bits_per_weight >= UNPACKED_BITS else "grouped_gemm_packed",
            flops=2 * load.busiest_rank_tokens * elements,
            floor_flops=2 * load.mean_rank_tokens * sum(matrix.rows * matrix.cols for matrix in fused) / slices,
            bytes=weights + _spilled(moved, cache_bytes),
            floor_bytes=fewest * each / slices,
            compute=_main(fused).storage.compute,
            rows_per_expert=load.busiest_rank_tokens / max(load.busiest_rank_distinct, 1e-9),
        )


def _matmul(
    name: str,
    fused: Sequence[Matrix],
    attention: Attention | None,
    layout: Layout,
    rows: float,
    cache_bytes: float,
) -> Work:
    """One kernel over all outputs of the fused matrices: 2 * rows * parameters operations, every weight read once."""
    shares = [sharding.local_share(matrix, attention, layout) for matrix in fused]
    flops = 2 * rows * sum(matrix.active_parameters * part for matrix, part in zip(fused, shares, strict=True))
    weights = sum(matrix.weight_bytes * part for matrix, part in zip(fused, shares, strict=True))
    moved = rows * _moved_bytes(fused, shares)
    return Work(
        name=name,
        part=fused[0].part,
        flops=flops,
        floor_flops=flops,
        bytes=weights + _spilled(moved, cache_bytes),
        floor_bytes=weights,
        compute=_main(fused).storage.compute,
    )


def _moved_bytes(fused: Sequence[Matrix], shares: Sequence[float]) -> float:
    """What one token brings to a kernel (once for all its matrices) and takes from it; biases take nothing more."""
    main = _main(fused)
    inputs, _ = sharding.activations(main, shares[fused.index(main)])
    outputs = sum(
        sharding.activations(matrix, part)[1] for matrix, part in zip(fused, shares, strict=True) if matrix.cols > 1
    )
    return inputs * INPUT_BYTES[main.storage.compute] + outputs * ACTIVATION_BYTES


def _main(fused: Sequence[Matrix]) -> Matrix:
    """The matrix that decides the arithmetic: the largest; biases ride along."""
    return max(fused, key=lambda matrix: matrix.rows * matrix.cols)


def _one_copy_bytes(matrix: Matrix) -> float:
    return matrix.rows * matrix.cols * matrix.storage.bits_per_weight / 8


def _spilled(moved: float, cache_bytes: float) -> float:
    """Activations cost memory traffic only where the last-level cache cannot hold them until the next operation."""
    return moved if moved > cache_bytes / 2 else 0.0
