"""Traces that give instants and lengths as CSV: BurstGPT and the Azure LLM inference traces.

| trace | columns read |
|---|---|
| BurstGPT | `Timestamp` (seconds), `Request tokens`, `Response tokens` (0 where the request failed: left out) |
| Azure 2023, 2024 | `TIMESTAMP` (date and time, up to 7 digits of a second), `ContextTokens`, `GeneratedTokens` |

Columns are found by their names, whatever their order; others are ignored. Text is made of (seed, n).

Sources: github.com/HPMLL/BurstGPT; github.com/Azure/AzurePublicDataset (AzureLLMInferenceDataset2023, 2024).
"""

from __future__ import annotations

import csv
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from assay.load.workloads.files import MAX_S, MAX_TOKENS, HashedFile, check_not_empty, malformed, shown
from assay.load.workloads.prompts import Prompts
from assay.load.workloads.sessions import LengthSource, time_order
from assay.records.bench import Dataset

NOTHING = "failed: no input or no output tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Where a trace keeps what is needed."""

    columns: tuple[str, str, str]
    """Instant, input tokens, output tokens."""
    instant_s: Callable[[str], float]
    """Reads an instant; raises ValueError or OverflowError."""
    instant_kind: str
    example: str


class Line(NamedTuple):
    """A row of a trace (a tuple: there are millions)."""

    at_s: float
    input_tokens: int
    output_tokens: int


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= MAX_S:
        raise ValueError(text)
    return value


def _date_time(text: str) -> float:
    """Seconds since the epoch; without a time zone it is taken as UTC. Digits beyond the microsecond are dropped."""
    instant = datetime.fromisoformat(text.strip())
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


FORMATS = {
    "burstgpt": Format(
        columns=("Timestamp", "Request tokens", "Response tokens"),
        instant_s=_seconds,
        instant_kind="seconds",
        example="5,ChatGPT,472,18,490,Conversation log",
    ),
    "azure": Format(
        columns=("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
        instant_s=_date_time,
        instant_kind="a date and time",
        example="2023-11-16 18:15:46.6805900,374,44",
    ),
}


def read(workload: Dataset, seed: int, prompts: Prompts) -> LengthSource:
    """Read the file.

    Raises:
        UsageError: it cannot be read, is malformed, or holds no usable request.
    """
    file = HashedFile(workload.path)
    found = FORMATS[workload.kind]
    at_s, num_input, num_output = array("d"), array("q"), array("q")
    skipped: Counter[str] = Counter()
    for line in _lines(file, found):
        if not (line.input_tokens and line.output_tokens):
            skipped[NOTHING] += 1
            continue
        at_s.append(line.at_s)
        num_input.append(line.input_tokens)
        num_output.append(line.output_tokens)
    check_not_empty(file.path, len(at_s), skipped, found.example)
    order = time_order(at_s, workload.max_requests)
    return LengthSource(
        seed,
        prompts,
        at_s=array("d", (at_s[at] for at in order)),
        input_tokens=array("q", (num_input[at] for at in order)),
        output_tokens=array("q", (num_output[at] for at in order)),
        sha256=file.sha256,
        skipped=skipped,
    )


def _lines(file: HashedFile, found: Format) -> Iterator[Line]:
    header: tuple[int, int, int] | None = None
    for number, text in file.lines():
        fields = _fields(text)
        if header is None:
            header = _header(file.path, number, fields, found)
        else:
            yield _line(file.path, number, fields, header, found)


def _fields(text: str) -> list[str]:
    """The fields of one line; none when it is not CSV. No field spans lines."""
    if '"' not in text:
        return text.split(",")
    try:
        return next(csv.reader((text,)), [])
    except csv.Error:
        return []


def _header(path: str, number: int, fields: Sequence[str], found: Format) -> tuple[int, int, int]:
    names = [field.strip().casefold() for field in fields]
    at, num_input, num_output = (name.casefold() for name in found.columns)
    if not {at, num_input, num_output} <= set(names):
        told = ", ".join(map(shown, fields)) or "no CSV"
        expected = f"the columns {', '.join(map(shown, found.columns))}"
        raise malformed(path, f"line {number}", told, expected, found.example)
    return names.index(at), names.index(num_input), names.index(num_output)


def _line(path: str, number: int, fields: Sequence[str], header: tuple[int, int, int], found: Format) -> Line:
    try:
        return Line(found.instant_s(fields[header[0]]), _tokens(fields[header[1]]), _tokens(fields[header[2]]))
    except IndexError:
        told, expected = f"{len(fields)} fields", f"{max(header) + 1} at least, as in the first line"
    except (ValueError, OverflowError):
        readers = (found.instant_s, _tokens, _tokens)
        wrong = next(at for at, reader in enumerate(readers) if _fails(reader, fields[header[at]]))
        told = f"{shown(fields[header[wrong]])} as {shown(found.columns[wrong])}"
        expected = "a whole number of tokens" if wrong else found.instant_kind
    raise malformed(path, f"line {number}", told, expected, found.example)


def _tokens(text: str) -> int:
    """A whole number; "472.0" is one, as some programs write it."""
    try:
        value = int(text)
    except ValueError:
        if not float(text).is_integer():
            raise
        value = int(float(text))
    if not 0 <= value <= MAX_TOKENS:
        raise ValueError(text)
    return value


def _fails(reader: Callable[[str], float], text: str) -> bool:
    try:
        reader(text)
    except (ValueError, OverflowError):
        return True
    return False
