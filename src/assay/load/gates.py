"""The client-side gates: what has to hold before a load test counts as a measurement."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from assay.load.columns import MISSING, Bools, Columns
from assay.load.metrics import ClientCost, Windows, completed
from assay.load.spool import MAX_SHARED
from assay.records.run import Gate

MAX_LAG_S = 0.050
MAX_LAG_KERNEL_S = 0.250
"""With the kernel's stamps a late loop only sends the next request late, which `concurrency-held` sees as well."""
MAX_CPU_SHARE = 0.9
"""Of the busiest load process: beyond it, bytes wait in the socket and chunks are read in bunches."""
MIN_IN_FLIGHT_SHARE = 0.95
MAX_CACHED_SHARE = 0.01
ENOUGH_REQUESTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a load test is held to."""

    steady: Gate
    force_length: bool = True
    max_error_share: float = 0.0
    workload_sha256: str = ""


def load_gates(requests: Columns, windows: Windows | None, rules: Rules) -> list[Gate]:
    """Gates on everything that was sent before the drain, whether or not a window was measured."""
    before = ~requests.cut
    if windows is not None:
        before &= requests.sent_ns < windows.end_ns
    whole = before & requests.ok
    return [
        _no_errors(requests, before, rules.max_error_share),
        _tokens_counted(requests, whole),
        _tokens_as_asked(requests, whole, force_length=rules.force_length),
        _prefix_cache_as_declared(requests, whole),
        _prompts_distinct(requests, rules.workload_sha256),
        _stamps_in_order(requests),
        rules.steady,
    ]


def window_gates(requests: Columns, windows: Windows, concurrency: int | None, client: ClientCost) -> list[Gate]:
    """Gates on the measured windows.

    Args:
        requests: all of the test.
        windows: the measured windows.
        concurrency: streams of a closed loop; None for an open arrival law.
        client: what the measuring cost.
    """
    held = [] if concurrency is None else [_concurrency_held(requests, windows, concurrency)]
    return [*held, _client_not_saturated(client), _enough_requests(requests, windows, concurrency or ENOUGH_REQUESTS)]


def _no_errors(requests: Columns, before: Bools, max_share: float) -> Gate:
    errors = [requests.errors[number] or "" for number in np.flatnonzero(before & ~requests.ok)]
    total = int(before.sum())
    kinds = Counter(error.partition(":")[0] for error in errors)
    by_kind = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    passed = len(errors) <= max_share * total
    return Gate(
        name="no-errors",
        passed=passed,
        evidence=f"{len(errors)} of {total} requests failed"
        + (f" ({by_kind}); the first: {errors[0]}" if errors else "")
        + (f"; allowed: {100 * max_share:g}%" if max_share else ""),
        remedy="" if passed else "read the server's log at that time; a run with failed requests is no measurement",
    )


def _tokens_counted(requests: Columns, whole: Bools) -> Gate:
    missing = int((whole & ((requests.output_tokens == MISSING) | (requests.input_tokens == MISSING))).sum())
    return Gate(
        name="tokens-counted",
        passed=not missing,
        evidence=f"{missing} of {int(whole.sum())} replies came without `usage`",
        remedy="use a server version that honours stream_options.include_usage" if missing else "",
    )


def _tokens_as_asked(requests: Columns, whole: Bools, *, force_length: bool) -> Gate:
    known_in = (requests.input_tokens != MISSING) & (requests.wanted_input_tokens != MISSING)
    cut = np.flatnonzero(whole & known_in & (requests.input_tokens < requests.wanted_input_tokens))
    known_out = requests.output_tokens != MISSING
    wrong = whole & known_out & (requests.output_tokens != requests.wanted_output_tokens)
    longer = whole & known_out & (requests.output_tokens > requests.wanted_output_tokens)
    other = np.flatnonzero(wrong if force_length else longer)
    total = int(whole.sum())
    kind = "exactly the output length asked for" if force_length else "at most the output length asked for"
    evidence = f"{total - len(other)} of {total} replies have {kind}"
    if len(other):
        first = other[0]
        evidence += (
            f"; request {requests.index[first]}: {requests.output_tokens[first]} "
            f"of {requests.wanted_output_tokens[first]}"
        )
    if len(cut):
        first, wanted = cut[0], requests.wanted_input_tokens[cut[0]]
        evidence += (
            f"; {len(cut)} prompts were cut: request {requests.index[first]}: "
            f"{requests.input_tokens[first]} of {wanted} tokens"
        )
    bad = bool(len(other) or len(cut))
    return Gate(
        name="tokens-as-asked",
        passed=not bad,
        evidence=evidence,
        remedy="check that the server honours ignore_eos and max_tokens, and that input plus output fit its context"
        if bad
        else "",
    )


def _prefix_cache_as_declared(requests: Columns, whole: Bools) -> Gate:
    told = whole & (requests.cached_tokens != MISSING) & (requests.input_tokens != MISSING)
    cached = int(requests.cached_tokens[told].sum())
    prompt = int(requests.input_tokens[told].sum())
    declared = int(requests.shared_tokens[told].sum())
    passed = cached <= declared + MAX_CACHED_SHARE * prompt
    evidence = (
        f"{cached} of {prompt} prompt tokens came from the prefix cache" if told.any() else "the server does not say"
    )
    if declared:
        evidence += f"; {declared} are declared to be shared"
    return Gate(
        name="prefix-cache-as-declared",
        passed=passed,
        evidence=evidence,
        remedy=""
        if passed
        else "restart the server or reset its prefix cache before the run; nothing else here repeats",
    )


def _prompts_distinct(requests: Columns, workload_sha256: str) -> Gate:
    first_turns = np.flatnonzero(requests.turn == 0)
    openings = Counter(opening for number in first_turns if (opening := requests.openings[number]))
    repeated = sum(count - 1 for count in openings.values())
    return Gate(
        name="prompts-distinct",
        passed=not repeated,
        evidence=f"{repeated} of {len(first_turns)} prompts begin as another one does (more than {MAX_SHARED} tokens "
        f"beyond what is declared); workload sha256 {workload_sha256[:16]}",
        remedy="" if not repeated else "a prefix cache answers repeated prompts: use a workload whose requests differ",
    )


def _stamps_in_order(requests: Columns) -> Gate:
    early = int(((requests.first_ns != MISSING) & (requests.first_ns < requests.sent_ns)).sum())
    at_ns = requests.chunk_ns
    same = requests.chunk_request[1:] == requests.chunk_request[:-1] if len(at_ns) else np.empty(0, dtype=np.bool_)
    back = int((same & (np.diff(at_ns) < 0)).sum())
    passed = not (early or back)
    return Gate(
        name="stamps-in-order",
        passed=passed,
        evidence=f"{early} answers arrived before their request was sent, {back} chunks before the one before them",
        remedy="" if passed else "the machine's clock was set during the run: repeat it",
    )


def _concurrency_held(requests: Columns, windows: Windows, concurrency: int) -> Gate:
    overlap = np.minimum(requests.ended_ns, windows.end_ns) - np.maximum(requests.sent_ns, windows.start_ns)
    inside = requests.stream < concurrency
    busy = np.bincount(requests.stream[inside], weights=np.maximum(overlap, 0)[inside], minlength=concurrency)
    worst = int(busy.argmin())
    share = float(busy[worst]) / (windows.end_ns - windows.start_ns)
    passed = share >= MIN_IN_FLIGHT_SHARE
    return Gate(
        name="concurrency-held",
        passed=passed,
        evidence=f"each of {concurrency} streams was in flight at least {100 * share:.1f}% of the time",
        remedy="" if passed else f"stream {worst} was idle: look for refused connections and for a busy client",
    )


def _client_not_saturated(client: ClientCost) -> Gate:
    limit_s = MAX_LAG_KERNEL_S if client.kernel_stamps else MAX_LAG_S
    passed = client.max_lag_s < limit_s and client.busiest_share < MAX_CPU_SHARE
    return Gate(
        name="client-not-saturated",
        passed=passed,
        evidence=f"event loop late by at most {1000 * client.max_lag_s:.1f} ms (limit {1000 * limit_s:.0f}), "
        f"{100 * client.busiest_share:.1f}% of a core used by the busiest load process "
        f"(limit {100 * MAX_CPU_SHARE:.0f}%)",
        remedy="" if passed else "the times are the client's own, not the server's: free a core, or use fewer streams",
    )


def _enough_requests(requests: Columns, windows: Windows, concurrency: int) -> Gate:
    number, needed = int(completed(requests, windows).sum()), min(concurrency, ENOUGH_REQUESTS)
    return Gate(
        name="enough-requests",
        passed=number >= needed,
        evidence=f"{number} requests completed in the windows (at least {needed})",
        remedy=""
        if number >= needed
        else "should it stay so on a quiet machine, make the windows longer or the answers shorter",
    )
