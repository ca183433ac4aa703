"""Tests of GPU kernels: in Triton's interpreter where there is no GPU; skipped where torch or triton is absent."""

import importlib.util
import os

# Triton reads this when a kernel is defined: it must be set before the kernels are imported.
if importlib.util.find_spec("torch") is not None:
    import torch

    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")
