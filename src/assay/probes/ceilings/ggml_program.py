"""Times ggml's products in a process of its own: `python -m assay.probes.ceilings.ggml_program [FOLDER]`, JSON lines.

First it says what it is: `{"library": ..., "types": [...]}` or `{"problem": ...}`. A line in asks for one measurement,
`{"job": "matvec_streamed" | "matvec_cached" | "matmul" | "product_start" | "graph_node" | "graph_start", "storage",
"columns", "shape", "threads", "seconds"}`; a line out answers it. It ends with its standard input. In FOLDER weights
may be written for a while: they are read out of a mapped file there, as llama.cpp reads them.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from assay.probes.ceilings.ggml_library import GRAPH_NODES, SOURCE_ROWS, TYPES, Ggml
from assay.probes.ceilings.mapped_weights import MappedFile

COLUMNS = 2048
ROWS = 2048
LEAST_STREAMED_BYTES, MOST_STREAMED_BYTES = 96 << 20, 384 << 20
"""Weights of a streamed pass: four times the last cache, within these."""
MOST_MATRICES = 2000
"""Of one pass."""
CACHED_BYTES = 384 << 10
"""Weights of a cached pass: less than a core's own cache."""
CACHED_COLUMNS = 1024
CACHED_REPEATS = 32
NODES = 512
NODE_ELEMENTS = 256
START_COLUMNS, START_STORAGE, START_REPEATS = 256, "F32", 256
"""A product with 64 rows of so many columns: its start is nearly all of it."""
MOST_FLOPS = 3e9
"""Of one pass: products with many columns go over fewer matrices."""
FEWEST, KEPT = 5, 100
"""Samples of one measurement: at least, and how many of them are told, evenly drawn."""
PATIENCE = 4
"""A measurement that is slow beyond this many times its seconds ends with the samples it has."""


class Weights:
    """Matrices of one type where llama.cpp would put them, and the graph that multiplies them with `width` columns.

    Weights that no kernel wants rearranged stay in the mapped model file, whose pages the kernel keeps in larger pieces
    than those of allocated memory: on a virtual machine F16 products with one column were a third faster from there.
    """

    def __init__(
        self, ggml: Ggml, storage: str, columns: int, rows: int, matrices: int, folder: str | None = None
    ) -> None:
        self._ggml, self._columns, self._rows = ggml, columns, rows
        call = ggml.call
        self._context = ggml.context()
        kind = TYPES[storage]
        self.tensors = [call["new_tensor_2d"](self._context, kind, columns, rows) for _ in range(matrices)]
        place = ggml.chosen(kind, columns, rows)
        self.kernel = ggml.name(place)
        drawn = np.random.default_rng(0).standard_normal((SOURCE_ROWS, columns), dtype=np.float32)
        stored = ggml.quantized(storage, columns, drawn)
        self.source = plain(stored.reshape(SOURCE_ROWS, -1), storage)
        data = np.tile(stored, -(-rows // SOURCE_ROWS))[: rows * (stored.nbytes // SOURCE_ROWS)]
        self.bytes_each = data.nbytes
        streamed = data.nbytes * matrices >= LEAST_STREAMED_BYTES
        self._file = MappedFile.of(data, matrices, folder) if place == ggml.plain and streamed else None
        self._buffer = self._mapped(self._file) if self._file else self._allocated(place, data)
        if not self._buffer:
            raise MemoryError(f"no memory for {matrices} matrices of {rows} x {columns} {storage}")

    @property
    def pages(self) -> str:
        """Where the weights lie: `mapped file` or `allocated`."""
        return "mapped file" if self._file else "allocated"

    def close(self) -> None:
        """Give the memory back."""
        self._ggml.call["backend_buffer_free"](self._buffer)
        self._ggml.call["free"](self._context)
        self._file = None

    def _mapped(self, file: MappedFile) -> int | None:
        call = self._ggml.call
        buffer = call["backend_cpu_buffer_from_ptr"](file.address, file.size)
        for number, tensor in enumerate(self.tensors):
            call["backend_tensor_alloc"](buffer, tensor, file.address + number * file.stride)
        return int(buffer) if buffer else None

    def _allocated(self, place: int, data: np.ndarray) -> int | None:
        call = self._ggml.call
        buffer = call["backend_alloc_ctx_tensors_from_buft"](self._context, place)
        for tensor in self.tensors if buffer else ():
            call["backend_tensor_set"](tensor, data.ctypes.data, 0, data.nbytes)
        return int(buffer) if buffer else None

    def time(self, width: int, repeats: int, threads: int, seconds: float) -> dict[str, Any]:
        """Seconds of passes over all matrices (`repeats` times each), and the error of one product."""
        call, context = self._ggml.call, self._ggml.context()
        vector = call["new_tensor_2d"](context, TYPES["F32"], self._columns, width)
        each = 2.0 * self._columns * self._rows * width
        order = [tensor for _ in range(repeats) for tensor in self.tensors][: max(1, int(MOST_FLOPS / each))]
        products = [call["mul_mat"](context, tensor, vector) for tensor in order]
        graph = call["new_graph_custom"](context, GRAPH_NODES, False)
        for product in products:
            call["build_forward_expand"](graph, product)
        buffer = call["backend_alloc_ctx_tensors_from_buft"](context, self._ggml.plain)
        values = np.random.default_rng(1).standard_normal((width, self._columns), dtype=np.float32)
        call["backend_tensor_set"](vector, values.ctypes.data, 0, values.nbytes)
        try:
            samples = _samples(lambda: self._ggml.compute(graph, threads), seconds)
            found = np.zeros((width, self._rows), np.float32)
            call["backend_tensor_get"](products[-1], found.ctypes.data, 0, found.nbytes)
        finally:
            call["backend_buffer_free"](buffer)
            call["free"](context)
        wanted = (values @ self.source.T)[:, : self._rows]  # of the weights as stored, by another implementation
        return {
            "samples": samples,
            "kernel": self.kernel,
            "pages": self.pages,
            "bytes": self.bytes_each * len(order),
            "flops": each * len(order),
            "error": float(np.abs(found[:, : wanted.shape[1]] - wanted).mean() / np.abs(wanted).mean()),
        }


class Program:
    """Answers jobs; the last set of weights is kept, since the next job often wants it again."""

    def __init__(self, ggml: Ggml, last_cache_bytes: int, folder: str | None) -> None:
        self._ggml, self._folder = ggml, folder
        self._streamed_bytes = min(max(LEAST_STREAMED_BYTES, 4 * last_cache_bytes), MOST_STREAMED_BYTES)
        self._kept: tuple[tuple[str, int, int, int], Weights] | None = None

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """One measurement."""
        threads, seconds = int(job["threads"]), float(job["seconds"])
        if job["job"] in {"graph_node", "graph_start"}:
            return self._nodes(NODES if job["job"] == "graph_node" else 1, threads, seconds)
        if job["job"] == "product_start":
            return self._product_start(threads, seconds)
        cached = job["job"] == "matvec_cached"
        rows, columns = job.get("shape") or (None if cached else ROWS, CACHED_COLUMNS if cached else COLUMNS)
        weights = self._weights(str(job["storage"]), rows, columns)
        return weights.time(int(job["columns"]), CACHED_REPEATS if cached else 1, threads, seconds)

    def _product_start(self, threads: int, seconds: float) -> dict[str, Any]:
        weights = Weights(self._ggml, START_STORAGE, START_COLUMNS, SOURCE_ROWS, 1)
        try:
            told = weights.time(1, START_REPEATS, threads, seconds)
        finally:
            weights.close()
        return {**told, "samples": [one / START_REPEATS for one in told["samples"]]}

    def _weights(self, storage: str, rows: int | None, columns: int) -> Weights:
        """Matrices of one shape, more of them than the caches hold; without rows one that a core's own cache holds."""
        row_bytes = len(self._ggml.quantized(storage, columns, np.ones((1, columns), np.float32)))
        count = 1
        if rows is None:
            rows = max(SOURCE_ROWS, CACHED_BYTES // row_bytes // SOURCE_ROWS * SOURCE_ROWS)
        else:
            count = min(MOST_MATRICES, -(-self._streamed_bytes // (row_bytes * rows)))
        key = (storage, rows, columns, count)
        if self._kept and self._kept[0] == key:
            return self._kept[1]
        if self._kept:
            self._kept[1].close()
            self._kept = None
        weights = Weights(self._ggml, storage, columns, rows, count, self._folder)
        self._kept = (key, weights)
        return weights

    def _nodes(self, count: int, threads: int, seconds: float) -> dict[str, Any]:
        """A chain of additions of a few numbers: nothing but what the engine does around an operation."""
        call, context = self._ggml.call, self._ggml.context()
        first = call["new_tensor_2d"](context, TYPES["F32"], NODE_ELEMENTS, 1)
        chain = [first]
        for _ in range(count):
            chain.append(call["add"](context, chain[-1], first))
        graph = call["new_graph_custom"](context, GRAPH_NODES, False)
        call["build_forward_expand"](graph, chain[-1])
        buffer = call["backend_alloc_ctx_tensors_from_buft"](context, self._ggml.plain)
        ones = np.ones(NODE_ELEMENTS, np.float32)
        call["backend_tensor_set"](first, ones.ctypes.data, 0, ones.nbytes)
        try:
            samples = _samples(lambda: self._ggml.compute(graph, threads), seconds)
            found = np.zeros(NODE_ELEMENTS, np.float32)
            call["backend_tensor_get"](chain[-1], found.ctypes.data, 0, found.nbytes)
        finally:
            call["backend_buffer_free"](buffer)
            call["free"](context)
        error = float(np.abs(found - (count + 1)).max())
        return {
            "samples": [one / count for one in samples],
            "kernel": "CPU",
            "pages": "allocated",
            "bytes": 0,
            "flops": 0.0,
            "error": error,
        }


def main() -> None:
    """Say what it is, then answer line by line."""
    try:
        program = Program(Ggml(), _last_cache_bytes(), sys.argv[1] if len(sys.argv) > 1 else None)
        version = metadata.version("xllamacpp")
    except (ImportError, AttributeError, OSError, metadata.PackageNotFoundError) as error:
        _say({"problem": f"llama.cpp's kernels cannot be loaded: {error}"})
        return
    _say({"library": f"ggml of xllamacpp {version}", "types": list(TYPES)})
    for line in sys.stdin:
        try:
            _say(program.answer(json.loads(line)))
        except (KeyError, ValueError, MemoryError, RuntimeError) as error:
            _say({"problem": f"{type(error).__name__}: {error}"})


def plain(stored: np.ndarray, storage: str) -> np.ndarray:
    """Stored rows as float32, by the gguf package's own reading of the format."""
    kind = gguf.GGMLQuantizationType[storage]
    if storage in {"F32", "F16"}:  # plain numbers; all other types are taken as bytes
        return stored.view(np.float32 if storage == "F32" else np.float16).astype(np.float32)
    return np.asarray(gguf.quants.dequantize(stored, kind), np.float32)


def _samples(once: Any, seconds: float) -> list[float]:
    once()  # page faults, and the threads' first wake
    samples: list[float] = []
    began_s = time.perf_counter()
    while True:
        before_s = time.perf_counter()
        once()
        now_s = time.perf_counter()
        samples.append(now_s - before_s)
        spent_s = now_s - began_s
        if spent_s > PATIENCE * seconds or (spent_s > seconds and len(samples) >= FEWEST):
            break
    return samples[:: max(1, len(samples) // KEPT)]


def _last_cache_bytes() -> int:
    """Of the first processor; 0 where the system does not say."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        if text.endswith("K") and text[:-1].isdecimal():
            sizes.append(int(text[:-1]) * 1024)
    return max(sizes, default=0)


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
