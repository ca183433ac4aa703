"""The header of a GGUF file: metadata and the list of tensors, never their data.

Source of the layout: the GGUF specification (version 2 and 3), https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from assay.errors import UsageError
from assay.models.config import printable
from assay.models.gguf_types import TYPES

MAGIC = b"GGUF"
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
LONGEST_STRING = 1 << 26
LONGEST_KEPT = 4096
"""Items of an array of numbers that is kept: one for each layer; vocabularies are passed over."""
ALIGNMENT = 32
MOST_DIMENSIONS = 4
LARGEST_FILE_BYTES = 1 << 50
"""No model is larger; a header that points beyond is damaged."""
DAMAGE = (struct.error, EOFError, OSError, OverflowError, ValueError, MemoryError, RecursionError)
"""What reading a damaged header may raise."""


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor as the header lists it."""

    name: str
    dimensions: tuple[int, ...]
    """Innermost first, as the file has them: inputs, outputs, experts."""
    kind: int
    offset: int

    @property
    def elements(self) -> int:
        """Elements in all."""
        return math.prod(self.dimensions)

    @property
    def size_bytes(self) -> int:
        """Bytes of its data; 0 for a type that is not known."""
        _, per_block, block_bytes = TYPES.get(self.kind, ("", 1, 0))
        return self.elements // per_block * block_bytes


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a file says before its data."""

    metadata: dict[str, Any]
    """Scalars and texts; short arrays of numbers as lists, other arrays as None."""
    tensors: list[GgufTensor]
    needed_bytes: int
    """The least size of a file that holds the listed tensors."""
    size_bytes: int


def read_header(path: Path) -> GgufHeader:
    """Read a file's header.

    Raises:
        UsageError: it is not there, not a GGUF file, damaged or cut short.
    """
    if not path.is_file():
        raise UsageError(
            f"there is no model file at {path}", hint="name a GGUF file (in a campaign: target.model in assay.toml)"
        )
    try:
        with path.open("rb") as source:
            header = _header(source, path)
    except PermissionError as error:
        raise UsageError(f"{path} may not be read: {error.strerror}", hint="check the file's permissions") from error
    except DAMAGE as error:
        raise UsageError(f"{path} is a GGUF file cut short or damaged: {error}", hint="fetch the file again") from error
    if header.size_bytes < header.needed_bytes:
        raise UsageError(
            f"{path} is a GGUF file cut short or damaged: its tensors need {header.needed_bytes} bytes, "
            f"it has {header.size_bytes}",
            hint="fetch the file again",
        )
    return header


def _header(source: BinaryIO, path: Path) -> GgufHeader:
    magic = source.read(4)
    if magic != MAGIC:
        begins = f"it begins with {magic!r}" if magic else "it is empty"
        raise UsageError(f"{path} is not a GGUF file: {begins}", hint="convert the model to GGUF first")
    _refuse_version(path, *_unpacked(source, "<I"))
    num_tensors, count = _unpacked(source, "<QQ")
    metadata = {_string(source): _value(source, *_unpacked(source, "<I")) for _ in range(count)}
    tensors = [_tensor(source) for _ in range(num_tensors)]
    alignment = metadata.get("general.alignment")
    if isinstance(alignment, bool) or not isinstance(alignment, int) or alignment < 1:
        alignment = ALIGNMENT
    begin = -(-source.tell() // alignment) * alignment
    needed = begin + max(tensor.offset + tensor.size_bytes for tensor in tensors) if tensors else 0
    return GgufHeader(metadata, tensors, needed, path.stat().st_size)


def _refuse_version(path: Path, version: int) -> None:
    """Version 1 had shorter counts; on a big-endian machine the bytes of everything stand the other way round."""
    if version in {2, 3}:
        return
    turned = int.from_bytes(version.to_bytes(4, "little"), "big")
    if turned in {2, 3}:
        raise UsageError(
            f"{path} is a big-endian GGUF file; only little-endian ones can be read",
            hint="convert the model again without --bigendian",
        )
    raise UsageError(f"{path} has GGUF version {version}; 2 and 3 can be read", hint="convert the model again")


def _unpacked(source: BinaryIO, code: str) -> tuple[Any, ...]:
    """The next numbers.

    Raises:
        EOFError: the file ends before them; so do all that read here.
    """
    data = source.read(struct.calcsize(code))
    if len(data) != struct.calcsize(code):
        raise EOFError("it ends inside its header")
    return struct.unpack(code, data)


def _tensor(source: BinaryIO) -> GgufTensor:
    name = _string(source)
    (dimensions,) = _unpacked(source, "<I")
    if dimensions > MOST_DIMENSIONS:
        raise struct.error(f"a tensor of {dimensions} dimensions")
    shape: tuple[int, ...] = _unpacked(source, f"<{dimensions}Q")
    kind, offset = _unpacked(source, "<IQ")
    return GgufTensor(printable(name), shape, kind, offset)


def _value(source: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return _string(source)
    if kind == ARRAY:
        return _array(source, *_unpacked(source, "<IQ"))
    if kind not in SCALARS:
        raise struct.error(f"unknown value type {kind}")
    return _unpacked(source, "<" + SCALARS[kind])[0]


def _array(source: BinaryIO, item: int, length: int) -> list[Any] | None:
    if item in SCALARS:
        size_bytes = struct.calcsize("<" + SCALARS[item]) * length
        if length <= LONGEST_KEPT:
            return list(_unpacked(source, f"<{length}{SCALARS[item]}"))
        if source.tell() + size_bytes > LARGEST_FILE_BYTES:
            raise EOFError(f"an array of {length} numbers")
        source.seek(size_bytes, 1)
        return None
    for _ in range(length):
        _value(source, item)
    return None


def _string(source: BinaryIO) -> str:
    (length,) = _unpacked(source, "<Q")
    if length > LONGEST_STRING:
        raise struct.error(f"a string of {length} bytes")
    data = source.read(length)
    if len(data) != length:
        raise EOFError("it ends inside a text")
    return data.decode("utf-8", errors="replace")
