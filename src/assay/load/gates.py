"""The client-side gates: what has to hold before a load run counts as a measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from assay.load.metrics import ClientCost, Windows, completed
from assay.load.workload import longest_shared_prefix, workload_hash
from assay.records.load import PlannedRequest, RequestSample
from assay.records.run import Gate
from assay.records.spec import Workload

MAX_LAG_S = 0.050
MAX_CPU_SHARE = 0.5
MIN_IN_FLIGHT_SHARE = 0.95
MAX_CACHED_SHARE = 0.01
ENOUGH_REQUESTS = 5
MAX_SHARED_PREFIX = 8
"""Tokens. No server caches so short a prefix to any effect."""


def load_gates(samples: Sequence[RequestSample], issued: Sequence[PlannedRequest], steady: Gate) -> list[Gate]:
    """Gates on everything that was sent before the drain, whether or not a window was measured."""
    counted = [sample for sample in samples if sample.phase != "drain"]
    whole = [sample for sample in counted if sample.error is None]
    return [
        _no_errors(counted),
        _tokens_counted(whole),
        _tokens_as_asked(whole, issued),
        _prefix_cache_cold(whole),
        _prompts_distinct(issued),
        steady,
    ]


def window_gates(
    samples: Sequence[RequestSample], windows: Windows, workload: Workload, client: ClientCost
) -> list[Gate]:
    """Gates on the measured windows."""
    return [
        _concurrency_held(samples, windows, workload.concurrency),
        _client_not_saturated(client),
        _enough_requests(samples, windows, workload.concurrency),
    ]


def _no_errors(counted: Sequence[RequestSample]) -> Gate:
    errors = [sample.error for sample in counted if sample.error is not None]
    kinds = Counter(error.partition(":")[0] for error in errors)
    by_kind = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    return Gate(
        name="no-errors",
        passed=not errors,
        evidence=f"{len(errors)} of {len(counted)} requests failed"
        + (f" ({by_kind}); the first: {errors[0]}" if errors else ""),
        remedy="" if not errors else "read the server's log at that time; a run with failed requests is no measurement",
    )


def _tokens_counted(whole: Sequence[RequestSample]) -> Gate:
    missing = sum(sample.output_tokens is None or sample.input_tokens is None for sample in whole)
    return Gate(
        name="tokens-counted",
        passed=not missing,
        evidence=f"{missing} of {len(whole)} replies came without `usage`",
        remedy="use a server version that honours stream_options.include_usage" if missing else "",
    )


def _tokens_as_asked(whole: Sequence[RequestSample], issued: Sequence[PlannedRequest]) -> Gate:
    asked = {request.index: request for request in issued}
    other = [s for s in whole if s.output_tokens is not None and s.output_tokens != s.wanted_output_tokens]
    cut = [s for s in whole if s.input_tokens is not None and s.input_tokens < len(asked[s.index].prompt)]
    evidence = f"{len(whole) - len(other)} of {len(whole)} replies have exactly the output length asked for"
    if other:
        evidence += f"; request {other[0].index}: {other[0].output_tokens} of {other[0].wanted_output_tokens}"
    if cut:
        wanted = len(asked[cut[0].index].prompt)
        evidence += f"; {len(cut)} prompts were cut: request {cut[0].index}: {cut[0].input_tokens} of {wanted} tokens"
    return Gate(
        name="tokens-as-asked",
        passed=not (other or cut),
        evidence=evidence,
        remedy="check that the server honours ignore_eos and max_tokens, and that input plus output fit its context"
        if other or cut
        else "",
    )


def _prefix_cache_cold(whole: Sequence[RequestSample]) -> Gate:
    told = [s for s in whole if s.cached_tokens is not None and s.input_tokens is not None]
    cached = sum(sample.cached_tokens or 0 for sample in told)
    prompt = sum(sample.input_tokens or 0 for sample in told)
    passed = cached <= MAX_CACHED_SHARE * prompt
    evidence = f"{cached} of {prompt} prompt tokens came from the prefix cache" if told else "the server does not say"
    return Gate(
        name="prefix-cache-cold",
        passed=passed,
        evidence=evidence,
        remedy="" if passed else "restart the server or reset its prefix cache before the run; nothing here repeats",
    )


def _prompts_distinct(issued: Sequence[PlannedRequest]) -> Gate:
    shared = longest_shared_prefix(request.prompt for request in issued)
    return Gate(
        name="prompts-distinct",
        passed=shared <= MAX_SHARED_PREFIX,
        evidence=f"{len(issued)} prompts share at most {shared} leading tokens; "
        f"workload sha256 {workload_hash(issued)[:16]}",
        remedy="" if shared <= MAX_SHARED_PREFIX else "the tokenizer has too few tokens to tell prompts apart",
    )


def _concurrency_held(samples: Sequence[RequestSample], windows: Windows, concurrency: int) -> Gate:
    busy = dict.fromkeys(range(concurrency), 0)
    for sample in samples:
        overlap = min(sample.ended_ns, windows.end_ns) - max(sample.sent_ns, windows.start_ns)
        busy[sample.stream] += max(overlap, 0)
    worst = min(busy, key=busy.__getitem__)
    share = busy[worst] / (windows.end_ns - windows.start_ns)
    passed = share >= MIN_IN_FLIGHT_SHARE
    return Gate(
        name="concurrency-held",
        passed=passed,
        evidence=f"each of {concurrency} streams was in flight at least {100 * share:.1f}% of the time",
        remedy="" if passed else f"stream {worst} was idle: look for refused connections and for a busy client",
    )


def _client_not_saturated(client: ClientCost) -> Gate:
    passed = client.max_lag_s < MAX_LAG_S and client.cpu_share < MAX_CPU_SHARE
    return Gate(
        name="client-not-saturated",
        passed=passed,
        evidence=f"event loop late by at most {1000 * client.max_lag_s:.1f} ms (limit {1000 * MAX_LAG_S:.0f}), "
        f"{100 * client.cpu_share:.1f}% of a core used (limit {100 * MAX_CPU_SHARE:.0f}%)",
        remedy="" if passed else "the times are the client's own, not the server's: free a core, or use fewer streams",
    )


def _enough_requests(samples: Sequence[RequestSample], windows: Windows, concurrency: int) -> Gate:
    number, needed = len(completed(samples, windows)), min(concurrency, ENOUGH_REQUESTS)
    return Gate(
        name="enough-requests",
        passed=number >= needed,
        evidence=f"{number} requests completed in the windows (at least {needed})",
        remedy="" if number >= needed else "make workload.window_s longer or workload.output_tokens smaller",
    )
