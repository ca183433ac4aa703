"""What the verbs of `assay.api.estimate` are made of: box, layout, memory, operating points, assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.records.device import Box
    from assay.records.estimate import Host, Layout, MemoryBudget, OperatingPoint, Routing, StepEstimate
    from assay.records.estimate_report import Load, ModelFacts, ServingPoint
    from assay.records.model_shape import ModelShape
    from assay.roofline.layout_choice import Choice

EVERY_ESTIMATE = (
    "How far kernels stay below their ceilings, launches and the host's part are ranges, set by measurements on one "
    "H200 under vLLM or assumed, and not measured here; floors and ceilings of tokens/s take none of them."
)
"""Assumed in every estimate."""


OUTSIDE = ("embedding", "head")
"""Parts outside of the layers, which "active parameters" leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an estimate is made of."""

    shape: ModelShape
    box: Box
    load: Load
    routing: Routing
    cache_bytes: float
    memory_fraction: float
    host: Host | None = None
    """How the engine schedules; None: as engines of today do by default."""


def box_of(on: str, measured: Path | None, devices: Path | None) -> Box:
    """The box, with what was measured laid over it.

    Raises:
        UsageError: no such device, or a file is malformed.
    """
    from assay.probes.devices import box
    from assay.probes.measured_file import with_measured

    found = box(on, devices)
    return found if measured is None else with_measured(found, measured)


def choose_layout(setting: Setting, asked: Layout | None) -> Choice:
    """The layout asked for, else the default one.

    Raises:
        UsageError: it is impossible, or none is possible.
    """
    from assay.errors import UsageError
    from assay.records.estimate import Layout
    from assay.roofline import layout_choice, layouts

    shape, box = setting.shape, setting.box
    if asked is None:
        found = layout_choice.default(
            shape, box, memory_fraction=setting.memory_fraction, cache_bytes_per_element=setting.cache_bytes
        )
        if found is not None:
            return found
        asked = Layout(tp=box.count)
    refused = layouts.check(shape, box, asked)
    if refused is None:
        return layout_choice.Choice(layout=asked)
    near = layout_choice.nearest(shape, box, asked)
    hint = f"the nearest possible one is --layout {_spelled(near)}" if near else "name another box"
    raise UsageError(f"{shape.name} cannot run as {asked.name} on {box.name}: {refused}", hint=hint)


def refuse_what_does_not_fit(setting: Setting, layout: Layout, memory: MemoryBudget) -> None:
    """Say by how much, and what would do.

    Raises:
        UsageError: the weights do not fit, or not even one request does.
    """
    from assay.errors import UsageError
    from assay.render.estimate_words import size_words
    from assay.roofline import layout_choice

    name, each = setting.shape.name, setting.load.reserved_tokens
    if not memory.fits:
        missing = size_words(layout_choice.missing_bytes(memory))
        raise UsageError(
            f"{name} does not fit as {layout.name}: weights take {size_words(memory.weight_bytes)} of each device's "
            f"{size_words(memory.device_bytes)}, and {missing} are missing once activations, graphs and what is kept "
            "free are counted",
            hint=_what_would_fit(setting, layout),
        )
    if memory.cache_bytes_per_token and not memory.sequences(each):
        raise UsageError(
            f"one request of {each:,} tokens does not fit into the cache: it holds {memory.cache_tokens:,}",
            hint=f"ask for at most {memory.cache_tokens:,} tokens, or try --kv-dtype fp8 or more devices",
        )


def refuse_routing_without_experts(setting: Setting) -> None:
    """Skewed routing of a model that routes nothing would be ignored without a word.

    Raises:
        UsageError: it has no experts.
    """
    from assay.errors import UsageError

    if setting.routing.law != "uniform" and not setting.shape.is_moe:
        raise UsageError(
            f"--routing {setting.routing.law}: {setting.shape.name} has no experts to choose among",
            hint="leave it out: every token takes the same weights",
        )


def _what_would_fit(setting: Setting, layout: Layout) -> str:
    from assay.roofline import layout_choice

    box = layout_choice.used(setting.box, layout)
    limits = {"memory_fraction": setting.memory_fraction, "cache_bytes_per_element": setting.cache_bytes}
    stored = layout_choice.fitting_storages(setting.shape, box, layout, **limits)
    room = layout_choice.fitting(setting.shape, setting.box, layout, **limits)
    told = [f"stored as {' or '.join(stored)} it would"] if stored else []
    told += [f"on {room.devices} of these devices under {room.name} it would"] if room else []
    return "; ".join(told) or "take a model of fewer parameters, or devices with more memory"


def worth_showing(memory: MemoryBudget, load: Load) -> list[int]:
    """The usual numbers of requests up to the first that the cache cannot hold, which shows what it does hold."""
    from assay.roofline.serving import CONCURRENCIES, held

    found: list[int] = []
    for asked in CONCURRENCIES:
        found.append(asked)
        if held(memory, load, asked)[1]:
            break
    return found


def point_at(setting: Setting, box: Box, layout: Layout, memory: MemoryBudget, asked: int) -> ServingPoint:
    """One operating point: who runs, a step of decode, the prompts between, what would help."""
    from assay.records.estimate import OperatingPoint
    from assay.roofline import mechanisms, serving, step

    running, held_back = serving.held(memory, setting.load, asked)

    def at(point: OperatingPoint) -> StepEstimate:
        return step.estimate(
            setting.shape,
            box,
            layout,
            point,
            routing=setting.routing,
            cache_bytes_per_element=setting.cache_bytes,
            host=setting.host,
        )

    decode = at(OperatingPoint(phase="decode", sequences=running, context_tokens=setting.load.context_tokens))
    together = serving.prompts_point(setting.load, running)
    return serving.serving_point(
        asked,
        held_back,
        decode,
        at(together) if together else None,
        setting.load,
        setting.shape,
        box,
        mechanisms.ceilings(
            decode,
            setting.shape,
            box,
            layout,
            cache_bytes_per_element=setting.cache_bytes,
            memory_fraction=setting.memory_fraction,
            reserved_tokens=setting.load.reserved_tokens,
        ),
    )


def facts_of(setting: Setting) -> ModelFacts:
    """What the model was taken for."""
    from assay.records.estimate_report import ModelFacts

    shape = setting.shape
    stored: dict[str, float] = {}
    for count, matrix in shape.matrices():
        stored[matrix.storage.name] = stored.get(matrix.storage.name, 0.0) + count * matrix.weight_bytes
    whole = shape.cache_bytes_per_token(setting.cache_bytes)
    return ModelFacts(
        name=shape.name,
        architecture=shape.architecture,
        source=shape.source,
        parameters=shape.parameters,
        active_parameters=shape.active_parameters - sum(shape.parameters_by_part().get(part, 0) for part in OUTSIDE),
        weight_bytes=shape.weight_bytes,
        parameters_by_part=shape.parameters_by_part(),
        weight_bytes_by_part=shape.weight_bytes_by_part(),
        cache_bytes_per_token=whole,
        indexer_bytes_per_token=whole - shape.cache_bytes_per_token(setting.cache_bytes, with_indexer=False),
        num_experts=shape.num_experts,
        top_k=shape.top_k,
        storage=sorted(stored, key=lambda name: -stored[name]),
    )


def assumptions_of(setting: Setting, memory: MemoryBudget, point: ServingPoint) -> list[str]:
    """Everything that anybody assumed on the way, each once; what every estimate assumes, last."""
    prompts = point.prompts.notes if point.prompts else []
    found = [*too_long(setting), *setting.shape.assumed, *memory.notes, *point.decode.notes, *prompts]
    found += [scheduling_words(point.decode.host), EVERY_ESTIMATE]
    if setting.shape.is_moe and setting.routing.law == "uniform":
        found.append("Tokens choose experts evenly: real routing is skewed (try --routing zipf:1.0).")
    return list(dict.fromkeys(found))


def scheduling_words(host: Host | None) -> str:
    """How the engine's host is taken to share a step with the device."""
    from assay.roofline.host import UNKNOWN

    words = (host or UNKNOWN).words
    return f"{words[0].upper()}{words[1:]}: --engine and --scheduling say otherwise."


def too_long(setting: Setting) -> list[str]:
    """Requests beyond what the model was made for: the arithmetic holds, an engine refuses."""
    most, asked = setting.shape.max_positions, setting.load.reserved_tokens
    if most is None or asked <= most:
        return []
    told = f"A request of {asked:,} tokens is longer than the {most:,} positions of {setting.shape.name}: engines "
    return [told + "refuse it unless the model's configuration stretches them (rope_scaling)."]


def refuse_if_nothing_fits(setting: Setting, devices: int, *, found: bool) -> None:
    """A search that found nothing, not even what is too slow, says what is missing and what would do.

    Raises:
        UsageError: nothing was found.
    """
    from assay.errors import UsageError
    from assay.records.estimate import Layout

    if found:
        return
    near = Layout(tp=devices)
    raise UsageError(
        f"{setting.shape.name} does not fit on {devices} of {setting.box.name} in any layout or format of weights that "
        f"the device computes in, with room for one request of {setting.load.reserved_tokens:,} tokens",
        hint=_what_would_fit(setting, near),
    )


def _spelled(layout: Layout) -> str:
    return layout.name.replace(" ", ",")
