"""The target's step by calculation: who runs, where the time goes, and every mechanism's ceiling there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from assay.plan.predicting import together
from assay.records.device import Box
from assay.records.estimate import Layout, MechanismCeiling, MemoryBudget, OperatingPoint, StepEstimate
from assay.records.estimate_report import Load, ServingPoint
from assay.records.model_shape import ModelShape
from assay.records.reasoning import CeilingHere
from assay.records.spec import Workload
from assay.roofline import layouts, mechanisms, memory, serving, step


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """How the model is served today, as far as the estimate needs it."""

    layout: Layout
    memory_fraction: float = 0.9
    cache_bytes_per_element: float = 2.0
    running_limit: int | None = None
    """Most sequences that the engine lets run at once; None: no limit known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStep:
    """The operating point that the workload makes."""

    served: Served
    memory: MemoryBudget
    point: ServingPoint
    tokens_each: int
    """Tokens of a sequence at its end, mean."""
    ceilings: Mapping[str, CeilingHere]
    """By mechanism."""


def target_step(shape: ModelShape, box: Box, served: Served, workload: Workload) -> TargetStep | str:
    """Calculate it; or say why that is not possible."""
    if refused := layouts.check(shape, box, served.layout):
        return f"{served.layout.name} on {box.name}: {refused}"
    budget = memory.budget(
        shape, box, served.layout, memory_fraction=served.memory_fraction,
        cache_bytes_per_element=served.cache_bytes_per_element,
    )  # fmt: skip
    load = _load(workload)
    if not budget.fits or not budget.sequences(load.reserved_tokens):
        return f"{shape.name} does not fit as {served.layout.name} on {box.name}, by calculation"
    running, held_back = serving.held(budget, load, workload.concurrency)
    if served.running_limit is not None and served.running_limit < running:
        running, held_back = max(1, served.running_limit), f"the engine lets {served.running_limit} run at once"
    point, ceilings = _point(shape, box, served, load, workload.concurrency, running, held_back)
    return TargetStep(
        served=served, memory=budget, point=point, tokens_each=load.reserved_tokens, ceilings=ceilings
    )  # fmt: skip


def _load(workload: Workload) -> Load:
    """Mean lengths. A shared prefix is taken as cached: computed once and held once, and read by every decode step."""
    prompt, answer = (math.ceil(sum(bounds) / 2) for bounds in (workload.input_tokens, workload.output_tokens))
    load = serving.load_of_requests(prompt, answer)
    return load.model_copy(update={"context_tokens": load.context_tokens + workload.shared_prefix_tokens})


def _point(
    shape: ModelShape, box: Box, served: Served, load: Load, asked: int, running: int, held_back: str
) -> tuple[ServingPoint, dict[str, CeilingHere]]:
    def at(point: OperatingPoint) -> StepEstimate:
        return step.estimate(
            shape, box, served.layout, point, cache_bytes_per_element=served.cache_bytes_per_element
        )  # fmt: skip

    def bounds(estimate: StepEstimate) -> dict[str, MechanismCeiling]:
        found = mechanisms.ceilings(
            estimate, shape, box, served.layout, cache_bytes_per_element=served.cache_bytes_per_element,
            memory_fraction=served.memory_fraction, reserved_tokens=load.reserved_tokens,
        )  # fmt: skip
        return {one.id: one for one in found}

    decode = at(OperatingPoint(phase="decode", sequences=running, context_tokens=load.context_tokens))
    together_point = serving.prompts_point(load, running)
    prompts = at(together_point) if together_point else None
    of_decode, of_prompts = bounds(decode), bounds(prompts) if prompts else {}
    point = serving.serving_point(asked, held_back, decode, prompts, load, shape, box, list(of_decode.values()))
    whole = {name: together(one, of_prompts.get(name), point.prompt_share) for name, one in of_decode.items()}
    return point, whole


def shares(estimate: StepEstimate) -> dict[str, float]:
    """What the parts of a step take of its expected time, by the names that conditions use; they sum to 1."""
    names = {
        "routed_experts": "experts",
        "shared_experts": "dense",
        "dense_ffn": "dense",
        "head": "dense",
        "attention": "dense",
        "attention_core": "attention",
        "indexer": "attention",
        "communication": "communication",
    }
    found = dict.fromkeys(("experts", "dense", "attention", "communication", "host", "other"), 0.0)
    for op in estimate.ops:
        found[names.get(op.part, "other")] += op.time_s.mid
    found["host"] = estimate.overhead_s.mid
    whole = sum(found.values())
    return {name: value / whole for name, value in found.items()} if whole else found
