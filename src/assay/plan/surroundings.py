"""A target in sentences: what of the machine, the model and the load the plan was calculated from."""

from __future__ import annotations

from collections.abc import Iterator

from assay.plan.situation import Situation
from assay.plan.starting import warnings
from assay.plan.target_step import TargetStep, shares
from assay.records.device import Box
from assay.records.model_shape import ModelShape
from assay.records.reasoning import Surroundings
from assay.records.spec import Workload
from assay.units import giga

KIB, GIB = 2**10, 2**30


def surroundings(situation: Situation) -> Surroundings:
    """What is known, and what is not."""
    impossible = warnings(situation)
    return Surroundings(
        sentences=[*_sentences(situation), *map(as_sentence, impossible)],
        missing=[f"{name}: {reason}" for name, reason in situation.missing.items() if reason],
        warnings=impossible,
    )


def as_sentence(warning: str) -> str:
    """A warning among the sentences."""
    return f"{warning[0].upper()}{warning[1:]}."


def _sentences(situation: Situation) -> Iterator[str]:
    yield _machine(situation)
    if situation.shape is not None:
        yield _model(situation.shape)
    else:
        model = situation.model
        size = "" if model.size_bytes is None else f", a file of {giga(model.size_bytes)} GB"
        yield f"{model.name or model.architecture}: {model.quantization}{size}."
    workload = situation.spec.workload
    yield (
        f"{workload.concurrency:,} requests in flight, prompts of {_span(workload.prompt_tokens)} and answers of "
        f"{_span(workload.output_tokens)} tokens{_prefix(workload)}."
    )
    if situation.step is not None:
        yield from _step(situation.step)
        yield from _too_short(workload, situation)


def _prefix(workload: Workload) -> str:
    tokens, groups = workload.shared_prefix_tokens, workload.shared_prefix_groups
    if not tokens:
        return ""
    whose = "the same for all" if groups == 1 else f"one of {groups:,} prefixes"
    return f"; the first {tokens:,} of a prompt ({workload.shared_share:.0%} on average) are shared, {whose}"


def _machine(situation: Situation) -> str:
    if situation.box is not None:
        return _box(situation.box)
    machine = situation.machine
    gpus = f"{len(machine.gpus)}x {machine.gpus[0].name}" if machine.gpus else "no GPU"
    cpu = f"{machine.cpu_model}, {machine.usable_cores} cores to use, {machine.memory_bytes / GIB:.0f} GiB of memory"
    return f"{cpu}; {gpus}."


def _box(box: Box) -> str:
    device = box.device
    memory, shared = device.fact("memory_bytes"), device.fact("smem_per_block_bytes")
    capability, rate = device.fact("compute_capability"), device.fact("memory_read_bytes_per_s")
    told = [
        f"{memory.value / GIB:.0f} GiB" if memory else "",
        f"{rate.value / 1e12:.3g} TB/s ({rate.basis})" if rate else "",
        f"compute capability {capability.value:g}" if capability else "",
        f"{shared.value / KIB:.0f} KiB of shared memory a block" if shared else "",
        device.link if box.count > 1 else "",
    ]
    each = "each " if box.count > 1 else ""
    return f"{box.name}, {each}{', '.join(filter(None, told))}."


def _model(shape: ModelShape) -> str:
    weights = shape.weight_bytes
    experts = f", {shape.num_experts} experts of which a token takes {shape.top_k}" if shape.is_moe else ", no experts"
    return (
        f"{shape.name}: {shape.num_layers} layers{experts}; {giga(shape.parameters)} B parameters in "
        f"{giga(weights)} GB ({8 * weights / shape.parameters:.2g} bits a weight), "
        f"{shape.cache_bytes_per_token() / 1e3:.3g} kB of cache a token in BF16."
    )


def _step(step: TargetStep) -> Iterator[str]:
    point = step.point
    tokens = step.memory.cache_tokens
    held = f" {point.held_back[0].upper()}{point.held_back[1:]}." if point.held_back else ""
    yield (
        f"Served as {step.served.layout.name}, the cache holds {tokens:,} tokens: {tokens // step.tokens_each:,} "
        f"sequences of {step.tokens_each:,}; {point.asked:,} are asked for and {point.running:,} run at once.{held}"
    )
    parts = sorted(shares(point.decode).items(), key=lambda one: -one[1])
    told = ", ".join(f"{name} {share:.0%}" for name, share in parts if share >= 0.01)  # noqa: PLR2004 - a percent
    low, high = point.decode.time_s.low * 1e3, point.decode.time_s.high * 1e3
    yield (
        f"By calculation a decode step of {point.running:,} takes {point.decode.time_s.mid * 1e3:.3g} ms "
        f"({low:.3g} to {high:.3g}): {told}."
    )
    if point.decode.tokens_per_expert is not None and point.decode.experts_hit is not None:
        yield (
            f"Its tokens touch {point.decode.experts_hit:.0f} experts of a layer, "
            f"{point.decode.tokens_per_expert:.3g} tokens each."
        )
    if point.prompt_share:
        yield f"Prompts take {point.prompt_share:.0%} of the time."


def _too_short(workload: Workload, situation: Situation) -> Iterator[str]:
    """What to know of a run that is over before its first answers are: its streams stay in step from first to last."""
    assert situation.step is not None
    answer_s = sum(workload.output_tokens) / 2 * situation.step.point.decode.time_s.mid
    most_s = workload.warmup_max_s + workload.windows * workload.window_s
    if answer_s > most_s and situation.build.engine != "rehearsal":  # whose time is scaled
        yield (
            f"An answer takes about {answer_s:.0f} s at that, and a run loads the server for {most_s:.3g} s at most: "
            "prompts and answers would not mix as they do in service; raise workload.warmup_max_s and window_s."
        )


def _span(bounds: tuple[int, int]) -> str:
    return f"{bounds[0]:,}" if bounds[0] == bounds[1] else f"{bounds[0]:,} to {bounds[1]:,}"
