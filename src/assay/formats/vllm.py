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
from assay.formats.fields import Fields
from assay.records.imported import ImportedResult, LatencyName

TOOL = flat.Tool(
    kind="vllm",
    command="vllm bench serve",
    name="vLLM",
    saved_by="`vllm bench serve --save-result --save-detailed`",
    keys={"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"},
)
THEIRS: dict[LatencyName, str] = {
    "ttft": "vLLM's TTFT: request sent to its first chunk with choices, even one without text",
    "tpot": "vLLM's TPOT: (latency - TTFT) / (output tokens - 1), as ours",
    "itl": "vLLM's ITL: every gap between chunks, pooled, as ours",
    "e2e": "vLLM's E2EL: request sent to its last chunk (some versions, for chat: to the usage chunk after it)",
}
QUEUED_S = 1e-3
"""Mean wait for a place in the client from which on it is worth a word."""


def read(documents: Sequence[Fields]) -> list[ImportedResult]:
    """One result for each row.

    Raises:
        UsageError: a value has the wrong type.
    """
    return [_result(flat.read_row(TOOL, fields, index)) for index, fields in enumerate(documents)]


def _result(row: flat.Row) -> ImportedResult:
    return flat.result(
        row,
        definitions=THEIRS,
        version=row.fields.label("vllm_version", "version"),
        model=row.fields.label("model_id"),
        settings=_settings(row.fields),
        own_warnings=_warnings(row),
    )


def _settings(fields: Fields) -> dict[str, str | int | float]:
    names = {"concurrency": "max_concurrency", "burstiness": "burstiness", "prompts": "num_prompts"}
    names |= {"backend": "backend", "label": "label", "ramp_up": "ramp_up_strategy", "tokenizer": "tokenizer_id"}
    return fields.words(rate_per_s="request_rate", **names)


def _warnings(row: flat.Row) -> list[str]:
    fields, columns = row.fields, row.columns
    found = flat.chunk_remarks(row)
    completed = fields.count("completed")
    if row.failed is None:
        found.append("this version of vLLM does not write how many requests failed")
    good = len(columns.successes()) + columns.num_empty if columns else completed
    if completed is not None and good != completed:
        found.append(f"the file says that {completed:,} requests completed, its arrays hold {good:,}")
    if columns and not row.arrays.lengths.get("latencies"):
        found.append("the file has no `latencies`: E2E is TTFT plus the request's gaps, that is to its last chunk")
    if (waited := fields.numbers("queue_times")) and sum(waited) / len(waited) > QUEUED_S:
        found.append(
            f"requests waited {1000 * sum(waited) / len(waited):,.1f} ms on average for a place in the client before "
            "they were sent; TTFT and E2E begin after that wait"
        )
    return found
