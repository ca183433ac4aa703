"""Part of the L2 set aside for one buffer: CUDA's access policy window.

PyTorch has no call for it: the runtime library that it loaded is called. Source: CUDA C++ Programming Guide, "L2
Set-Aside Cache for Persisting Accesses".
"""

from __future__ import annotations

import ctypes
import re
from ctypes import POINTER, byref, c_float, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import torch

WINDOW_ATTRIBUTE = 1
"""cudaStreamAttributeAccessPolicyWindow."""
NORMAL, STREAMING, PERSISTING = 0, 1, 2
PERSISTING_LIMIT = 6
"""cudaLimitPersistingL2CacheSize."""
MAX_PERSISTING, MAX_WINDOW = 108, 109
"""cudaDevAttrMaxPersistingL2CacheSize, cudaDevAttrMaxAccessPolicyWindowSize."""
VALUE_BYTES = 64
"""Of the union of stream attributes."""


class _Window(ctypes.Structure):
    """cudaAccessPolicyWindow."""

    _fields_ = (
        ("base_ptr", c_void_p),
        ("num_bytes", c_size_t),
        ("hit_ratio", c_float),
        ("hit_property", c_int),
        ("miss_property", c_int),
    )


class _Value(ctypes.Union):
    """cudaStreamAttrValue."""

    _fields_ = (("pad", ctypes.c_char * VALUE_BYTES), ("window", _Window))


class Persistence:
    """The set-aside of the current device."""

    def __init__(self) -> None:
        """Find the library and what the device allows.

        Raises:
            RuntimeError: no library, or the device has no such thing.
        """
        self._cuda = ctypes.CDLL(_runtime_path())
        self._cuda.cudaStreamSetAttribute.argtypes = [c_void_p, c_int, POINTER(_Value)]
        self._cuda.cudaDeviceSetLimit.argtypes = [c_int, c_size_t]
        device = torch.cuda.current_device()
        self.most_bytes = min(self._attribute(MAX_PERSISTING, device), self._attribute(MAX_WINDOW, device))
        if not self.most_bytes:
            raise RuntimeError("the device cannot set a part of its L2 aside")

    def keep(self, tensor: Any, num_bytes: int) -> None:
        """From here on, what the current stream reads of the tensor's first bytes stays in the L2."""
        self._check(self._cuda.cudaDeviceSetLimit(PERSISTING_LIMIT, self.most_bytes), "cudaDeviceSetLimit")
        self._set(_Window(tensor.data_ptr(), num_bytes, 1.0, PERSISTING, STREAMING))

    def forget(self) -> None:
        """The stream treats everything alike again, and nothing is held back in the L2."""
        self._set(_Window(None, 0, 0.0, NORMAL, NORMAL))
        self._check(self._cuda.cudaCtxResetPersistingL2Cache(), "cudaCtxResetPersistingL2Cache")
        self._check(self._cuda.cudaDeviceSetLimit(PERSISTING_LIMIT, 0), "cudaDeviceSetLimit")

    def _set(self, window: _Window) -> None:
        value = _Value()
        value.window = window
        stream = torch.cuda.current_stream().cuda_stream
        self._check(self._cuda.cudaStreamSetAttribute(stream, WINDOW_ATTRIBUTE, byref(value)), "cudaStreamSetAttribute")

    def _attribute(self, number: int, device: int) -> int:
        value = c_int()
        self._check(self._cuda.cudaDeviceGetAttribute(byref(value), number, device), "cudaDeviceGetAttribute")
        return value.value

    @staticmethod
    def _check(code: int, what: str) -> None:
        if code:
            raise RuntimeError(f"{what} ended with CUDA error {code}")


def _runtime_path() -> str:
    """The library that this process has loaded already: another copy would have another idea of the device."""
    torch.cuda.init()
    maps = Path("/proc/self/maps")
    found = re.search(r"(/\S*libcudart[^\s/]*)", maps.read_text()) if maps.exists() else None
    if found is None:
        raise RuntimeError("no libcudart is loaded in this process")
    return found[1]
