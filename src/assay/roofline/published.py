"""An estimate for a published measurement: the same steps, added up the way the measurement was made.

A fixed batch is its prompts and then its decode. A closed loop is the same per generation of requests: while `running`
sequences generate one answer each, as many prompts are computed: spread evenly where lengths vary, and in rounds, as
many as a step takes, where all requests have one length. Decode of a long answer is taken at three contexts (midpoints
of its thirds): times grow nearly linearly with the context, piecewise where a window fills.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.records.estimate import Host, Layout, MemoryBudget, OperatingPoint
from assay.records.model_shape import ModelShape
from assay.records.published import SECONDS, PublishedPoint, PublishedTable
from assay.roofline import scheduling, storages

SHORT_ANSWER = 64
"""Up to so many tokens the context hardly grows: one step stands for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Steps with how often they are done, and the tokens that the published rate counts."""

    decode: list[tuple[OperatingPoint, float]]
    prompts: list[tuple[OperatingPoint, float]]
    tokens: float


ENGINES = {
    "vLLM": "vllm",
    "SGLang": "sglang",
    "TensorRT-LLM": "trtllm",
    "llama.cpp": "llamacpp",
    "LMDeploy": "lmdeploy",
    "gpt-fast": "gpt-fast",
}
"""How sources write the names of engines."""
OLD_RUNTIME = "gptSessionBenchmark"
"""TensorRT-LLM's benchmark of compiled engines, before the PyTorch backend."""


def host_of(table: PublishedTable) -> Host:
    """Scheduling of the table's engine, by its version; an engine's version that is not stated counts as today's."""
    name = next((ours for theirs, ours in ENGINES.items() if table.engine.startswith(theirs)), "")
    if name == "trtllm" and OLD_RUNTIME in table.engine:
        name = "trtllm-engine"
    stated = table.engine.split(",")[0]
    return scheduling.host_of(name, None if "not stated" in stated else stated)


def restored(shape: ModelShape, formats: dict[str, str], *, sparse: bool = True) -> ModelShape:
    """The model with its weights in other formats, and without its indexer where the engine ignores it."""
    return storages.stored_by_part(shape if sparse else storages.without_indexer(shape), formats)


def layout_of(table: PublishedTable, point: PublishedPoint) -> Layout:
    """The table's layout, with what the point says otherwise."""
    return table.layout if point.tp is None else table.layout.model_copy(update={"tp": point.tp})


def measured_rate(table: PublishedTable, point: PublishedPoint, running: int) -> float:
    """The published value as tokens/s over the whole box."""
    if table.quantity == "tpot":
        return running / point.value
    if table.quantity in SECONDS:
        sequences = point.sequences or running
        return sequences * (point.output_tokens or point.input_tokens) / point.value
    return point.value * (point.count or table.count) if table.per_device else point.value


def running_sequences(table: PublishedTable, point: PublishedPoint, memory: MemoryBudget | None) -> int:
    """How many sequences run at once: as stated, or what the cache holds of those asked for."""
    fits = memory.sequences(point.input_tokens + point.output_tokens) if memory else None
    limits = [limit for limit in (point.sequences, table.most_sequences) if limit]
    if table.in_flight == "asked" or point.sequences is None:
        limits += [fits] if fits is not None else []
    return max(1, min(limits, default=1))


def work_of(table: PublishedTable, point: PublishedPoint, running: int) -> Work:
    """Which steps the measurement consists of."""
    inputs, outputs, step_tokens = point.input_tokens, point.output_tokens, table.prefill_step_tokens
    if table.quantity == "tpot":
        return work_per_token(running, inputs, outputs, step_tokens=step_tokens, rounds=table.rounds)
    prompts: list[tuple[OperatingPoint, float]] = []
    if table.quantity != "decode" and inputs:
        looped = table.quantity == "served" and outputs and not table.rounds
        prompts = prompt_steps(running, inputs, step_tokens, _together(running, outputs) if looped else running)
    if table.quantity in {"prefill", "prefill_latency"}:
        return Work(decode=[], prompts=prompts, tokens=running * inputs)
    return Work(decode=decode_steps(running, inputs, outputs), prompts=prompts, tokens=running * outputs)


def work_per_token(running: int, input_tokens: int, output_tokens: int, *, step_tokens: int, rounds: bool) -> Work:
    """What TPOT in a closed loop consists of: decode, and the prompts of others that are computed meanwhile.

    Each of the others is replaced once while a request generates its answer. Those that began with it are replaced when
    it is; with the step that computed them it has nothing to do.

    Args:
        running: sequences at once.
        input_tokens: of each prompt.
        output_tokens: of each answer.
        step_tokens: tokens of prompts that a step takes at most.
        rounds: all requests have one length and began together.
    """
    began_together = max(1, step_tokens // max(1, input_tokens)) if rounds else 1
    met = max(0, running - began_together) / running
    prompts: list[tuple[OperatingPoint, float]] = []
    if input_tokens and met:
        at_once = running if rounds else _together(running, output_tokens)
        steps = prompt_steps(running, input_tokens, step_tokens, at_once)
        prompts = [(step, met * weight) for step, weight in steps]
    decode = decode_steps(running, input_tokens, output_tokens)
    return Work(decode=decode, prompts=prompts, tokens=running * output_tokens)


def _together(running: int, output_tokens: int) -> int:
    """Prompts that come with one step where lengths vary: as many as requests end in it, at least one at a time."""
    return max(1, round(running / output_tokens))


def decode_steps(sequences: int, context: int, output_tokens: int) -> list[tuple[OperatingPoint, float]]:
    """Steps that generate an answer for each sequence."""
    parts = 1 if output_tokens <= SHORT_ANSWER else 3
    shares = [(2 * part + 1) / (2 * parts) for part in range(parts)]
    return [
        (
            OperatingPoint(
                phase="decode", sequences=sequences, context_tokens=round(context + share * output_tokens), new_tokens=1
            ),
            output_tokens / parts,
        )
        for share in shares
    ]


def prompt_steps(
    prompts: int, input_tokens: int, step_tokens: int, together: int
) -> list[tuple[OperatingPoint, float]]:
    """Steps that compute prompts: several short ones in one, or a long one in chunks."""
    if input_tokens <= step_tokens:
        each = max(1, min(prompts, together, step_tokens // input_tokens))
        step = OperatingPoint(phase="prefill", sequences=each, context_tokens=0, new_tokens=input_tokens)
        return [(step, prompts / each)]
    starts = range(0, input_tokens, step_tokens)
    return [
        (
            OperatingPoint(
                phase="prefill",
                sequences=1,
                context_tokens=start,
                new_tokens=min(step_tokens, input_tokens - start),
            ),
            float(prompts),
        )
        for start in starts
    ]
