"""An estimate for a published measurement: the same steps, added up the way the measurement was made.

A fixed batch is its prompts and then its decode. A closed loop is the same per generation of requests: while `running`
sequences generate one answer each, as many prompts are computed: spread evenly where lengths vary, and in rounds, as
many as a step takes, where all requests have one length. Decode of a long answer is taken at three contexts (midpoints
of its thirds): times grow nearly linearly with the context, piecewise where a window fills.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.records.estimate import Layout, MemoryBudget, OperatingPoint
from assay.records.model_shape import ModelShape
from assay.records.published import SECONDS, PublishedPoint, PublishedTable
from assay.roofline import storages

SHORT_ANSWER = 64
"""Up to so many tokens the context hardly grows: one step stands for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Steps with how often they are done, and the tokens that the published rate counts."""

    decode: list[tuple[OperatingPoint, float]]
    prompts: list[tuple[OperatingPoint, float]]
    tokens: float


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
    prompts: list[tuple[OperatingPoint, float]] = []
    if table.quantity != "decode" and point.input_tokens:
        looped = table.quantity == "served" and point.output_tokens
        together = running / point.output_tokens if looped and not table.rounds else running
        prompts = prompt_steps(running, point.input_tokens, table.prefill_step_tokens, max(1, round(together)))
    if table.quantity in {"prefill", "prefill_latency"}:
        return Work(decode=[], prompts=prompts, tokens=running * point.input_tokens)
    decode = decode_steps(running, point.input_tokens, point.output_tokens)
    if table.quantity == "tpot":
        # Each of the others is replaced once while a request generates its answer. Those that began with it are
        # replaced when it is; with the step that computed them it has nothing to do.
        at_once = max(1, table.prefill_step_tokens // max(1, point.input_tokens)) if table.rounds else 1
        met = max(0, running - at_once) / running
        prompts = [(step, met * weight) for step, weight in prompts if met]
    return Work(decode=decode, prompts=prompts, tokens=running * point.output_tokens)


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
