"""A result file of any known tool, as results under our definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from assay.errors import UsageError
from assay.formats import aiperf, guidellm, llama_bench, sglang, vllm
from assay.formats.detect import detect
from assay.formats.documents import parse, read_documents
from assay.formats.fields import Fields
from assay.records.imported import Format, ImportedResult

READERS: dict[Format, Callable[[Sequence[Fields]], list[ImportedResult]]] = {
    "vllm": vllm.read,
    "sglang": sglang.read,
    "guidellm": guidellm.read,
    "aiperf": aiperf.read,
    "llama-bench": llama_bench.read,
}


def read_file(path: Path, kind: Format | None = None) -> list[ImportedResult]:
    """Every run in a file.

    Args:
        path: what the tool wrote.
        kind: its format; None: told by its content.

    Raises:
        UsageError: it cannot be read, is none of the formats, or a value has the wrong type.
    """
    return _results(read_documents(path), kind)


def read_bytes(raw: bytes, file: str, kind: Format | None = None) -> list[ImportedResult]:
    """Every run in the bytes of a file; `file` is their name in errors.

    Raises:
        UsageError: as `read_file`.
    """
    return _results(parse(raw, file), kind)


def _results(documents: list[Fields], kind: Format | None) -> list[ImportedResult]:
    chosen = kind or detect(documents[0])
    if kind is None:
        for document in documents[1:]:
            if (other := detect(document)) != chosen:
                message = f"{document.file}: it begins as {chosen}, but {document.prefix.rstrip('.: ')} is {other}"
                raise UsageError(message, hint="keep the results of each tool in a file of their own")
    found = [result for result in READERS[chosen](documents) if _tells(result)]
    if not found:
        hint = "was the run cut off? `--format` names another format" if kind is None else "leave --format out"
        raise UsageError(f"{documents[0].file}: nothing in it is a result of {chosen}", hint=hint)
    return found


def _tells(result: ImportedResult) -> bool:
    """Whether there is any number in it."""
    known = [latency.shown for latency in result.latencies]
    rates = [*result.rates.model_dump().values(), *result.tool_rates.model_dump().values()]
    repeated = result.repetitions.mean_per_s or result.repetitions.tool_mean_per_s if result.repetitions else None
    return any(value is not None for value in (*known, *rates, repeated))
