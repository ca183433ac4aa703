"""`samples.parquet`: one row for each request of a run, whatever became of it.

Columns are the fields of `assay.records.load.RequestSample`, in its order. Stamps (`*_ns`) are int64 nanoseconds of the
client's monotonic clock, comparable only within one run; `chunk_ns` is a list column, one entry for each chunk with
content. NULL means what None means in the record: the server did not say, or it did not happen. Compression: zstd.
Loaded only where samples are read or written: pyarrow costs a quarter of a second.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from assay.errors import RecordError
from assay.records.load import RequestSample

SCHEMA = pa.schema(
    [
        pa.field("index", pa.int64(), nullable=False),
        pa.field("stream", pa.int64(), nullable=False),
        pa.field("intended_ns", pa.int64(), nullable=False),
        pa.field("sent_ns", pa.int64(), nullable=False),
        pa.field("first_content_ns", pa.int64()),
        pa.field("chunk_ns", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False),
        pa.field("ended_ns", pa.int64(), nullable=False),
        pa.field("input_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cached_tokens", pa.int64()),
        pa.field("wanted_output_tokens", pa.int64(), nullable=False),
        pa.field("status", pa.int64()),
        pa.field("finish_reason", pa.string()),
        pa.field("first_text", pa.string()),
        pa.field("error", pa.string()),
        pa.field("phase", pa.string(), nullable=False),
    ],
    metadata={"assay.table": "request-samples/1", "assay.clock": "monotonic, nanoseconds"},
)
_NAMES = [field.name for field in fields(RequestSample)]


def to_parquet(samples: Sequence[RequestSample]) -> bytes:
    """Write samples as one Parquet file.

    Raises:
        RecordError: a value does not fit its column.
    """
    columns = {name: [_storable(getattr(sample, name)) for sample in samples] for name in _NAMES}
    buffer = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pydict(columns, schema=SCHEMA), buffer, compression="zstd")
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise RecordError(
            f"samples do not fit their table: {error}", hint="report this: it is Assay's fault"
        ) from error
    return buffer.getvalue()


def read_parquet(path: Path) -> list[RequestSample]:
    """Read samples back.

    Raises:
        OSError: the file cannot be opened.
        RecordError: it is not a table of samples.
    """
    content = path.read_bytes()
    try:
        table = pq.read_table(io.BytesIO(content))
        if not table.schema.equals(SCHEMA):
            raise RecordError(
                f"{path}: its columns are {table.schema.names} where a table of samples has {_NAMES}, or types differ",
                hint="read it with the Assay version that wrote it (campaign-created event)",
            )
        return [RequestSample(**row) for row in table.to_pylist()]
    except pa.ArrowException as error:
        raise RecordError(f"{path}: damaged samples: {error}", hint="run `assay verify` to see what else is") from error


def _storable(value: object) -> object:
    """A half of a surrogate pair (a token cut inside a character) is no Unicode text; show it as a replacement."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
