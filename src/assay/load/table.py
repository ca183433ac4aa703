"""The requests of a load test as Parquet: one row a request, written in groups, for whoever wants to look closer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from assay.load.spool import SpooledRequest, phase

GROUP = 10_000
SCHEMA = pa.schema(
    [
        ("index", pa.int64()),
        ("turn", pa.int32()),
        ("stream", pa.int32()),
        ("phase", pa.string()),
        ("intended_ns", pa.int64()),
        ("sent_ns", pa.int64()),
        ("ended_ns", pa.int64()),
        ("chunk_ns", pa.list_(pa.int64())),
        ("chunk_tokens", pa.list_(pa.int32())),
        ("merged", pa.int32()),
        ("input_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("cached_tokens", pa.int64()),
        ("wanted_input_tokens", pa.int64()),
        ("wanted_output_tokens", pa.int64()),
        ("shared_tokens", pa.int64()),
        ("status", pa.int32()),
        ("finish_reason", pa.string()),
        ("error", pa.string()),
    ]
)


def writing(
    path: Path, requests: Iterable[SpooledRequest], began_ns: int | None, ended_ns: int | None
) -> Iterator[SpooledRequest]:
    """The requests, each handed on once it is written: who takes them all has read them once and has the file.

    Args:
        path: the file, there whole when the last request is taken, else not at all.
        requests: in any order.
        began_ns: start of the first measured window; None when it never came.
        ended_ns: end of the last one.
    """
    partial = path.with_suffix(".partial")
    try:
        with pq.ParquetWriter(partial, SCHEMA, compression="zstd") as writer:
            for group in _groups(requests):
                rows = [_row(request, began_ns, ended_ns) for request in group]
                writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
                yield from group
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _groups(requests: Iterable[SpooledRequest]) -> Iterator[list[SpooledRequest]]:
    left = iter(requests)
    while group := list(islice(left, GROUP)):
        yield group


def _row(request: SpooledRequest, began_ns: int | None, ended_ns: int | None) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(request, name) for name in SCHEMA.names if hasattr(request, name)}
    row["chunk_ns"] = request.chunk_ns.tolist()
    row["chunk_tokens"] = request.tokens_of_chunks.tolist()
    row["phase"] = phase(request, began_ns, ended_ns)
    return row
