"""What every known mechanism could be worth at most at an operating point: Amdahl over the step's operations."""

from __future__ import annotations

from assay.records.device import Box
from assay.records.estimate import Layout, MechanismCeiling, StepEstimate
from assay.records.model_shape import ModelShape
from assay.roofline import ceilings as limits
from assay.roofline import mechanism_changes as changes
from assay.roofline import mechanism_communication as communication
from assay.roofline import mechanism_host as host
from assay.roofline import mechanism_kernels as kernels
from assay.roofline.calibration import Calibration
from assay.roofline.mechanism_scene import Mechanism, Scene

MECHANISMS: tuple[Mechanism, ...] = (
    changes.expert_parallel,
    communication.mscclpp,
    communication.one_shot,
    communication.quantized,
    communication.fused_norm,
    communication.single_batch_overlap,
    communication.two_batch_overlap,
    changes.dp_attention,
    kernels.persistent,
    kernels.expert_tiles,
    kernels.attention_backend,
    kernels.gemm_backend,
    kernels.l2_pinning,
    host.graphs,
    kernels.fusion,
    host.async_scheduling,
    changes.weights_fp8,
    changes.weights_fp4,
    changes.weights_int4,
    changes.cache_fp8,
    changes.speculation,
    changes.larger_batch,
    changes.chunked_prefill,
)


def ceilings(
    step: StepEstimate,
    shape: ModelShape,
    box: Box,
    layout: Layout,
    *,
    cache_bytes_per_element: float = 2.0,
    memory_fraction: float = 0.9,
    reserved_tokens: int | None = None,
    calibration: Calibration | None = None,
) -> list[MechanismCeiling]:
    """Every mechanism at this step: those that can act first, by what they could bring at most.

    Gains are of one mechanism alone; they do not add up, because two that touch the same time share it.

    Args:
        step: the baseline.
        shape: the model it was estimated for.
        box: the devices.
        layout: the layout.
        cache_bytes_per_element: of the step's cache.
        memory_fraction: part of the memory that the engine may use: what the cache holds depends on it.
        reserved_tokens: of the cache that each sequence has at its end; None: those of the step.
        calibration: the one that `step` was estimated with.
    """
    scene = _scene(step, shape, box, layout, cache_bytes_per_element, memory_fraction, reserved_tokens, calibration)
    found = [mechanism(scene) for mechanism in MECHANISMS]
    return sorted(found, key=lambda one: (not one.applies, -one.gain.high))


def controls(
    step: StepEstimate,
    shape: ModelShape,
    box: Box,
    layout: Layout,
    *,
    mixed: StepEstimate | None = None,
    prompts_per_step: float | None = None,
) -> list[MechanismCeiling]:
    """What it would cost to switch off what engines do by default: gains below zero, for the controls of a campaign.

    Args:
        step: of decode.
        shape: as of `ceilings`, and so are the next two.
        box: the devices.
        layout: the layout.
        mixed: the step with one prompt in it; None: the engine computes prompts apart.
        prompts_per_step: on average.
    """
    scene = _scene(step, shape, box, layout, 2.0, 0.9, None, None)
    return [
        host.serial_scheduling(scene),
        host.no_graphs(scene),
        host.graphs_for_decode_alone(scene, mixed, prompts_per_step),
    ]


def _scene(
    step: StepEstimate,
    shape: ModelShape,
    box: Box,
    layout: Layout,
    cache_bytes_per_element: float,
    memory_fraction: float,
    reserved_tokens: int | None,
    calibration: Calibration | None,
) -> Scene:
    return Scene(
        step=step,
        shape=shape,
        box=box,
        layout=layout,
        limits=limits.of(box.device),
        cache_bytes_per_element=cache_bytes_per_element,
        memory_fraction=memory_fraction,
        reserved_tokens=reserved_tokens or step.point.context_tokens + step.point.new_tokens,
        calibration=calibration,
    )
