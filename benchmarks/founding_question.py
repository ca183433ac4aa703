"""The founding story's question, answered from the model's shape and the box's data: what binds at 2,048 requests?

    python benchmarks/founding_question.py            # the page as Markdown on stdout
    python benchmarks/founding_question.py --write    # docs/founding_question.md

GLM-5 in NVFP4 on 8x RTX PRO 6000 under SGLang, TP8. Nothing is measured here; measured numbers are other people's, from
src/assay/data/published and src/assay/data/devices.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay import models
from assay.probes import devices
from assay.probes.published import load_published
from assay.records.device import Box
from assay.records.estimate import Layout, MechanismCeiling, MemoryBudget, OperatingPoint, Range, StepEstimate
from assay.records.model_shape import ModelShape
from assay.roofline import fitting, mechanisms, memory, published, published_times, step
from assay.roofline.calibration import Calibration, apply

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.page_text import wrapped

PAGE = Path(__file__).parent.parent / "docs" / "founding_question.md"
MODEL, BOX, LAYOUT = "glm-5-nvfp4", "8xRTX-PRO-6000", Layout(tp=8)
ASKED = 2048
MEMORY_FRACTION = 0.92
POOL_PUBLISHED = 314_304
"""Tokens of cache that the server reported at that fraction: voipmonitor/rtx6kpro, models/glm5.md."""
PROMPT_RATE_PUBLISHED = 4000
"""Tokens/s of one prompt, "about": same page."""
PROMPT, ANSWER = 1024, 1024
MIDDLE = PROMPT + ANSWER // 2
"""A plain chat load, to say how many requests fit; the story does not tell its lengths. MIDDLE: their mean context."""
TABLES = ("glm-5-rtx-pro-6000-b12x", "glm-5-rtx-pro-6000-cutlass")
STORY = ("expert-parallel", "mscclpp", "single-batch-overlap", "persistent-kernel", "l2-persistence")
NAMES = {
    "expert-parallel": "EP8",
    "mscclpp": "MSCCL++ (messages up to 1 MiB)",
    "single-batch-overlap": "single batch overlap",
    "persistent-kernel": "persistent kernels",
    "l2-persistence": "L2 pinning of weights",
}
TOLD = {
    "expert-parallel": "launched, crashed under load",
    "mscclpp": "about 2 %",
    "single-batch-overlap": "about 2 %",
    "persistent-kernel": "not tried; held to be the way",
    "l2-persistence": "not tried; held to be the way",
}
SHOWN = ("64", "fits", "all")
"""Operating points of the table of ideas."""
COLUMNS = {
    "64": "published",
    "fits": "what fits",
    "all": "as short as fits",
    "dream": "if memory were there",
}
PARTS = {
    "routed_experts": "routed experts (grouped FP4 matmuls)",
    "communication": "all-reduces over PCIe",
    "attention_core": "attention over the cache",
    "attention": "attention's projections",
    "rest": "everything else",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Everything the page says a number of."""

    shape: ModelShape
    plain: ModelShape
    """As SGLang runs it on SM120: without the indexer, attention over the whole cache."""
    box: Box
    memory: MemoryBudget
    fits: int
    """Requests of the chat load that run at once."""
    each_if_all: int
    """Tokens of cache for each request if all 2,048 ran."""
    crossing: int
    """Streams from which communication takes longer than the routed experts, at the chat load's context."""
    calibration: Calibration
    steps: dict[str, StepEstimate]
    prompt: StepEstimate
    """One prompt of 4,096 tokens."""

    def gains(self, name: str) -> dict[str, MechanismCeiling]:
        found = mechanisms.ceilings(
            self.steps[name],
            self.plain,
            self.box,
            LAYOUT,
            memory_fraction=MEMORY_FRACTION,
            reserved_tokens=PROMPT + ANSWER if name == "fits" else None,
        )
        return {one.id: one for one in found}


def answer() -> Answer:
    shape, box = models.load(MODEL), devices.box(BOX)
    plain = published.restored(shape, {}, sparse=False)
    budget = memory.budget(shape, box, LAYOUT, memory_fraction=MEMORY_FRACTION)
    fits = budget.sequences(PROMPT + ANSWER)
    each = budget.cache_tokens // ASKED

    def at(sequences: int, context: int) -> StepEstimate:
        point = OperatingPoint(phase="decode", sequences=sequences, context_tokens=context)
        return step.estimate(plain, box, LAYOUT, point)

    return Answer(
        shape=shape,
        plain=plain,
        box=box,
        memory=budget,
        fits=fits,
        each_if_all=each,
        crossing=crossing(lambda streams: at(streams, MIDDLE)),
        calibration=calibrated(plain, box),
        prompt=step.estimate(
            plain, box, LAYOUT, OperatingPoint(phase="prefill", sequences=1, context_tokens=0, new_tokens=4096)
        ),
        steps={
            "64": at(64, 256),
            "fits": at(fits, MIDDLE),
            "all": at(ASKED, each // 2),
            "dream": at(ASKED, MIDDLE),
        },
    )


def crossing(at: Callable[[int], StepEstimate]) -> int:
    """The smallest number of streams at which all-reduces take longer than the routed experts."""
    low, high = 1, ASKED
    while low < high:
        streams = (low + high) // 2
        parts = by_part(at(streams))
        low, high = (low, streams) if parts["communication"] > parts["routed_experts"] else (streams + 1, high)
    return low


def calibrated(plain: ModelShape, box: Box) -> Calibration:
    """Fitted to the 17 published points of the CUTLASS path."""
    table = load_published()[TABLES[1]]
    seen = []
    for point in table.points:
        work = published.work_of(table, point, point.sequences or 1)
        times = published_times.times_of(work, lambda operating: step.estimate(plain, box, LAYOUT, operating))
        expected = published_times.components_of(times)
        seen.append(fitting.Measured(expected=expected, time_s=work.tokens / point.value))
    return fitting.fit(seen, source=table.id)


def by_part(estimate: StepEstimate, *, floor: bool = False) -> dict[str, float]:
    """Seconds of each part, the host's share in `rest`."""
    found = dict.fromkeys(PARTS, 0.0)
    for op in estimate.ops:
        part = op.part if op.part in PARTS else "rest"
        found[part] += op.floor_s if floor else op.time_s.mid
    if not floor:
        found["rest"] += estimate.overhead_s.mid
    return found


TEMPLATE = """
# The founding question

<!-- Written by `python benchmarks/founding_question.py --write`; a test compares. -->

GLM-5 (744B, 256 experts, top-8) in NVFP4 on 8 RTX PRO 6000 (PCIe 5.0, no NVLink) under SGLang, TP8,
`max_running_requests=2048`. The story's conclusion: *the bottleneck is the small per-expert GEMMs, about 64 tokens per
expert at 2,048 concurrent requests; only a change to how the computation is organized can move it.* Is it the expert
GEMMs, communication, or KV capacity that binds?

**Each of them, at another load; and at 2,048 it is not the GEMMs.**

1. **KV capacity binds first.** Every TP rank holds the whole MLA cache: {tokens:,} tokens in all. Of requests with
{prompt:,} tokens of prompt and {answer:,} of answer {fits} run when each has its room reserved ({fits_mean} at their
mean length); the others of the 2,048 wait. All 2,048 run only if none grows beyond {each} tokens.
2. **At what really runs ({fits} streams) the expert GEMMs are the largest part**: {fit_experts} of {fit_step}
({fit_experts_share}), bound by reading weights: {hit:.0f} of 256 experts are touched, by {per_expert:.1f} tokens each.
So far the story is right, at {per_expert:.0f} tokens an expert instead of 64. All-reduces take {fit_wire_share},
reading the cache {fit_cache_share}.
3. **At 2,048 streams (64 tokens an expert) the wire is the largest part**: {all_wire} of {all_step} ({all_wire_share})
go into all-reduces of 25 MB over PCIe, {all_experts} ({all_experts_share}) into the experts, whose weights are by then
read once for everybody. (That is with {all_context} tokens of context, all that fits. With {middle:,} each, if the
memory were there: cache {dream_cache_share}, all-reduces {dream_wire_share}, experts {dream_experts_share}.)
4. With {middle:,} tokens of context, communication overtakes the experts at about {crossing} streams: more than fit.

## Capacity

{capacity_table}

{per_token:,.0f} bytes a token: 576 x 2 in 78 layers, and 132 in each for the indexer, whose keys are kept although the
engine does not use them on SM120. That is {tokens:,} tokens; the server reported {pool:,} ({pool_error:+.1%}).

## Where a step of decode goes

Expected milliseconds without calibration, and behind the bar the floor (peak bandwidth and arithmetic, no latency).

{time_table}

Calibrated on the 17 published points of the CUTLASS path: factors memory {memory_factor:.2f}, communication
{wire_factor:.2f}, overhead {overhead_factor:.2f}, each sequence {sequence_factor:.2f}. They come
from 1-64 streams: at 2,048 they are extrapolated, and
their range there is too narrow. What they do to the two largest parts:

{calibrated_table}

## What the ideas would be worth at most

Gain in tokens/s, from what little can be expected to the ceiling, by Amdahl over the step; each idea alone.

{worth_table}

Why, in that order, at 2,048 streams unless told otherwise:

{reasons}

Not in the story, at the {fits} streams that fit, those with most to gain on average: {others}. (FP8 cache gave
garbage on SM120 in March 2026.)

## Held against what is known

- 64 streams, empty cache, published: {b12x:,.0f} tokens/s (b12x) and {cutlass:,.0f} (CUTLASS). Predicted before any
calibration: {rate_64}; ceiling {ceiling_64:,.0f}. All points are in
[predicted against published](predicted_against_published.md).
- Prompts: about 4,000 tokens/s published; expected {prompt_rate}, {prompt_wire_share} of it all-reduces. They are
outside of the steps above: with {prompt:,} + {answer:,} tokens, {fits} streams bring {fits} tokens of prompt to each
step of decode, {prompt_cost} at 4,000 tokens/s.
- Multi-token prediction, measured at 64 streams (CUTLASS): from {cutlass:,.0f} to 1,425 tokens/s, +41 %. Expected here:
{mtp}.
- MSCCL++ acts on messages up to 1 MiB: 85 tokens of 12,288 bytes. A gain of "about 2 %" at a load of hundreds of
streams is therefore not its effect; two runs of one code path differ by 3-6 % on that box.
- Single batch overlap hides all-to-all, and TP8 makes none: its "about 2 %" is inside the same noise.
- That EP8 crashed under load has public twins (FP4 and EP on SM120: vllm-project/vllm#32826, sgl-project/sglang#28170).
It reads no fewer bytes of weights than TP8: what it can win comes from wider matmuls, what it can lose from the busiest
rank.

## Where this differs from the story, and what would decide

The story blames the expert GEMMs *at 2,048 requests, 64 tokens an expert*. By this arithmetic that load does not run,
and if it ran, the all-reduces would take longer than the experts. Two assumptions could turn it: the share of
bandwidth that grouped FP4 kernels reach (0.40-0.95 is allowed for; b12x above 8 streams is far below), and that
all-reduces keep the 37-41 GB/s of the micro-benchmark inside a step. Three measurements decide, cheapest first:

1. `#running-req` in the server's log under the load of 2,048 requests. If it stays near {fits}-{fits_mean} (for
{prompt:,} + {answer:,} tokens), capacity binds and the flag only makes a queue.
2. The same load with NCCL's default channels (22 GB/s across sockets instead of 39: unset `NCCL_MIN_NCHANNELS`). If the
wire matters as said here, a step of {fits} streams takes {slower} longer ({slower_share:+.0%}); if only GEMMs matter,
nothing changes.
3. A trace of ten steps of decode (`nsys` or torch's profiler, read by `assay characterize --trace`) at 64 streams and
at the largest running batch: the time of all-reduce kernels beside that of the grouped GEMMs.
"""


def page(found: Answer) -> str:
    fits, everyone, dream = found.steps["fits"], found.steps["all"], found.steps["dream"]
    slower = slow_wire(found) - fits.time_s.mid
    mtp = found.gains("64")["spec-decoding"]
    tables = load_published()
    at_64 = [next(p.value for p in tables[name].points if p.sequences == 64) for name in TABLES]
    told = TEMPLATE.format(
        tokens=found.memory.cache_tokens,
        per_token=found.memory.cache_bytes_per_token,
        pool=POOL_PUBLISHED,
        pool_error=found.memory.cache_tokens / POOL_PUBLISHED - 1,
        prompt=PROMPT,
        answer=ANSWER,
        middle=MIDDLE,
        fits=found.fits,
        fits_mean=found.memory.sequences(MIDDLE),
        each=found.each_if_all,
        fit_step=ms(fits.time_s.mid),
        fit_experts=ms(by_part(fits)["routed_experts"]),
        fit_experts_share=share(fits, "routed_experts"),
        fit_wire_share=share(fits, "communication"),
        fit_cache_share=share(fits, "attention_core"),
        hit=fits.experts_hit,
        per_expert=fits.tokens_per_expert,
        all_step=ms(everyone.time_s.mid),
        all_wire=ms(by_part(everyone)["communication"]),
        all_wire_share=share(everyone, "communication"),
        all_experts=ms(by_part(everyone)["routed_experts"]),
        all_experts_share=share(everyone, "routed_experts"),
        all_context=everyone.point.context_tokens,
        dream_cache_share=share(dream, "attention_core"),
        dream_wire_share=share(dream, "communication"),
        dream_experts_share=share(dream, "routed_experts"),
        crossing=found.crossing,
        capacity_table=capacity_table(found.memory),
        time_table=time_table(found),
        memory_factor=found.calibration.memory,
        wire_factor=found.calibration.communication,
        overhead_factor=found.calibration.overhead,
        sequence_factor=found.calibration.sequences,
        calibrated_table=calibrated_table(found),
        worth_table=worth_table(found),
        reasons=reasons(found),
        others=others(found),
        prompt_rate=rates(found.prompt.tokens_per_s),
        prompt_wire_share=share(found.prompt, "communication"),
        prompt_cost=ms(found.fits / PROMPT_RATE_PUBLISHED),
        mtp=f"{gain(mtp)}, {mtp.gain.mid:+.0%} in the middle",
        b12x=at_64[0],
        cutlass=at_64[1],
        rate_64=rates(found.steps["64"].tokens_per_s),
        ceiling_64=found.steps["64"].ceiling_tokens_per_s,
        slower=ms(slower),
        slower_share=slower / fits.time_s.mid,
    )
    return wrapped(told)


def capacity_table(budget: MemoryBudget) -> str:
    rows = [
        "| on each GPU | GB |",
        "|---|---|",
        f"| weights | {gb(budget.weight_bytes)} |",
        f"| activations and graphs | {gb(budget.activation_bytes + budget.graph_bytes)} |",
        f"| left free (mem-fraction {MEMORY_FRACTION}) | {gb(budget.reserved_bytes)} |",
        f"| cache | {gb(budget.cache_bytes)} |",
    ]
    return "\n".join(rows)


def time_table(found: Answer) -> str:
    steps = list(found.steps.values())
    rows = ["| | " + " | ".join(f"{heading(each)}: {COLUMNS[name]}" for name, each in found.steps.items()) + " |"]
    rows.append("|---|" + "---|" * len(steps))
    for part, name in PARTS.items():
        cells = [
            f"{1e3 * by_part(each)[part]:.1f} ({share(each, part)}) \\| {1e3 * by_part(each, floor=True)[part]:.1f}"
            for each in steps
        ]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    rows += [
        line("**step**", [f"**{1e3 * each.time_s.mid:.0f}** \\| {1e3 * each.floor_s:.0f}" for each in steps]),
        line("range of the step", [f"{1e3 * each.time_s.low:.0f} - {1e3 * each.time_s.high:.0f}" for each in steps]),
        line("tokens/s", [rates(each.tokens_per_s) for each in steps]),
        line("tokens/s, calibrated", [rates(corrected(found, each).tokens_per_s) for each in steps]),
        line("ceiling, tokens/s", [f"{each.ceiling_tokens_per_s:,.0f}" for each in steps]),
        line("tokens per touched expert", [f"{each.tokens_per_expert:.1f}" for each in steps]),
        line("one all-reduce, MB", [message(each) for each in steps]),
    ]
    return "\n".join(rows)


def calibrated_table(found: Answer) -> str:
    rows = ["| streams x context | routed experts | all-reduces |", "|---|---|---|"]
    for each in found.steps.values():
        fixed = corrected(found, each)
        cells = [f"{ms(by_part(fixed)[part])} ({share(fixed, part)})" for part in ("routed_experts", "communication")]
        rows.append(line(heading(each), cells))
    return "\n".join(rows)


def worth_table(found: Answer) -> str:
    gains = [found.gains(name) for name in SHOWN]
    heads = [f"{heading(found.steps[name])}" for name in SHOWN]
    rows = [line("idea", [*heads, "the story"]), "|---|" + "---|" * (len(heads) + 1)]
    rows += [line(NAMES[key], [*(gain(each[key]) for each in gains), TOLD[key]]) for key in STORY]
    return "\n".join(rows)


def reasons(found: Answer) -> str:
    gains = found.gains("all")
    return "\n".join(f"- {NAMES[key]}: {gains[key].reason}." for key in STORY)


def others(found: Answer) -> str:
    gains = found.gains("fits").values()
    best = [one for one in gains if one.applies and one.id not in {*STORY, "max-concurrency"}]
    best.sort(key=lambda one: -one.gain.mid)
    return ", ".join(f"{one.id} ({gain(one)}, {one.gain.mid:+.0%} expected)" for one in best[:5])


def slow_wire(found: Answer) -> float:
    """Expected seconds of the fitting step if large all-reduces ran at 22 GB/s: same page of the source."""
    slow, fast = 22e9, 39.4e9
    extra = 0.0
    for op in found.steps["fits"].ops:
        if op.collective == "all_reduce" and op.message_bytes:
            volume = 2 * 7 / 8 * op.message_bytes
            extra += op.calls * volume * (1 / slow - 1 / fast)
    return found.steps["fits"].time_s.mid + extra


def corrected(found: Answer, estimate: StepEstimate) -> StepEstimate:
    return apply(estimate, found.calibration)


def gain(one: MechanismCeiling) -> str:
    if not one.applies:
        return "none: cannot act"
    return f"{percent(one.gain.low)} to {percent(one.gain.high)}"


def share(estimate: StepEstimate, part: str) -> str:
    return f"{by_part(estimate)[part] / estimate.time_s.mid:.0%}"


def line(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def heading(estimate: StepEstimate) -> str:
    return f"{estimate.point.sequences:,} x {estimate.point.context_tokens:,}"


def message(estimate: StepEstimate) -> str:
    sizes: Sequence[float] = [op.message_bytes or 0.0 for op in estimate.ops if op.collective == "all_reduce"]
    return f"{max(sizes) / 1e6:.1f}"


def rates(rate: Range) -> str:
    return f"{rate.low:,.0f} - {rate.mid:,.0f} - {rate.high:,.0f}"


def percent(part: float) -> str:
    """Without a sign where it rounds to nothing."""
    return "0%" if abs(part) < 0.005 else f"{part:+.0%}"


def ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms"


def gb(size: float) -> str:
    return f"{size / 1e9:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    text = page(answer())
    if parser.parse_args().write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
