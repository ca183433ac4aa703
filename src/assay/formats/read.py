"""A result file of any known tool, as results under our definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from assay.errors import UsageError
from assay.formats import aiperf, guidellm, llama_bench, sglang, vllm
from assay.formats.detect import detect, told_by_keys
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
    _check_fit(documents, chosen, named=kind is not None)
    results = READERS[chosen](documents)
    found = [result for result in results if _tells(result)]
    if not found:
        hint = "was the run cut off? `--format` names another format" if kind is None else "leave --format out"
        unequal = [warning for result in results for warning in result.warnings if "different lengths" in warning]
        why = f": {unequal[0]}" if unequal else ""
        raise UsageError(f"{documents[0].file}: nothing in it is a result of {chosen}{why}", hint=hint)
    return found


def _check_fit(documents: list[Fields], chosen: Format, *, named: bool) -> None:
    """One file is of one format. A named one may be read where keys tell none, not against what they tell.

    Raises:
        UsageError: an object is of another format.
    """
    for document in documents:
        if (other := told_by_keys(document) if named else detect(document)) in {chosen, None}:
            continue
        place = document.prefix.rstrip(".: ")
        if named:
            message = f"{document.file}: {place or 'this'} is not {chosen}: by its keys it looks like {other}"
            raise UsageError(message, hint=f"--format {other}, or leave --format out")
        message = f"{document.file}: it begins as {chosen}, but {place} is {other}"
        raise UsageError(message, hint="keep the results of each tool in a file of their own")


def _tells(result: ImportedResult) -> bool:
    """Whether there is any number in it."""
    known = [latency.shown for latency in result.latencies]
    rates = [*result.rates.model_dump().values(), *result.tool_rates.model_dump().values()]
    repeated = result.repetitions.mean_per_s or result.repetitions.tool_mean_per_s if result.repetitions else None
    return any(value is not None for value in (*known, *rates, repeated))
