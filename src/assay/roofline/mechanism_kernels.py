"""Mechanisms that make kernels faster, or fewer."""

from __future__ import annotations

import math

from assay.records.estimate import MechanismCeiling, Range
from assay.roofline.mechanism_scene import About, Scene, fastest, fixed_s, floors, ms, size, total

PERSISTING_SHARE = 0.75
"""Part of the L2 that CUDA lets a program set aside for persisting accesses (CUDA programming guide, L2 set-aside)."""
TILE_COLS = 128
"""Columns of a grouped GEMM's tile, to count waves with. Assumed."""
TILE_ROWS = 64


def persistent(scene: Scene) -> MechanismCeiling:
    """One launch whose blocks loop over tiles: no gaps between kernels, no last wave half empty."""
    touched = [op for op in scene.step.ops if op.collective is None]
    about = About(id="persistent-kernel", title="Persistent kernels, megakernel", touched=touched, scene=scene)
    gaps = fixed_s(scene, touched)
    experts = scene.ops("routed_experts")
    tails = max(0.0, total(experts) - fastest(experts))
    calls = sum(op.calls for op in touched)
    words = f"{calls:,} kernels lose {ms(gaps)} starting and draining ({gaps / scene.time_s:.0%} of the step)"
    if experts:
        words += f"; the experts' usual kernels take {ms(tails)} longer than fast ones{_waves(scene)}"
    return about.saves(Range(low=0.0, mid=0.4 * gaps + 0.25 * tails, high=gaps + tails), words)


def _waves(scene: Scene) -> str:
    """How the experts' tiles fall on the processors, of one kernel of a layer."""
    fact = scene.box.device.fact("sms")
    if fact is None or scene.step.experts_hit is None or not scene.shape.is_moe:
        return ""
    outputs = max((one.rows for _, one in scene.shape.matrices() if one.name.startswith("up")), default=0)
    slices = scene.layout.tp * scene.layout.dp / scene.layout.ep
    rows = math.ceil((scene.step.tokens_per_expert or 1) / TILE_ROWS)
    tiles = scene.step.experts_hit / scene.layout.ep * rows * math.ceil(max(1, 2 * outputs / slices) / TILE_COLS)
    waves = tiles / fact.value
    return f" ({waves:.1f} waves of {TILE_ROWS}x{TILE_COLS} tiles on {fact.value:.0f} SMs)" if waves else ""


def expert_tiles(scene: Scene) -> MechanismCeiling:
    """Tuned tiles or another back end for the grouped matmuls."""
    touched = scene.ops("routed_experts")
    about = About(id="moe-kernel-tuning", title="MoE kernels: back end and tile tuning", touched=touched, scene=scene)
    if not touched:
        return about.inert("the model has no routed experts")
    return _towards_floor(about, "grouped matmuls")


def attention_backend(scene: Scene) -> MechanismCeiling:
    """Another attention kernel."""
    touched = scene.ops("attention_core", "indexer.scores")
    about = About(id="attention-backend", title="Attention back end", touched=touched, scene=scene)
    return _towards_floor(about, "attention kernels")


def gemm_backend(scene: Scene) -> MechanismCeiling:
    """Another library for the dense matmuls."""
    touched = scene.ops("attention", "linear_attention", "dense_ffn", "shared_experts", "router", "indexer", "head")
    touched = [op for op in touched if op.name != "indexer.scores"]
    about = About(id="gemm-backend", title="GEMM back end (FP8, FP4, BF16)", touched=touched, scene=scene)
    return _towards_floor(about, "dense matmuls")


def _towards_floor(about: About, what: str) -> MechanismCeiling:
    """From usual kernels to fast ones, at most to the floor."""
    touched = about.touched
    if not total(touched):
        return about.inert(f"{what} take no time here")
    return about.saves(
        Range(low=0.0, mid=0.5 * (total(touched) - fastest(touched)), high=total(touched) - floors(touched)),
        f"{what} are expected to take {ms(total(touched))}; their floor is {ms(floors(touched))}",
    )


def fusion(scene: Scene) -> MechanismCeiling:
    """Passes over activations fused into each other or into matmuls."""
    touched = scene.ops("elementwise", "embedding")
    about = About(id="torch-compile", title="torch.compile and fused passes", touched=touched, scene=scene)
    whole = total(touched)
    return about.saves(
        Range(low=0.0, mid=0.3 * whole, high=whole),
        f"norms, rotary embedding, activations, routing and quantization take {ms(whole)} in "
        f"{sum(op.calls for op in touched):,} kernels",
    )


def l2_pinning(scene: Scene) -> MechanismCeiling:
    """Part of what each step reads again kept in the L2."""
    touched = [op for op in scene.step.ops if op.bound == "memory" and op.collective is None and op.floor_s > 0]
    about = About(id="l2-persistence", title="L2 pinning", touched=touched, scene=scene)
    cache = scene.limits.cache_bytes
    moved = sum(op.read_bytes for op in touched) / scene.layout.pp
    if not cache:
        return about.inert("the size of the last-level cache is unknown")
    if not moved:
        return about.inert("nothing in this step is bound by memory")
    kept = min(1.0, PERSISTING_SHARE * cache / moved)
    saved = kept * total(touched)
    return about.saves(
        Range(low=0.0, mid=0.25 * saved, high=saved),
        f"between two uses of a weight a rank reads {size(moved)}, and {size(PERSISTING_SHARE * cache)} of L2 can be "
        f"set aside: {kept:.2%} of it{_layer_words(scene, cache)}",
    )


def _layer_words(scene: Scene, cache: float) -> str:
    experts = scene.ops("routed_experts")
    layers = max((op.calls for op in experts), default=0)
    if not layers:
        return ""
    one = sum(op.read_bytes for op in experts) / layers
    return f"; one layer's experts are {size(one)}, the L2 {size(cache)}"
