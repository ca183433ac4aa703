"""What a load test found besides latency, as named sentences: throughput, load, client. Formatting only."""

from __future__ import annotations

from collections.abc import Sequence

from assay.records.bench import BenchMeasures, BenchResult, Client
from assay.render.bench_words import ratio_words, slo_words, time_words
from assay.render.words import NOTHING, number_words
from assay.units import MIB_BYTES

MAX_LISTED = 6
Facts = list[tuple[str, str]]
"""Name and sentence."""


def throughput_facts(result: BenchResult) -> Facts:
    """Tokens, requests, goodput; these stand or fall with the gates."""
    measures = result.measures
    if measures is None:
        return []
    completed = f"{number_words(measures.requests_per_s)}/s; {measures.requests_completed:,} completed"
    return [
        (
            "output",
            f"{number_words(measures.output_tokens_per_s)} tokens/s ({_by_window(measures.window_tokens_per_s)})",
        ),
        ("total", f"{number_words(measures.total_tokens_per_s)} tokens/s, prompts included"),
        ("requests", f"{completed} in {measures.duration_s:g} s"),
        ("goodput", _goodput(result, measures)),
    ]


def _by_window(values: Sequence[float]) -> str:
    if len(values) > MAX_LISTED:
        return f"lowest window {number_words(min(values))}, highest {number_words(max(values))}"
    return f"window by window: {', '.join(map(number_words, values))}"


def _goodput(result: BenchResult, measures: BenchMeasures) -> str:
    if measures.goodput_per_s is None:
        return "no SLO was given (--slo ttft=500ms,tpot=50ms)"
    share = ratio_words(measures.goodput_per_s, measures.requests_per_s)
    met = slo_words(result.spec.slo)
    since = "" if result.spec.arrival.kind == "closed" else ", counted from the intended send"
    return f"{number_words(measures.goodput_per_s)} requests/s, {share} of those completed, met {met}{since}"


def load_facts(result: BenchResult) -> Facts:
    """Whether the load was what it was meant to be: errors, arrival, lengths."""
    facts = [*(("note", note) for note in result.notes), ("failed", failed_words(result))]
    if result.first_error:
        facts.append(("first error", result.first_error))
    measures = result.measures
    if measures is None:
        return facts
    facts.append(("offered", _offered(measures, result.spec.arrival.kind)))
    facts.append(("in flight", _in_flight(result, measures)))
    facts += [(f"{side} length", _realised(result, f"{side}_tokens")) for side in ("input", "output")]
    facts.append(("chunks", f"{measures.tokens_per_chunk:.2f} tokens each"))
    return facts


def failed_words(result: BenchResult) -> str:
    """For example "3 of 512: 2 http-503, 1 reset"."""
    failed = sum(result.errors.values())
    kinds = sorted(result.errors.items(), key=lambda item: (-item[1], item[0]))
    by_kind = ", ".join(f"{count:,} {kind}" for kind, count in kinds)
    return f"{failed:,} of {result.num_requests:,} requests" + (f": {by_kind}" if by_kind else "")


def _offered(measures: BenchMeasures, law: str) -> str:
    sent = f"{number_words(measures.sent_per_s)} requests/s sent"
    if measures.offered_per_s is None:
        return f"{sent} (closed loop: the server sets the pace)" if law == "closed" else sent
    share = ratio_words(measures.sent_per_s, measures.offered_per_s)
    cv = "" if measures.arrival_cv is None else f"; CV of the gaps {measures.arrival_cv:.2f}"
    return f"{sent}, {share} of {number_words(measures.offered_per_s)} due{cv}"


def _in_flight(result: BenchResult, measures: BenchMeasures) -> str:
    arrival = result.spec.arrival
    wanted = f" of {arrival.concurrency}" if arrival.kind == "closed" else ""
    return f"{number_words(measures.mean_in_flight)}{wanted} on average, {measures.max_in_flight:,} at most"


def _realised(result: BenchResult, name: str) -> str:
    known = [(words, result.realised.get(f"{name}_{words}")) for words in ("mean", "p50", "max")]
    found = ", ".join(f"{words} {number_words(value)}" for words, value in known if value is not None)
    return f"{found} tokens" if found else "the server does not say"


def client_facts(result: BenchResult) -> Facts:
    """What the measuring cost, and how far it can be believed."""
    client = result.client
    tokens = result.measures.output_tokens_per_s if result.measures else None
    return [
        ("client", _cost(client)),
        ("stamps", _stamps(client)),
        ("wake-up lag", _late(client.lag_p50_s, client.lag_p99_s, client.lag_max_s)),
        ("send error", _late(client.schedule_error_p50_s, client.schedule_error_p99_s, client.schedule_error_max_s)),
        ("memory", _memory(client)),
        ("ceiling", _ceiling(client, tokens)),
    ]


def _cost(client: Client) -> str:
    count = f"{client.processes} process{'es' if client.processes > 1 else ''}"
    busiest = f", the busiest {100 * client.busiest_share:.0f}% of one" if client.processes > 1 else ""
    per_token = client.cpu_s_per_million_tokens
    cost = "" if per_token is None else f"; {number_words(per_token)} CPU s per million tokens"
    return f"{count}, {client.cpu_share:.2f} cores{busiest}{cost}"


def _stamps(client: Client) -> str:
    source = {
        "kernel": "the kernel's receive timestamps",
        "event-loop": "taken when the event loop read the bytes",
    }[client.stamps]
    return f"{source}; {100 * client.merged_share:.1f}% of chunks share one with the chunk before"


def _late(p50_s: float | None, p99_s: float | None, max_s: float | None) -> str:
    if p50_s is None and p99_s is None and max_s is None:
        return NOTHING
    return f"p50 {time_words(p50_s)}, p99 {time_words(p99_s)}, max {time_words(max_s)}"


def _memory(client: Client) -> str:
    if client.rss_bytes is None:
        return NOTHING
    growth = client.rss_growth_bytes_per_s
    words = "" if growth is None else f", {60 * growth / MIB_BYTES:+.1f} MiB a minute"
    return f"{client.rss_bytes / MIB_BYTES:,.0f} MiB{words}"


def _ceiling(client: Client, tokens_per_s: float | None) -> str:
    """What these processes could take, against what they had to."""
    if client.ceiling_tokens_per_s is None:
        return "not calibrated on this machine"
    words = f"{number_words(client.ceiling_tokens_per_s)} tokens/s from the null server"
    if tokens_per_s:
        words += f", {client.ceiling_tokens_per_s / tokens_per_s:.1f} times what was measured"
    if client.null_server_tokens_per_s is not None:
        words += f" (it can send {number_words(client.null_server_tokens_per_s)})"
    return words
