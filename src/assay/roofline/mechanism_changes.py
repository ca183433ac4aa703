"""Mechanisms that change layout, formats or batch: the step is estimated once more."""

from __future__ import annotations

from assay.records.estimate import Layout, MechanismCeiling, OpTime, Range
from assay.roofline import layouts, storages
from assay.roofline.layout_choice import missing_bytes
from assay.roofline.mechanism_scene import About, Scene, ms, size, total
from assay.roofline.serving import MAX_STEP_TOKENS

DRAFT_TOKENS = 3
"""Tokens drafted ahead of each verification."""
ACCEPTED = Range(low=1.7, mid=2.4, high=float(DRAFT_TOKENS + 1))
"""Tokens that one verification yields. Source of the middle: 2.2-2.8 with GLM-5's own MTP layer (voipmonitor/rtx6kpro,
models/glm5.md); the ceiling takes every draft as accepted."""


def expert_parallel(scene: Scene) -> MechanismCeiling:
    """Whole experts on each rank instead of a slice of every expert."""
    touched = scene.ops("routed_experts", "all_reduce.experts")
    about = About(id="expert-parallel", title="Expert parallelism", touched=touched, scene=scene)
    ranks = scene.layout.tp * scene.layout.dp
    wanted = scene.layout.model_copy(update={"ep": ranks})
    if not scene.shape.is_moe:
        return about.inert("the model has no experts")
    if ranks in {1, scene.layout.ep}:
        return about.inert("there is one rank" if ranks == 1 else f"ep{ranks} is in use")
    refused = layouts.check(scene.shape, scene.box, wanted)
    if refused:
        return about.inert(refused)
    new = scene.again(layout=wanted)
    before, after = scene.ops("routed_experts"), [op for op in new.ops if op.part == "routed_experts"]
    comm_before, comm_after = scene.ops("communication"), [op for op in new.ops if op.part == "communication"]
    return about.becomes(
        new,
        f"ep{ranks} reads the same weights in all; with activations, the busiest rank moves {_more(before, after)} "
        f"bytes for its experts; matmuls are {ranks} times wider (the ceiling takes fast kernels); communication "
        f"{ms(total(comm_before))} becomes {ms(total(comm_after))}{_exchange_words(comm_after)}",
        other_kernels=True,
    )


def _more(before: list[OpTime], after: list[OpTime]) -> str:
    ratio = sum(op.read_bytes for op in after) / max(sum(op.read_bytes for op in before), 1.0)
    return f"{ratio - 1:+.0%}"


def _exchange_words(ops: list[OpTime]) -> str:
    kinds = {op.collective for op in ops}
    return " by all-to-all" if "all_to_all" in kinds else " (no all-to-all over this link: sums and gathering stay)"


def dp_attention(scene: Scene) -> MechanismCeiling:
    """Each rank attends for its own sequences instead of a slice of the heads of all."""
    layout, shape = scene.layout, scene.shape
    touched = scene.ops("attention", "attention_core", "communication", "indexer")
    about = About(id="dp-attention", title="DP attention", touched=touched, scene=scene)
    if not shape.is_moe or layout.tp == 1:
        return about.inert("one rank attends already" if layout.tp == 1 else "only for models with experts")
    wanted = Layout(tp=1, pp=layout.pp, dp=layout.dp * layout.tp, ep=layout.dp * layout.tp)
    refused = layouts.check(shape, scene.box, wanted)
    if refused:
        return about.inert(refused)
    budgets = [scene.budget(layout=one) for one in (layout, wanted)]
    if not budgets[1].fits:
        return about.inert(f"{wanted.name} does not fit: {size(missing_bytes(budgets[1]))} are missing on each device")
    needed = scene.step.point.sequences * scene.reserved_tokens
    if needed > budgets[1].cache_tokens:
        return about.inert(
            f"{wanted.name} holds {budgets[1].cache_tokens:,} tokens of cache, because attention's weights stand whole "
            f"on each rank, and this step needs {needed:,}"
        )
    return about.becomes(
        scene.again(layout=wanted),
        f"{wanted.name}: attention's weights stand whole on each rank, the cache holds {budgets[1].cache_tokens:,} "
        f"tokens instead of {budgets[0].cache_tokens:,} (which this gain does not count)",
    )


def weights_fp8(scene: Scene) -> MechanismCeiling:
    """Weights in FP8."""
    return _weights(scene, "weights-fp8", "FP8 weights", "fp8-block128")


def weights_fp4(scene: Scene) -> MechanismCeiling:
    """Weights in NVFP4."""
    return _weights(scene, "weights-nvfp4", "FP4 weights (NVFP4)", "nvfp4")


def weights_int4(scene: Scene) -> MechanismCeiling:
    """Weights in INT4 with BF16 arithmetic."""
    return _weights(scene, "weights-int4", "INT4 weights (AWQ, GPTQ)", "int4-g128")


def _weights(scene: Scene, id_: str, title: str, name: str) -> MechanismCeiling:
    storage = storages.STORAGES[name]
    touched = [op for op in scene.step.ops if op.part in storages.QUANTIZED]
    about = About(id=id_, title=title, touched=touched, scene=scene)
    if not storages.would_shrink(scene.shape, storage):
        return about.inert(f"every weight that is quantized has {storage.bits_per_weight:.3g} bits or fewer already")
    shape = storages.stored_as(scene.shape, storage)
    refused = layouts.check(shape, scene.box, scene.layout)
    if refused:
        return about.inert(refused)
    lacks = scene.limits.lacks(storage.compute)
    words = f"weights shrink from {scene.shape.weight_bytes / 1e9:.0f} to {shape.weight_bytes / 1e9:.0f} GB"
    if lacks:
        words += f"; {scene.box.device.name} has no {storage.compute} rate: they are multiplied in BF16"
    return about.becomes(scene.again(shape=shape), f"{words}; changes answers")


def cache_fp8(scene: Scene) -> MechanismCeiling:
    """Cache in FP8."""
    touched = scene.ops("attention_core")
    about = About(id="kv-fp8", title="FP8 cache", touched=touched, scene=scene)
    if scene.cache_bytes_per_element <= 1:
        return about.inert("the cache has 8 bits an element or fewer already")
    budgets = [scene.budget(cache_bytes_per_element=one) for one in (scene.cache_bytes_per_element, 1.0)]
    return about.becomes(
        scene.again(cache_bytes_per_element=1.0),
        f"attention's core takes {ms(total(touched))}; the cache holds {budgets[1].cache_tokens:,} tokens instead of "
        f"{budgets[0].cache_tokens:,} (which this gain does not count); changes answers",
    )


def speculation(scene: Scene) -> MechanismCeiling:
    """Several tokens verified in one step."""
    about = About(id="spec-decoding", title="Speculative decoding", touched=scene.step.ops, scene=scene)
    point = scene.step.point
    if point.phase != "decode":
        return about.inert("it acts in decode only")
    if point.new_tokens > 1:
        return about.inert("the step verifies drafts already")
    verify = scene.again(point=point.model_copy(update={"new_tokens": DRAFT_TOKENS + 1}))
    own = "of its own MTP layer" if scene.shape.draft_layers else "(of a draft model, which has to be found)"
    return about.becomes(
        verify,
        f"verifying {DRAFT_TOKENS} drafted tokens {own} takes {ms(verify.time_s.mid)} instead of {ms(scene.time_s)}, "
        f"and yields {ACCEPTED.low} to {ACCEPTED.high:.0f} tokens a sequence, so that {ACCEPTED.high - 1:+.0%} is the "
        "most that can be",
        tokens=ACCEPTED.scaled(point.sequences),
        more_s=DRAFT_TOKENS * scene.time_s / scene.shape.num_layers,
    )


def larger_batch(scene: Scene) -> MechanismCeiling:
    """As many sequences as the cache holds."""
    about = About(id="max-concurrency", title="Larger batch", touched=scene.step.ops, scene=scene)
    point = scene.step.point
    budget, each = scene.budget(), scene.reserved_tokens
    most = budget.sequences(each)
    if point.phase != "decode":
        return about.inert("it acts in decode only")
    if most <= point.sequences:
        return about.inert(
            f"the cache holds {budget.cache_tokens:,} tokens: {most:,} sequences of {each:,}, and "
            f"{point.sequences:,} run; a higher limit on running requests is never reached"
        )
    new = scene.again(point=scene.at_sequences(most))
    return about.becomes(
        new,
        f"the cache holds {most:,} sequences of {each:,} tokens instead of {point.sequences:,}; a step would take "
        f"{ms(new.time_s.mid)} instead of {ms(scene.time_s)}, and each sequence would get slower by that",
    )


def chunked_prefill(scene: Scene) -> MechanismCeiling:
    """How many tokens of prompts are computed at a time."""
    about = About(id="chunked-prefill-size", title="Size of prefill chunks", touched=scene.step.ops, scene=scene)
    point = scene.step.point
    if point.phase == "decode":
        return about.inert(
            "it changes how prompts and decode share steps, no step of decode: what it is worth depends on the load"
        )
    if point.tokens >= MAX_STEP_TOKENS:
        return about.inert(f"the step has {point.tokens:,} tokens: weights are read for enough of them")
    new = scene.again(point=scene.at_sequences(max(1, MAX_STEP_TOKENS // point.new_tokens)))
    return about.becomes(
        new,
        f"{new.point.tokens:,} tokens at once instead of {point.tokens:,}: {new.tokens_per_s.mid:,.0f} tokens/s of "
        f"prompts instead of {scene.step.tokens_per_s.mid:,.0f}",
    )
