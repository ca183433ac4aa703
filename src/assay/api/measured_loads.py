"""The operating points of a measured run: how many requests, how long, and the time per output token at each."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.records.base import Flags
    from assay.records.bench import BenchResult
    from assay.records.held_load import MeasuredLoad
    from assay.records.machine import EngineBuild
    from assay.records.run import Measures
    from assay.records.spec import Workload
    from assay.records.state import CampaignState, RunRecord

SHARING = ("vllm", "trtllm", "tensorrt")
"""How the names of engines begin that fill steps of decode up with prompts (`assay.roofline.mixed`)."""
MIXING = {"sglang": "--enable-mixed-chunk"}
"""Switches of those that do it when asked."""
STEP_TOKENS = {"vllm": "--max-num-batched-tokens", "sglang": "--chunked-prefill-size", "trtllm": "--max_num_tokens"}


def loads_of(state: CampaignState, runs: Sequence[RunRecord], limit: int | None) -> list[MeasuredLoad]:
    """Every operating point of the campaign that these runs measured.

    Args:
        state: of the campaign.
        runs: of one arm.
        limit: most sequences that the engine lets run at once.
    """
    from assay.plan.scores import point_measures
    from assay.records.spec import MAIN_POINT

    workload = state.spec.workload
    points = {MAIN_POINT: workload} | {point.name: workload.at(point) for point in workload.points}
    found: list[MeasuredLoad] = []
    for name, asked in points.items():
        measured = {run.intent.run_id: point_measures(run, name) for run in runs}
        load = _load(name, asked, {run_id: one for run_id, one in measured.items() if one is not None}, limit)
        found += [load] if load is not None else []
    return found


def load_of(result: BenchResult) -> list[MeasuredLoad]:
    """The one load of a load test; none where it does not tell the lengths of its requests."""
    from assay.records.held_load import MeasuredLoad

    measures = result.measures
    if measures is None:
        return []
    tpot_s, answers, streams = measures.tpot.quantiles.p50_s, measures.mean_output_tokens, measures.mean_in_flight
    if not tpot_s or not answers or measures.mean_input_tokens is None or round(streams) < 1:
        return []
    return [
        MeasuredLoad(
            name="load test", sequences=round(streams), input_tokens=round(measures.mean_input_tokens),
            output_tokens=max(1, round(answers)), tpot_s=tpot_s,
        )
    ]  # fmt: skip


def shares_steps(build: EngineBuild, flags: Flags) -> bool:
    """Whether the engine computes prompts in the steps of decode."""
    from assay.plan import spellings

    switch = MIXING.get(build.engine)
    return build.engine.startswith(SHARING) or bool(switch and spellings.value(build, flags, switch, default=False))


def step_tokens(build: EngineBuild, flags: Flags) -> int | None:
    """Tokens of prompts in a step at most, as the flags say; None where they do not."""
    from assay.plan import spellings

    name = STEP_TOKENS.get(build.engine)
    told = spellings.value(build, flags, name) if name else None
    return told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else None


def _load(name: str, asked: Workload, measured: dict[str, Measures], limit: int | None) -> MeasuredLoad | None:
    """One point over the runs that measured a TPOT there."""
    from assay.records.held_load import MeasuredLoad

    times = {run_id: one.tpot.p50_s for run_id, one in measured.items() if one.tpot.p50_s}
    if not times:
        return None
    prompts = _mean([one.mean_input_tokens for one in measured.values()], asked.prompt_tokens)
    answers = _mean([one.mean_output_tokens for one in measured.values()], asked.output_tokens)
    cached = asked.shared_prefix_tokens
    return MeasuredLoad(
        name=name,
        sequences=asked.concurrency if limit is None else min(asked.concurrency, limit),
        input_tokens=max(0, prompts - cached),
        cached_tokens=cached,
        output_tokens=max(1, answers),
        one_length=asked.input_tokens[0] == asked.input_tokens[1] and asked.output_tokens[0] == asked.output_tokens[1],
        tpot_s=median(times.values()),
        spread_s=(min(times.values()), max(times.values())) if len(times) > 1 else None,
        runs=list(times),
    )


def _mean(measured: Sequence[float | None], asked: tuple[int, int]) -> int:
    """As measured, the median over the runs; else the middle of what is asked."""
    told = [each for each in measured if each is not None]
    return round(median(told) if told else sum(asked) / 2)
