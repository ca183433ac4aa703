"""`vllm bench serve --save-result`, and its ancestor `benchmark_serving.py`.

What is where, read from vLLM's own source: summaries in milliseconds with `numpy.percentile` (linear) over successful
requests; arrays in seconds over all requests, a failed one with output length 0. The arrays `input_lens`,
`output_lens`, `ttfts`, `itls`, `errors` are there with `--save-detailed` (in early 2025's benchmark_serving.py always);
`start_times` since January 2026, `latencies` and `queue_times` since later that year, those two without
`--save-detailed` as well; `failed` since October 2025. E2EL is in the summaries only with
`--percentile-metrics ...,e2el`.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.formats import flat
from assay.formats.columns import RequestColumns
from assay.formats.definitions import Latencies, latencies
from assay.formats.fields import Fields
from assay.formats.told import Told, compared_all, remarks
from assay.records.imported import ImportedResult, LatencyName

NAMES: dict[LatencyName, str] = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
THEIRS: dict[LatencyName, str] = {
    "ttft": "vLLM's TTFT: request sent to its first chunk with choices, even one without text",
    "tpot": "vLLM's TPOT: (latency - TTFT) / (output tokens - 1), as ours",
    "itl": "vLLM's ITL: every gap between chunks, pooled, as ours",
    "e2e": "vLLM's E2EL: request sent to its last chunk (some versions, for chat: to the usage chunk after it)",
}
NEEDS: dict[LatencyName, str] = {
    "ttft": "the file has no `ttfts`: `vllm bench serve --save-detailed` writes them",
    "tpot": "the file has no `ttfts`, `output_lens` and latencies: `vllm bench serve --save-detailed` writes them",
    "itl": "the file has no `itls`: `vllm bench serve --save-detailed` writes them",
    "e2e": "the file has neither `latencies` nor `ttfts` and `itls`: `vllm bench serve --save-detailed` writes them",
}
QUEUED_S = 1e-3
"""Mean wait for a place in the client from which on it is worth a word."""


def read(documents: Sequence[Fields]) -> list[ImportedResult]:
    """One result for each row.

    Raises:
        UsageError: a value has the wrong type.
    """
    return [_result(fields, index) for index, fields in enumerate(documents)]


def _result(fields: Fields, index: int) -> ImportedResult:
    columns = flat.columns(fields)
    ours = latencies(columns) if columns else None
    told = {name: Told(summary=flat.told(fields, key), definition=THEIRS[name]) for name, key in NAMES.items()}
    completed, failed = fields.count("completed"), fields.count("failed")
    if failed is None and columns is not None:
        failed = columns.num_failed
    return ImportedResult(
        file=fields.file,
        index=index,
        kind="vllm",
        tool="vllm bench serve",
        tool_version=fields.label("vllm_version", "version"),
        model=fields.label("model_id"),
        settings=_settings(fields),
        num_requests=len(columns) if columns else _sum(completed, failed),
        completed=completed,
        failed=failed,
        duration_s=fields.number("duration"),
        rates=flat.recomputed_rates(fields),
        tool_rates=flat.tool_rates(fields),
        latencies=compared_all(ours, told, NEEDS),
        warnings=_warnings(fields, columns, ours, failed),
    )


def _settings(fields: Fields) -> dict[str, str | int | float]:
    names = {"concurrency": "max_concurrency", "burstiness": "burstiness", "prompts": "num_prompts"}
    names |= {"backend": "backend", "label": "label", "ramp_up": "ramp_up_strategy", "tokenizer": "tokenizer_id"}
    return fields.words(rate_per_s="request_rate", **names)


def _warnings(fields: Fields, columns: RequestColumns | None, ours: Latencies | None, failed: int | None) -> list[str]:
    found = ["throughput is over the whole run, its ramp-up and its last stragglers included"]
    found += remarks(columns, ours, failed) + flat.chunk_remarks(columns, ours)
    completed = fields.count("completed")
    if failed is None:
        found.append("this version of vLLM does not write how many requests failed")
    good = len(columns.successes()) + columns.num_empty if columns else completed
    if completed is not None and good != completed:
        found.append(f"the file says that {completed:,} requests completed, its arrays hold {good:,}")
    if columns and "latencies" not in fields:
        found.append("the file has no `latencies`: E2E is TTFT plus the request's gaps, that is to its last chunk")
    for name, key in NAMES.items():
        if flat.is_zero(fields, key):
            found.append(f"vLLM wrote 0 for {name.upper()}, which it does where it measured nothing: not taken over")
    if (waited := fields.numbers("queue_times")) and sum(waited) / len(waited) > QUEUED_S:
        found.append(
            f"requests waited {1000 * sum(waited) / len(waited):,.1f} ms on average for a place in the client before "
            "they were sent; TTFT and E2E begin after that wait"
        )
    return found


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
