"""What is in a folder's safetensors files, from their headers alone; the data is never read.

Source of the layout: https://github.com/huggingface/safetensors#format (length, JSON header, data).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import UsageError
from assay.models.config import LARGEST
from assay.models.json_file import parsed_object, read_object

INDEX = "model.safetensors.index.json"
LENGTH_BYTES = 8
LARGEST_HEADER_BYTES = 100_000_000
"""The format's own limit."""
MOST_DIMENSIONS = 8
BITS = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "BF16": 16, "F16": 16, "I16": 16, "U16": 16,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I8": 8, "U8": 8, "BOOL": 8, "F4": 4,
}  # fmt: skip
HINT = "fetch the file again; without any *.safetensors in the folder config.json alone is read"


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a file."""

    name: str
    dtype: str
    elements: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Folder:
    """What the weight files of a folder say."""

    tensors: list[Tensor]
    """Empty when not every file is here."""
    names: frozenset[str]
    """Names of all tensors, from the headers or the index; empty when there is neither."""
    total_bytes: int | None
    """`total_size` of the index."""
    missing: list[str]
    """Files that the index names and that are not here."""


def read_folder(folder: Path) -> Folder:
    """Read the headers of every weight file, or the index when files are missing.

    Raises:
        UsageError: a file is cut short or damaged.
    """
    index = folder / INDEX
    if index.is_file():
        return _indexed(folder, index)
    files = sorted(path for path in folder.glob("*.safetensors") if path.is_file())
    tensors = [tensor for path in files for tensor in read_header(path)]
    return Folder(tensors, frozenset(tensor.name for tensor in tensors), None, [])


def _indexed(folder: Path, index: Path) -> Folder:
    content = read_object(index)
    places = content.get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()):
        raise UsageError(f"{index}: weight_map: want names of files by names of tensors", hint="fetch the index again")
    names = sorted(set(places.values()))
    if outside := [name for name in names if Path(name).name != name or name in {".", ".."}]:
        raise UsageError(f"{index} names {outside[0][:80]!r}: not a file of its folder", hint="fetch the index again")
    missing = [name for name in names if not (folder / name).is_file()]
    tensors = [] if missing else [tensor for name in names for tensor in read_header(folder / name)]
    metadata = content.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(total, bool) or not isinstance(total, int) or not 0 < total < LARGEST**2:
        total = None
    return Folder(tensors, frozenset(places), total, missing)


def read_header(path: Path) -> Iterator[Tensor]:
    """The tensors of one file.

    Raises:
        UsageError: it is cut short or damaged.
    """
    try:
        size_bytes = path.stat().st_size
        with path.open("rb") as source:
            if size_bytes < LENGTH_BYTES:
                raise _damaged(path, f"it has {size_bytes} bytes")
            (length,) = struct.unpack("<Q", source.read(LENGTH_BYTES))
            if not 0 < length <= min(LARGEST_HEADER_BYTES, size_bytes - LENGTH_BYTES):
                raise _damaged(path, f"its header would have {length} bytes")
            content = source.read(length)
    except (OSError, struct.error, ValueError) as error:
        raise _damaged(path, str(error)) from error
    room_bytes = size_bytes - LENGTH_BYTES - length
    for name, entry in parsed_object(content, f"the header of {path}").items():
        if name != "__metadata__":
            yield _tensor(path, name, entry, room_bytes)


def _tensor(path: Path, name: str, entry: Any, room_bytes: int) -> Tensor:
    fields = entry if isinstance(entry, dict) else {}
    shape, offsets, dtype = _wholes(fields.get("shape")), _wholes(fields.get("data_offsets")), fields.get("dtype")
    if shape is None or len(shape) > MOST_DIMENSIONS or offsets is None or len(offsets) != 2:  # noqa: PLR2004 - from, to
        raise _damaged(path, f"the tensor {name[:80]!r} has no shape or place")
    begin, end = offsets
    if not begin <= end <= room_bytes:
        raise _damaged(path, f"the tensor {name[:80]!r} ends at byte {end} of {room_bytes}")
    elements = 1
    for size in shape:
        elements *= size
    if dtype in BITS and elements * BITS[dtype] != (end - begin) * 8:
        raise _damaged(path, f"the tensor {name[:80]!r} has {end - begin} bytes for {elements} elements of {dtype}")
    return Tensor(name, str(dtype)[:16], elements, end - begin)


def _wholes(values: Any) -> list[int] | None:
    """A list of counts; None for anything else."""
    if not isinstance(values, list):
        return None
    right = all(isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST**2 for value in values)
    return values if right else None


def _damaged(path: Path, why: str) -> UsageError:
    return UsageError(f"{path} is a safetensors file cut short or damaged: {why}", hint=HINT)
