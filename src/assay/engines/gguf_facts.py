"""What a GGUF file says of itself, read from its header alone.

Source of the layout: the GGUF specification (version 2 and 3), https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any, BinaryIO

from assay.engines.embedded_model import sha256_of
from assay.errors import UsageError
from assay.records.machine import ModelFacts

MAGIC = b"GGUF"
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
LONGEST_STRING = 1 << 26
FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 25: "IQ4_NL",
    30: "IQ4_XS", 32: "BF16", 38: "MXFP4",
}  # fmt: skip


BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2),
    39: (32, 17),
}  # fmt: skip
"""Tensor type: elements of a block, bytes of a block."""
ALIGNMENT = 32
MOST_DIMENSIONS = 4
DAMAGE = (struct.error, OSError, OverflowError, ValueError, MemoryError, RecursionError)
"""What reading a damaged header may raise."""


def read_facts(path: Path) -> ModelFacts:
    """Read a model file's header.

    Raises:
        UsageError: it is not there, not a GGUF file, or cut short.
    """
    if not path.is_file():
        raise UsageError(f"there is no model file at {path}", hint="name a GGUF file: target.model in assay.toml")
    try:
        with path.open("rb") as source:
            header, needed_bytes = _header(source, path)
    except PermissionError as error:
        raise UsageError(f"{path} may not be read: {error.strerror}", hint="check the file's permissions") from error
    except DAMAGE as error:
        raise UsageError(f"{path} is a GGUF file cut short or damaged: {error}", hint="fetch the file again") from error
    if (size_bytes := path.stat().st_size) < needed_bytes:
        raise UsageError(
            f"{path} is a GGUF file cut short or damaged: its tensors need {needed_bytes} bytes, it has {size_bytes}",
            hint="fetch the file again",
        )
    arch = str(header.get("general.architecture", "unknown"))
    file_type = _whole(header.get("general.file_type"))
    return ModelFacts(
        path=str(path.resolve()),
        sha256=sha256_of(path),
        size_bytes=size_bytes,
        architecture=arch,
        quantization="unknown" if file_type is None else FILE_TYPES.get(file_type, "unknown"),
        num_layers=_whole(header.get(f"{arch}.block_count")),
        context_length=_whole(header.get(f"{arch}.context_length")),
        num_experts=_whole(header.get(f"{arch}.expert_count")),
        name=str(header.get("general.name") or path.stem),
        license=str(header.get("general.license") or ""),
    )


def _header(source: BinaryIO, path: Path) -> tuple[dict[str, Any], int]:
    """The metadata, and the least size of a file that holds the tensors it lists."""
    magic = source.read(4)
    if magic != MAGIC:
        raise UsageError(f"{path} is not a GGUF file: it begins with {magic!r}", hint="convert the model to GGUF first")
    version, num_tensors, count = struct.unpack("<IQQ", source.read(20))
    if version not in {2, 3}:
        raise UsageError(f"{path} has GGUF version {version}; 2 and 3 can be read", hint="convert the model again")
    header = {_string(source): _value(source, *struct.unpack("<I", source.read(4))) for _ in range(count)}
    ends = [_tensor_end(source) for _ in range(num_tensors)]
    alignment = _whole(header.get("general.alignment")) or ALIGNMENT
    begin = -(-source.tell() // alignment) * alignment
    return header, begin + max(ends) if ends else 0


def _tensor_end(source: BinaryIO) -> int:
    """Where a tensor's data ends, counted from the begin of the data section."""
    _string(source)
    (dimensions,) = struct.unpack("<I", source.read(4))
    if dimensions > MOST_DIMENSIONS:
        raise struct.error(f"a tensor of {dimensions} dimensions")
    shape: tuple[int, ...] = struct.unpack(f"<{dimensions}Q", source.read(8 * dimensions))
    kind, offset = struct.unpack("<IQ", source.read(12))
    per_block, block_bytes = BLOCKS.get(kind, (1, 0))  # an unknown type: at least where it begins must be there
    return int(offset) + math.prod(shape) // per_block * block_bytes


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _value(source: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return _string(source)
    if kind == ARRAY:
        item, length = struct.unpack("<IQ", source.read(12))
        if item in SCALARS:
            source.seek(struct.calcsize(SCALARS[item]) * length, 1)
        else:
            for _ in range(length):
                _value(source, item)
        return None
    if kind not in SCALARS:
        raise struct.error(f"unknown value type {kind}")
    code = "<" + SCALARS[kind]
    return struct.unpack(code, source.read(struct.calcsize(code)))[0]


def _string(source: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", source.read(8))
    if length > LONGEST_STRING:
        raise struct.error(f"a string of {length} bytes")
    data = source.read(length)
    if len(data) != length:
        raise struct.error("the file ends inside a string")
    return data.decode("utf-8", errors="replace")
