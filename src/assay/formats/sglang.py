"""SGLang's `bench_serving`: JSON lines, one row a run; with `--output-details` the arrays of its requests.

Read from SGLang's source: percentiles and means as in vLLM. Its latency of a request ends with the last line of the
stream, `[DONE]` included, and is not written; what the arrays give ends with the last chunk that had text. Its native
backend divides a chunk's gap by the chunk's tokens and writes one entry a token. Without `usage` from the server the
output length is the one that was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.formats import flat
from assay.formats.fields import Fields
from assay.records.imported import ImportedResult, LatencyName

TOOL = flat.Tool(
    kind="sglang",
    command="sglang.bench_serving",
    name="SGLang",
    saved_by="`bench_serving --output-details`",
    keys={"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2e_latency"},
)
THEIRS: dict[LatencyName, str] = {
    "ttft": "SGLang's TTFT: request sent to its first chunk with text, as ours",
    "tpot": "SGLang's TPOT: (latency - TTFT) / (output tokens - 1), its latency ending with the stream",
    "itl": "SGLang's ITL: every gap between chunks, pooled, as ours",
    "e2e": "SGLang's E2E latency: request sent to the end of the stream, a little after its last chunk",
}
PER_TOKEN = "SGLang's ITL: each gap divided by the tokens of its chunk, one entry a token"  # noqa: S105 - no password
NATIVE = {"sglang", "sglang-native"}
SPECULATIVE = {"sglang-oai", "sglang-oai-chat"}
"""Backends whose ITL SGLang spreads over re-tokenized text when the server speculates."""


def read(documents: Sequence[Fields]) -> list[ImportedResult]:
    """One result for each row.

    Raises:
        UsageError: a value has the wrong type.
    """
    return [_result(flat.read_row(TOOL, fields, index)) for index, fields in enumerate(documents)]


def _result(row: flat.Row) -> ImportedResult:
    server = row.fields.glance("server_info")
    native = row.fields.text("backend") in NATIVE
    return flat.result(
        row,
        definitions={**THEIRS, "itl": PER_TOKEN} if native else THEIRS,
        version=server.label("version"),
        model=server.label("served_model_name", "model_path"),
        settings=_settings(row.fields),
        own_warnings=_warnings(row),
    )


def _settings(fields: Fields) -> dict[str, str | int | float]:
    names = {"concurrency": "max_concurrency", "backend": "backend", "dataset": "dataset_name", "tag": "tag"}
    names |= {"input_tokens": "random_input_len", "output_tokens": "random_output_len"}
    return fields.words(rate_per_s="request_rate", **names)


def _warnings(row: flat.Row) -> list[str]:
    backend = row.fields.text("backend")
    found = []
    if backend in NATIVE and row.columns:
        found.append("this backend divides each gap by the tokens of its chunk: ITL is a time per token, not per chunk")
    else:
        found += flat.chunk_remarks(row)
    if backend in SPECULATIVE and (row.fields.number("accept_length") or 0) > 0:
        found.append(
            "SGLang spread its ITL over re-tokenized text; the file does not hold that text, ours is per chunk"
        )
    if row.failed is None:
        found.append("SGLang does not write how many requests failed; `--output-details` would show it")
    if backend not in NATIVE:
        found.append(
            "where the server sends no `usage`, SGLang takes the output length that was asked for as the real one"
        )
    if row.columns:
        found.append("the file does not tell when streams ended: E2E and TPOT here end with the last chunk with text")
    return found
