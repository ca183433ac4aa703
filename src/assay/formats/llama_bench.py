"""`llama-bench -o jsonl` (or json): the model alone, without a server; each row one test, repeated.

Read from its own documentation: `samples_ns` and `samples_ts` hold the repetitions, `avg_ts` is their mean in tokens a
second, `stddev_ts` their sample standard deviation. A test processes `n_prompt` tokens, or generates `n_gen`, or both.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from assay.formats.fields import Fields
from assay.formats.told import compared_all
from assay.records.imported import LATENCIES, ImportedResult, LatencyName, Rates, Repetitions

NS_PER_S = 1e9
PRINTED_SHARE = 1e-4
"""How closely two means agree: samples are printed with five or six digits."""
NO_REQUESTS: dict[LatencyName, str] = dict.fromkeys(
    LATENCIES, "llama-bench runs the model without a server: there are no requests"
)


def read(documents: Sequence[Fields]) -> list[ImportedResult]:
    """One result for each test.

    Raises:
        UsageError: a value has the wrong type.
    """
    return [_result(fields, index) for index, fields in enumerate(documents)]


def _result(fields: Fields, index: int) -> ImportedResult:
    found = _repetitions(fields)
    build = fields.label("build_number")
    times = fields.numbers("samples_ns")
    return ImportedResult(
        file=fields.file,
        index=index,
        kind="llama-bench",
        tool="llama-bench",
        tool_version=f"b{build}" if build else fields.label("build_commit"),
        model=fields.label("model_type", "model_filename"),
        settings=_settings(fields),
        num_requests=None,
        completed=None,
        failed=None,
        duration_s=sum(times) / NS_PER_S if times else None,
        rates=Rates(output_tokens_per_s=found.mean_per_s if found.what == "output tokens/s" else None),
        tool_rates=Rates(output_tokens_per_s=found.tool_mean_per_s if found.what == "output tokens/s" else None),
        latencies=compared_all(None, {}, NO_REQUESTS),
        repetitions=found,
        warnings=["no server, no batching of requests, no sampling: not to be set beside a served throughput"],
    )


def _repetitions(fields: Fields) -> Repetitions:
    prompt, output = fields.count("n_prompt") or 0, fields.count("n_gen") or 0
    times = fields.numbers("samples_ns") or []
    exact = [(prompt + output) * NS_PER_S / time for time in times if time > 1] if prompt + output else []
    values = exact or fields.numbers("samples_ts") or []
    mean, told = fmean(values) if values else None, fields.number("avg_ts")
    return Repetitions(
        what="tokens/s" if prompt and output else "prompt tokens/s" if prompt else "output tokens/s",
        values_per_s=values,
        mean_per_s=mean,
        sd_per_s=stdev(values) if len(values) > 1 else None,
        tool_mean_per_s=told,
        tool_sd_per_s=fields.number("stddev_ts"),
        agrees=None if mean is None or told is None else abs(mean - told) <= PRINTED_SHARE * abs(told),
    )


def _settings(fields: Fields) -> dict[str, str | int | float]:
    names = {"prompt_tokens": "n_prompt", "output_tokens": "n_gen", "depth": "n_depth", "threads": "n_threads"}
    names |= {"batch": "n_batch", "ubatch": "n_ubatch", "gpu_layers": "n_gpu_layers", "backend": "backends"}
    return fields.words(**names, cpu="cpu_info", gpu="gpu_info")
