"""Which tool wrote a JSON object, told by its keys."""

from __future__ import annotations

from assay.errors import UsageError
from assay.formats.aiperf import is_record
from assay.formats.fields import Fields, clean
from assay.records.imported import FORMATS, Format

OTHERS = {
    "avg_latency": "this looks like `vllm bench latency`, which has no server: use `vllm bench serve`",
    "elapsed_time": "this looks like `vllm bench throughput`, which has no server: use `vllm bench serve`",
    "load_summary": "this looks like inference-perf, which is not read yet",
}
"""A key of formats that are known and not read, and what to say."""
KEYS_SHOWN = 6


def detect(fields: Fields) -> Format:
    """The format of one object.

    Raises:
        UsageError: it is none that is read; the hint lists those.
    """
    if (found := told_by_keys(fields)) is None:
        raise _unknown(fields)
    return found


def told_by_keys(fields: Fields) -> Format | None:
    """The format of one object; None when its keys fit none that is read."""
    keys = set(fields.data)
    if "avg_ts" in keys and keys & {"n_prompt", "n_gen"}:
        return "llama-bench"
    if isinstance(fields.data.get("benchmarks"), list):
        return "guidellm"
    if is_record(fields) or "aiperf_version" in keys or _has_unit(fields):
        return "aiperf"
    if "total_output_tokens_retokenized" in keys or any(key.endswith("_e2e_latency_ms") for key in keys):
        return "sglang"
    if {"duration", "completed"} <= keys and keys & {"request_throughput", "total_token_throughput"}:
        return "vllm"
    return None


def _has_unit(fields: Fields) -> bool:
    """AIPerf's (and GenAI-Perf's) summaries: a metric is an object with its unit."""
    found = fields.data.get("request_latency")
    return isinstance(found, dict) and "unit" in found


def _unknown(fields: Fields) -> UsageError:
    known = next((words for key, words in OTHERS.items() if key in fields.data), None)
    shown = [clean(key) for key in list(fields.data)[:KEYS_SHOWN]]
    message = (
        f"{fields.file}: {fields.prefix.rstrip('.: ') or 'this'} is no format that is read; its keys begin with {shown}"
    )
    return UsageError(message, hint=known or f"formats: {', '.join(FORMATS)}; `--format` names one")
