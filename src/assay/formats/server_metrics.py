"""What an inference server's Prometheus counters say of its times: vLLM, SGLang and llama.cpp, each by its own names.

Source of the names: vLLM's and SGLang's metrics documentation, and `/metrics` of llama-server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.records.attribution import ServerTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Of one engine: histograms by their base name, counters and gauges as they are; the first that exists counts."""

    queue: tuple[str, ...] = ()
    prefill: tuple[str, ...] = ()
    ttft: tuple[str, ...] = ()
    tpot: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    prompt_tokens: tuple[str, ...] = ()
    output_tokens: tuple[str, ...] = ()
    preemptions: tuple[str, ...] = ()


ENGINES: dict[str, _Names] = {
    "vllm": _Names(
        queue=("vllm:request_queue_time_seconds",),
        prefill=("vllm:request_prefill_time_seconds",),
        ttft=("vllm:time_to_first_token_seconds",),
        tpot=(
            "vllm:request_time_per_output_token_seconds",
            "vllm:inter_token_latency_seconds",
            "vllm:time_per_output_token_seconds",
        ),
        running=("vllm:num_requests_running",),
        waiting=("vllm:num_requests_waiting",),
        steps=("vllm:iteration_tokens_total_count",),
        requests=("vllm:request_success_total",),
        prompt_tokens=("vllm:prompt_tokens_total",),
        output_tokens=("vllm:generation_tokens_total",),
        preemptions=("vllm:num_preemptions_total",),
    ),
    "sglang": _Names(
        queue=("sglang:queue_time_seconds",),
        ttft=("sglang:time_to_first_token_seconds",),
        tpot=("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
        running=("sglang:num_running_reqs",),
        waiting=("sglang:num_queue_reqs",),
        requests=("sglang:num_requests_total",),
        prompt_tokens=("sglang:prompt_tokens_total",),
        output_tokens=("sglang:generation_tokens_total",),
        preemptions=("sglang:num_retractions_total", "sglang:num_retracted_reqs"),
    ),
    "llamacpp": _Names(
        running=("llamacpp:requests_processing",),
        waiting=("llamacpp:requests_deferred",),
        steps=("llamacpp:n_decode_total",),
        prompt_tokens=("llamacpp:prompt_tokens_total",),
        output_tokens=("llamacpp:tokens_predicted_total",),
    ),
}
LLAMACPP_TPOT_S = ("llamacpp:tokens_predicted_seconds_total", "llamacpp:tokens_predicted_total")
"""Its counter of seconds sums over slots, each of which counts the whole time of a step: a quotient is a TPOT."""
LLAMACPP_BUSY = "llamacpp:n_busy_slots_per_decode"


def server_times(
    before: Mapping[str, float] | None, after: Mapping[str, float], watched_s: float | None, running: float | None
) -> ServerTimes | None:
    """Means over what happened between two readings, or since the server started where `before` is None.

    Args:
        before: name to value, summed over labels, at the beginning.
        after: the same at the end.
        watched_s: between the two.
        running: mean of the gauge of running requests over that time; None: it was not watched.

    Returns:
        None when the counters are of no engine that is known.
    """
    engine = next((name for name in ENGINES if any(key.startswith(f"{name}:") for key in after)), None)
    if engine is None:
        return None
    names = ENGINES[engine]
    reading = _Reading(before or {}, after)
    requests = reading.delta(names.requests) or reading.delta(tuple(f"{name}_count" for name in names.ttft))
    tokens, prompts = reading.delta(names.output_tokens), reading.delta(names.prompt_tokens)
    tpot = reading.mean(names.tpot)
    busy = after.get(LLAMACPP_BUSY)
    if engine == "llamacpp":
        tpot = reading.quotient(*LLAMACPP_TPOT_S)
    return ServerTimes(
        engine=engine,
        watched_s=watched_s if before is not None else None,
        requests=requests,
        queue_s=reading.mean(names.queue),
        prefill_s=reading.mean(names.prefill),
        ttft_s=reading.mean(names.ttft),
        tpot_s=tpot,
        running=running if running is not None else busy,
        waiting=reading.now(names.waiting),
        steps=reading.delta(names.steps),
        output_tokens_per_s=tokens / watched_s if tokens and watched_s and before is not None else None,
        input_tokens=prompts / requests if prompts and requests else None,
        output_tokens=tokens / requests if tokens and requests else None,
        preemptions=reading.delta(names.preemptions),
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """Two readings of the counters."""

    before: Mapping[str, float]
    after: Mapping[str, float]

    def now(self, names: tuple[str, ...]) -> float | None:
        return next((self.after[name] for name in names if name in self.after), None)

    def delta(self, names: tuple[str, ...]) -> float | None:
        """What was added; None where the counter is missing, or fell (the server was started anew)."""
        name = next((name for name in names if name in self.after), None)
        added = None if name is None else self.after[name] - self.before.get(name, 0.0)
        return added if added is not None and 0 <= added < float("inf") else None

    def mean(self, names: tuple[str, ...]) -> float | None:
        """Of a histogram; None when nothing was added."""
        return next((found for name in names if (found := self.quotient(f"{name}_sum", f"{name}_count"))), None)

    def quotient(self, above: str, below: str) -> float | None:
        total, count = self.delta((above,)), self.delta((below,))
        return total / count if total is not None and count else None
