"""The target's step by calculation: who runs, where the time goes, and every mechanism's ceiling there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from assay.plan.predicting import together
from assay.records.device import Box
from assay.records.estimate import Host, Layout, MechanismCeiling, MemoryBudget, OperatingPoint, Routing, StepEstimate
from assay.records.estimate_report import Load, ServingPoint
from assay.records.model_shape import ModelShape
from assay.records.reasoning import CeilingHere
from assay.records.spec import Workload
from assay.roofline import layouts, mechanisms, memory, mixed, serving, step
from assay.roofline.mechanism_host import DECODE_GRAPHS_ID
from assay.roofline.mechanism_scene import NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """How the model is served today, as far as the estimate needs it."""

    layout: Layout
    memory_fraction: float = 0.9
    cache_bytes_per_element: float = 2.0
    running_limit: int | None = None
    """Most sequences that the engine lets run at once; None: no limit known."""
    host: Host | None = None
    """How the engine schedules and launches; None: as engines of today do by default."""
    shares_steps: bool = False
    """It computes prompts in steps of decode."""
    routing: Routing | None = None
    """How tokens spread over experts; None: evenly."""
    caches_prefixes: bool = True
    """Whether what prompts open with alike is computed and held once: vLLM, SGLang and TensorRT-LLM by default."""


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
    load = load_of(workload, caches_prefixes=served.caches_prefixes)
    room = beside_prefixes(budget, workload, caches_prefixes=served.caches_prefixes)
    if not budget.fits:
        return f"{shape.name} does not fit as {served.layout.name} on {box.name}, by calculation"
    if not room.sequences(load.reserved_tokens):
        return (
            f"a request of {load.reserved_tokens:,} tokens does not fit into the cache, which {served.layout.name} on "
            f"{box.name} leaves {room.cache_tokens:,} tokens for"
        )
    running, held_back = serving.held(room, load, workload.concurrency)
    if served.running_limit is not None and served.running_limit < running:
        running, held_back = max(1, served.running_limit), f"the engine lets {served.running_limit} run at once"
    point, ceilings = _point(shape, box, served, load, workload.concurrency, running, held_back)
    return TargetStep(
        served=served, memory=budget, point=point, tokens_each=load.reserved_tokens, ceilings=ceilings
    )  # fmt: skip


def load_of(workload: Workload, *, caches_prefixes: bool) -> Load:
    """Mean lengths of a workload as its server has them; what `assay rehearse`, the plan and the report count alike.

    A cached prefix is computed once and held once (`beside_prefixes`), and read by every decode step. A server without
    that cache computes and holds it with each request.
    """
    answer = math.ceil(sum(workload.output_tokens) / 2)
    if not caches_prefixes:
        return serving.load_of_requests(math.ceil(sum(workload.prompt_tokens) / 2), answer)
    load = serving.load_of_requests(math.ceil(sum(workload.input_tokens) / 2), answer)
    return load.model_copy(update={"context_tokens": load.context_tokens + workload.shared_prefix_tokens})


def beside_prefixes(budget: MemoryBudget, workload: Workload, *, caches_prefixes: bool) -> MemoryBudget:
    """What the cache holds beside the prefixes that are held once for all: each of their groups takes its tokens."""
    shared = workload.shared_prefix_tokens * workload.shared_prefix_groups if caches_prefixes else 0
    return budget.model_copy(update={"cache_tokens": max(0, budget.cache_tokens - shared)})


def _point(
    shape: ModelShape, box: Box, served: Served, load: Load, asked: int, running: int, held_back: str
) -> tuple[ServingPoint, dict[str, CeilingHere]]:
    def at(point: OperatingPoint) -> StepEstimate:
        return step.estimate(
            shape, box, served.layout, point, cache_bytes_per_element=served.cache_bytes_per_element,
            routing=served.routing, host=served.host,
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
    controls = mechanisms.controls(
        decode, shape, box, served.layout, mixed=_with_a_prompt(shape, box, served, decode, load),
        prompts_per_step=point.prompts_per_step,
    )  # fmt: skip
    return point, whole | {one.id: _with_prompts_as_they_are(one, point.prompt_share) for one in controls}


def _with_prompts_as_they_are(control: MechanismCeiling, prompt_share: float | None) -> CeilingHere:
    """A control of decode's steps, which prompts between them do not feel; one that counts prompts itself stands."""
    if control.id == DECODE_GRAPHS_ID:
        return together(control, None, None)
    unchanged = control.model_copy(update={"gain": NOTHING, "applies": False, "reason": ""})
    return together(control, unchanged, prompt_share)


def _with_a_prompt(
    shape: ModelShape, box: Box, served: Served, decode: StepEstimate, load: Load
) -> StepEstimate | None:
    """The step of decode that computes one prompt beside it; None where the engine computes prompts apart."""
    if not served.shares_steps or not load.input_tokens:
        return None
    prompt = OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=load.input_tokens)
    return mixed.estimate(
        shape, box, served.layout, decode.point, prompt, cache_bytes_per_element=served.cache_bytes_per_element,
        routing=served.routing, host=served.host,
    )  # fmt: skip


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
