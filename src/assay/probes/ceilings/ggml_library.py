"""ggml, llama.cpp's arithmetic, called as it lies in the embedded engine's wheel: the kernels that serving would use.

Plain C functions of ggml's public headers (ggml.h, ggml-backend.h, ggml-cpu.h), which the wheel exports. No structure
of theirs is looked into, but for the three fields of `ggml_init_params`.
Imports nothing of Assay: it is loaded into a process of its own, which a crash in foreign code may end.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_bool, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any

import numpy as np

TYPES = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q2_K": 10, "Q3_K": 11, "Q4_K": 12,
    "Q5_K": 13, "Q6_K": 14, "IQ4_NL": 20, "IQ4_XS": 23, "BF16": 30, "MXFP4": 39,
}  # fmt: skip
"""Weight types by ggml's enumeration; those that a quantizer makes without calibration data."""
NO_ALLOC_BYTES = 8 << 20
"""Of a context that holds descriptions of tensors only."""
GRAPH_NODES = 4096
SOURCE_ROWS = 64
"""Rows that are drawn and quantized; a matrix repeats them, since its speed does not depend on its values."""

_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "ggml_free": (None, [c_void_p]),
    "ggml_new_tensor_2d": (c_void_p, [c_void_p, c_int, c_int64, c_int64]),
    "ggml_mul_mat": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "ggml_add": (c_void_p, [c_void_p, c_void_p, c_void_p]),
    "ggml_nbytes": (c_size_t, [c_void_p]),
    "ggml_quantize_chunk": (c_size_t, [c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p]),
    "ggml_new_graph_custom": (c_void_p, [c_void_p, c_size_t, c_bool]),
    "ggml_build_forward_expand": (None, [c_void_p, c_void_p]),
    "ggml_backend_cpu_init": (c_void_p, []),
    "ggml_backend_cpu_set_n_threads": (None, [c_void_p, c_int]),
    "ggml_backend_cpu_buffer_type": (c_void_p, []),
    "ggml_backend_cpu_buffer_from_ptr": (c_void_p, [c_void_p, c_size_t]),
    "ggml_backend_get_device": (c_void_p, [c_void_p]),
    "ggml_backend_dev_backend_reg": (c_void_p, [c_void_p]),
    "ggml_backend_dev_supports_op": (c_bool, [c_void_p, c_void_p]),
    "ggml_backend_reg_get_proc_address": (c_void_p, [c_void_p, c_char_p]),
    "ggml_backend_buft_name": (c_char_p, [c_void_p]),
    "ggml_backend_buft_alloc_buffer": (c_void_p, [c_void_p, c_size_t]),
    "ggml_backend_buft_get_alloc_size": (c_size_t, [c_void_p, c_void_p]),
    "ggml_backend_buffer_get_base": (c_void_p, [c_void_p]),
    "ggml_backend_buffer_free": (None, [c_void_p]),
    "ggml_backend_tensor_alloc": (c_int, [c_void_p, c_void_p, c_void_p]),
    "ggml_backend_alloc_ctx_tensors_from_buft": (c_void_p, [c_void_p, c_void_p]),
    "ggml_backend_tensor_set": (None, [c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_tensor_get": (None, [c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_graph_compute": (c_int, [c_void_p, c_void_p]),
}


class _InitParams(ctypes.Structure):
    """`ggml_init_params`."""

    _fields_ = (("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool))


class Ggml:
    """The functions, a CPU back end, and the buffer types that llama.cpp would offer weights, best first.

    Raises:
        ImportError: the wheel is not installed.
        AttributeError: it does not export a function; says which.
    """

    def __init__(self) -> None:
        import xllamacpp  # noqa: F401, PLC0415 - loads the library

        library = ctypes.CDLL(sys.modules["xllamacpp.xllamacpp"].__file__)
        init = library.ggml_init
        init.restype, init.argtypes = c_void_p, [_InitParams]
        self._init = init
        self.call: dict[str, Any] = {}
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
            self.call[name.removeprefix("ggml_")] = function
        self.backend = self.call["backend_cpu_init"]()
        self.device = self.call["backend_get_device"](self.backend)
        self.plain = self.call["backend_cpu_buffer_type"]()

    def context(self) -> int:
        """A context for descriptions of tensors."""
        return int(self._init(_InitParams(NO_ALLOC_BYTES, None, True)))

    def buffer_types(self) -> list[int]:
        """Where weights may lie: those that rearrange them for faster kernels first, plain memory last.

        The same list, in the same order, that llama.cpp's loader goes through for every weight.
        """
        registry = self.call["backend_dev_backend_reg"](self.device)
        address = self.call["backend_reg_get_proc_address"](registry, b"ggml_backend_dev_get_extra_bufts")
        found: list[int] = []
        if address:
            array = ctypes.CFUNCTYPE(ctypes.POINTER(c_void_p), c_void_p)(address)(self.device)
            while array and array[len(found)]:
                found.append(array[len(found)])
        return [*found, self.plain]

    def name(self, buffer_type: int) -> str:
        """CPU, CPU_REPACK ..."""
        return str(self.call["backend_buft_name"](buffer_type).decode())

    def chosen(self, kind: int, columns: int, rows: int) -> int:
        """The first buffer type whose kernels take such a weight, asked as the loader asks."""
        call = self.call
        for buffer_type in self.buffer_types():
            context = self.context()
            weight = call["new_tensor_2d"](context, kind, columns, rows)
            vector = call["new_tensor_2d"](context, TYPES["F32"], columns, 1)
            product = call["mul_mat"](context, weight, vector)
            buffers = []
            for tensor, place in ((vector, self.plain), (weight, buffer_type)):
                size = call["backend_buft_get_alloc_size"](place, tensor)
                buffers.append(call["backend_buft_alloc_buffer"](place, size))
                call["backend_tensor_alloc"](buffers[-1], tensor, call["backend_buffer_get_base"](buffers[-1]))
            taken = bool(call["backend_dev_supports_op"](self.device, product))
            for buffer in buffers:
                call["backend_buffer_free"](buffer)
            call["free"](context)
            if taken:
                return buffer_type
        return int(self.plain)

    def compute(self, graph: int, threads: int) -> None:
        """Run a graph.

        Raises:
            RuntimeError: ggml says that it failed.
        """
        self.call["backend_cpu_set_n_threads"](self.backend, threads)
        status = self.call["backend_graph_compute"](self.backend, graph)
        if status:
            raise RuntimeError(f"ggml_backend_graph_compute returned {status}")

    def quantized(self, storage: str, columns: int, source: np.ndarray) -> np.ndarray:
        """Rows of float32 as ggml's own quantizer stores them."""
        enough = np.zeros(source.nbytes + 1024, np.uint8)
        size = self.call["quantize_chunk"](
            TYPES[storage], source.ctypes.data, enough.ctypes.data, 0, len(source), columns, None
        )
        return enough[:size]
