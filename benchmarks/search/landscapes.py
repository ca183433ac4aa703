"""Landscapes: what every setting of some dials gives, so that ways to search can be held against the truth.

Four: one recorded from real runs (`record_llamacpp.py` made it), one that behaves as a GPU server does, with a KV
cache cliff and settings that run out of memory, one that is nearly flat but for an interaction, and one of drafting
tokens, which no choice of the method looked at.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from assay.records.base import Flags, FlagValue
from assay.records.dials import Dial, Knob
from assay.records.spec import Workload

RECORDED = Path(__file__).parents[2] / "examples" / "landscapes" / "llamacpp-cpu.json"


@dataclass(frozen=True)
class Landscape:
    """A truth to be searched."""

    name: str
    dial: Dial
    baseline: Flags
    """By flag."""
    truth: Callable[[Flags], float | None]
    """By knob name; None: the server runs out of memory."""
    noise: float
    """Standard deviation of one run's log value."""
    run_s: float
    """One launch and its measurement."""
    failed_s: float
    """A launch that fails."""
    workload: Workload = field(default_factory=Workload)
    origin: str = "simulated"


def landscapes(seed: int) -> list[Landscape]:
    """Those simulated differ from seed to seed, so that no way of searching is right by the place it begins at."""
    found = [recorded()] if RECORDED.exists() else []
    return [*found, gpu_server(seed), flat(seed), drafting(seed)]


LLAMACPP_ESTIMATE = (
    "min(dial.parallel, workload.concurrency) / (0.85 + min(dial.parallel, workload.concurrency) * (1 / dial.threads + "
    "(workload.input_tokens_min + workload.input_tokens_max) / (workload.output_tokens_min + "
    "workload.output_tokens_max) * (1 / dial.threads + 0.85 / min(dial.ubatch, workload.input_tokens_max))))"
)
"""Of the catalogue's entry `dial-cpu-batching`; written before the landscape was recorded."""


def recorded(path: Path = RECORDED) -> Landscape:
    """Means of the repeats as truth, their spread as noise."""
    content = json.loads(path.read_text())
    names = {"--threads": "threads", "--ubatch-size": "ubatch", "--parallel": "parallel"}
    values: dict[tuple[FlagValue, ...], list[float]] = defaultdict(list)
    for row in content["rows"]:
        if row["point"] is not None and row["status"] == "ok":
            values[tuple(row["point"][flag] for flag in names)].append(row["output_tokens_per_s"])
    mean = {point: math.exp(statistics.fmean(map(math.log, found))) for point, found in values.items()}
    squares = [(math.log(v) - math.log(mean[p])) ** 2 for p, found in values.items() for v in found if len(found) > 1]
    degrees = sum(len(found) - 1 for found in values.values())
    knobs = [
        Knob(name="threads", flag="--threads", low=1, high=2, step=1),
        Knob(name="ubatch", flag="--ubatch-size", low=8, high=512, factor=4, memory="more"),
        Knob(name="parallel", flag="--parallel", low=1, high=8, factor=2),
    ]
    runs = [row["duration_s"] for row in content["rows"] if row["status"] == "ok"]
    return Landscape(
        name="llama.cpp, 2 cores",
        dial=Dial(knobs=knobs, estimate=LLAMACPP_ESTIMATE, max_launches=1000),
        baseline=content["baseline"],
        truth=lambda settings: mean.get(tuple(settings[name] for name in names.values())),
        noise=math.sqrt(sum(squares) / degrees) if degrees else 0.02,
        run_s=statistics.fmean(runs),
        failed_s=2.0,
        workload=Workload.model_validate(content["workload"]),
        origin=f"recorded, {len(mean)} settings, {sum(map(len, values.values()))} runs",
    )


SEQUENCES, INPUT, OUTPUT = 256, 1024, 256
"""Closed-loop load of the simulated GPU server."""
CAPACITY_BYTES, FIXED_BYTES = 80e9, 3e9
ACTIVATION_BYTES_PER_TOKEN, GRAPH_BYTES_PER_SEQUENCE = 380e3, 2.5e6


def gpu_server(seed: int) -> Landscape:
    """Named as vLLM names its flags; its numbers are made up, its shape is not.

    More sequences amortize the weights, until they outgrow the KV cache and are preempted (the cliff). A larger token
    budget lets prefill keep pace and takes memory from the cache. More memory is more cache, until it is none. The
    seed draws the model: its weights, its cache a token, its fixed and growing cost of a step.
    """
    rng = random.Random(f"gpu {seed}")
    server = GpuServer(
        weights_bytes=rng.uniform(44e9, 56e9),
        kv_bytes_per_token=rng.uniform(70e3, 160e3),
        fixed_s=rng.uniform(0.006, 0.016),
        per_sequence_s=rng.uniform(25e-6, 45e-6),
        per_token_s=rng.uniform(15e-6, 30e-6),
        most_share=rng.choice([0.92, 0.94, 0.96, 0.98]),
    )
    dial = Dial(
        knobs=[
            Knob(name="seqs", flag="--max-num-seqs", low=16, high=256, step=16, memory="more"),
            Knob(name="tokens", flag="--max-num-batched-tokens", low=512, high=16384, factor=2, memory="more"),
            Knob(name="memory", flag="--gpu-memory-utilization", low=0.80, high=0.98, step=0.02, memory="more"),
        ],
        constraints=["dial.tokens >= dial.seqs"],
        estimate=GPU_ESTIMATE,
        max_launches=1000,
    )
    return Landscape(
        name="GPU server with a KV cliff",
        dial=dial,
        baseline={"--max-num-seqs": 64, "--max-num-batched-tokens": 2048, "--gpu-memory-utilization": 0.90},
        truth=server.tokens_per_s,
        noise=0.015,
        run_s=420.0 + 180.0,
        failed_s=300.0,
        workload=Workload(concurrency=SEQUENCES, input_tokens=(INPUT, INPUT), output_tokens=(OUTPUT, OUTPUT)),
    )


@dataclass(frozen=True)
class GpuServer:
    """The simulated server's truth."""

    weights_bytes: float
    kv_bytes_per_token: float
    fixed_s: float
    per_sequence_s: float
    per_token_s: float
    most_share: float

    def tokens_per_s(self, settings: Flags) -> float | None:
        """Output tokens/s; None: out of memory."""
        seqs, tokens, share = (float(settings[name]) for name in ("seqs", "tokens", "memory"))
        activation = ACTIVATION_BYTES_PER_TOKEN * tokens
        taken = share * CAPACITY_BYTES + GRAPH_BYTES_PER_SEQUENCE * seqs + 0.25 * activation
        holds = (share * CAPACITY_BYTES - self.weights_bytes - FIXED_BYTES - activation) / self.kv_bytes_per_token
        holds /= INPUT + OUTPUT / 2
        if taken > (self.most_share + 0.015) * CAPACITY_BYTES or holds < 1:
            return None
        wanted, ratio = min(seqs, SEQUENCES), INPUT / OUTPUT
        decoding = min(wanted, holds, tokens / (1 + ratio))
        growing = self.per_sequence_s + self.per_token_s * (1 + ratio)
        step_s = self.fixed_s + growing * decoding + 1.2e-6 * max(0.0, tokens - 4096)
        return decoding / step_s / (1 + 0.8 * max(0.0, wanted / holds - 1))


GPU_ESTIMATE = (
    "min(dial.seqs, workload.concurrency, dial.tokens / 5, (dial.memory * 80 - 53) / 0.13) / (0.012 + 0.00014 * "
    "min(dial.seqs, workload.concurrency, dial.tokens / 5, (dial.memory * 80 - 53) / 0.13))"
)
"""A roofline as it would be drawn up front, the same for every draw: another balance of fixed and growing cost, a cache
of another size, and neither preemption nor activations nor running out of memory."""


def flat(seed: int) -> Landscape:
    """Four knobs that do little one by one; one backend gains 7% where the block size suits. Nothing is estimated."""
    rng = random.Random(f"flat {seed}")
    backends = ["one", "two", "three"]
    gains, special = rng.sample([0.0, -0.01, 0.005], 3), rng.choice(backends)
    best_block, best_chunk, sign = rng.uniform(3.0, 6.0), rng.uniform(8.0, 12.0), rng.choice([-1, 1])

    def truth(settings: Flags) -> float:
        block, chunk = math.log2(float(settings["block"])), math.log2(float(settings["chunk"]))
        value = 0.01 * math.sin(block) - 0.001 * (chunk - best_chunk) ** 2
        value += dict(zip(backends, gains, strict=True))[str(settings["backend"])]
        value += sign * 0.004 * float(settings["streams"])
        if settings["backend"] == special:
            value += 0.07 * math.exp(-((block - best_block) ** 2) / 2)
        return 1000 * math.exp(value)

    return Landscape(
        name="flat, with an interaction",
        dial=Dial(
            knobs=[
                Knob(name="block", flag="--block-size", low=8, high=64, factor=2),
                Knob(name="chunk", flag="--chunk", low=256, high=4096, factor=2),
                Knob(name="backend", flag="--backend", choices=list(backends)),
                Knob(name="streams", flag="--streams", low=1, high=4, step=1),
            ],
            max_launches=1000,
        ),
        baseline={"--block-size": 16, "--chunk": 1024, "--backend": "one", "--streams": 1},
        truth=truth,
        noise=0.01,
        run_s=60.0,
        failed_s=20.0,
    )


def drafting(seed: int) -> Landscape:
    """Speculative decoding: which draft, how many tokens of it, how many sequences at once. Nothing is estimated.

    A longer draft is accepted less and costs more; more sequences leave less idle arithmetic to verify it with. With
    acceptance a of each token, k drafted ones give (1 - a^(k + 1)) / (1 - a) tokens a step: Leviathan, Kalman & Matias
    2023, equation 1. The acceptances, what drafts cost and the machine's balance are drawn.
    """
    rng = random.Random(f"drafting {seed}")
    accepted = {"lookup": rng.uniform(0.3, 0.6), "small": rng.uniform(0.6, 0.8), "heads": rng.uniform(0.55, 0.85)}
    costs = {"lookup": 0.005, "small": rng.uniform(0.06, 0.15), "heads": rng.uniform(0.02, 0.06)}
    tokens_per_read, per_sequence = rng.uniform(40, 160), rng.uniform(0.002, 0.012)

    def truth(settings: Flags) -> float:
        sequences, drafted, kind = float(settings["seqs"]), float(settings["drafted"]), str(settings["draft"])
        tokens = sequences * (drafted + 1)
        # Reading the weights and doing the arithmetic overlap, and not wholly; the unit of time is one read.
        step = (1 + (tokens / tokens_per_read) ** 3) ** (1 / 3) + per_sequence * sequences + costs[kind] * drafted
        gained = (1 - accepted[kind] ** (drafted + 1)) / (1 - accepted[kind])
        return float(100 * sequences * gained / step / (1 + (sequences / 48) ** 2))

    return Landscape(
        name="drafting tokens",
        dial=Dial(
            knobs=[
                Knob(name="draft", flag="--draft", choices=list(accepted)),
                Knob(name="drafted", flag="--drafted", low=1, high=10, step=1),
                Knob(name="seqs", flag="--max-num-seqs", low=4, high=128, factor=2),
            ],
            max_launches=1000,
        ),
        baseline={"--draft": "lookup", "--drafted": 5, "--max-num-seqs": 16},
        truth=truth,
        noise=0.015,
        run_s=240.0,
        failed_s=60.0,
    )
