"""Weights in a mapped file: where llama.cpp leaves those that no kernel wants rearranged.

Imports nothing of Assay: it is loaded into the process that foreign code may end.
"""

from __future__ import annotations

import mmap
import tempfile
from dataclasses import dataclass

import numpy as np

ALIGNMENT = 32
"""Of tensors in a GGUF file, and what ggml asks of an address."""
ONCE_BYTES = 4 << 20
"""Written at once: page caches keep a large write in large pieces, as they keep what was read ahead."""


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A file without a name, mapped for reading, that holds the same matrix again and again.

    It goes with the last reference to it.
    """

    stride: int
    """Bytes from one matrix to the next."""
    size: int
    _view: np.ndarray
    _map: mmap.mmap

    @classmethod
    def of(cls, matrix: np.ndarray, copies: int, folder: str | None) -> MappedFile | None:
        """Written in the folder, else where temporary files go; None where neither has room or can be mapped."""
        stride = -(-matrix.nbytes // ALIGNMENT) * ALIGNMENT
        stored = matrix.tobytes() + bytes(stride - matrix.nbytes)
        for place in dict.fromkeys((folder, tempfile.gettempdir())):
            try:
                mapped = _written(stored, copies, place)
            except OSError:
                continue
            return cls(stride, stride * copies, np.frombuffer(mapped, np.uint8), mapped)
        return None

    @property
    def address(self) -> int:
        """Of the first matrix."""
        return self._view.ctypes.data


def _written(stored: bytes, copies: int, folder: str | None) -> mmap.mmap:
    each = max(1, ONCE_BYTES // len(stored))
    block = stored * each
    with tempfile.TemporaryFile(dir=folder, prefix=".assay-weights-", buffering=0) as sink:
        for done in range(0, copies, each):
            rest = memoryview(block)[: min(each, copies - done) * len(stored)]
            while rest:
                rest = rest[sink.write(rest) :]
        return mmap.mmap(sink.fileno(), copies * len(stored), mmap.MAP_SHARED, mmap.PROT_READ)
