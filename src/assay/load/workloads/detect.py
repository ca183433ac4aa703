"""What kind of workload a file holds, from its beginning."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from assay.errors import UsageError
from assay.load.workloads.csv_traces import FORMATS
from assay.load.workloads.files import shown, unreadable
from assay.load.workloads.rows import parse_json

Kind = Literal["sharegpt", "mooncake", "burstgpt", "azure", "jsonl", "conversations"]

HEAD_BYTES = 2**26
"""The longest first line that is looked at."""
SIGNS: tuple[tuple[str, Kind], ...] = (
    ("turns", "conversations"),
    ("conversations", "sharegpt"),
    ("input_length", "mooncake"),
    ("messages", "jsonl"),
    ("prompt", "jsonl"),
)
"""A key of the first JSON object, and what it tells; the first that is there decides."""
CSV_KINDS: tuple[Kind, ...] = ("burstgpt", "azure")


def detect(path: str) -> Kind:
    """The kind of a file, by its first line that is not blank.

    Raises:
        UsageError: it cannot be read, or is none of those that are known.
    """
    head = _first_line(path)
    if head.startswith("["):
        return "sharegpt"
    if head.startswith("{"):
        keys = parse_json(path, head)
        for key, kind in SIGNS:
            if key in keys:
                return kind
        raise _unknown(path, f"an object with the keys {', '.join(map(shown, keys)) or '(none)'}")
    names = {field.strip().strip('"').casefold() for field in head.split(",")}
    for kind in CSV_KINDS:
        if {column.casefold() for column in FORMATS[kind].columns} <= names:
            return kind
    raise _unknown(path, shown(head))


def _first_line(path: str) -> str:
    try:
        with Path(path).open("rb") as stream:
            line = b"\n"
            while line and not line.strip():
                line = stream.readline(HEAD_BYTES)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    return line.decode("utf-8", "replace").removeprefix("\ufeff").strip()


def _unknown(path: str, found: str) -> UsageError:
    return UsageError(
        f"{path}: found {found} at its beginning, expected a ShareGPT list, JSONL with one of the keys "
        f"{', '.join(shown(key) for key, _ in SIGNS)}, or the column names of a BurstGPT or Azure trace",
        hint=f"say what it is, e.g. jsonl:{path}",
    )
