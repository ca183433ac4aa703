"""How much of a device a measured run used: MBU and MFU."""

from __future__ import annotations

from assay.records.device import Box
from assay.records.estimate import StepEstimate
from assay.records.model_shape import ModelShape
from assay.roofline import ceilings


def mbu(step: StepEstimate, box: Box, measured_tokens_per_s: float) -> float:
    """Model bandwidth utilization of a measured run of this step.

    MBU = (bytes a step moves on the busiest device / measured time of a step) / peak memory bandwidth. Counted: weights
    that the step touches, cached tokens it reads, activations too large for the last-level cache. Not counted: bytes on
    links. The peak is the highest credible one (data sheet or measured).
    Source: Databricks, "LLM Inference Performance Engineering: Best Practices" (2023): achieved bandwidth over peak,
    achieved = (model parameters + KV cache) / TPOT; here with the experts that are touched instead of all parameters.
    """
    time_s = step.point.tokens / measured_tokens_per_s
    moved = sum(op.read_bytes for op in step.ops if op.collective is None)
    return moved / time_s / ceilings.of(box.device).read.peak


def mbu_at_floor(step: StepEstimate, box: Box) -> float:
    """MBU if every operation took its floor: how much of the floor is memory, at most 1.

    Counted are the bytes that the floor counts (the fewest experts, nothing that the last-level cache could keep), so
    that it is not comparable with `mbu` of a measured run, which counts the experts that are expected.
    """
    moved = sum(op.floor_bytes for op in step.ops if op.collective is None)
    return moved / step.floor_s / ceilings.of(box.device).read.peak if step.floor_s > 0 else 0.0


def mfu(shape: ModelShape, box: Box, tokens_per_s: float) -> float:
    """Model FLOPs utilization: time the matmuls would take at their peaks over the time they took.

    MFU = tokens/s * sum over active parameters of 2 / peak rate of their arithmetic / devices. The embedding is not
    counted (it is looked up), nor is attention's core: a lower bound at long contexts.
    Source: PaLM, arXiv 2204.02311, appendix B (there 6N for training; 2N for a forward pass), with one peak for each
    arithmetic instead of a single one.
    """
    limits = ceilings.of(box.device)
    seconds_per_token = sum(
        count * 2 * matrix.active_parameters / limits.flop[matrix.storage.compute].peak
        for count, matrix in shape.matrices()
        if matrix.part not in ("embedding", "vector")
    )
    return tokens_per_s * seconds_per_token / box.count
