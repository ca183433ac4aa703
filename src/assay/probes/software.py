"""Versions of drivers, libraries and engines, without importing any of them."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from assay.probes.files import Files

PACKAGES = (
    "assay",
    "torch",
    "triton",
    "vllm",
    "sglang",
    "sgl-kernel",
    "sglang-kernel",
    "tensorrt-llm",
    "flashinfer-python",
    "flash-attn",
    "xformers",
    "transformers",
    "llama-cpp-python",
    "xllamacpp",
    "deep-gemm",
    "deep-ep",
    "mscclpp",
    "nvidia-nccl-cu13",
    "nvidia-nccl-cu12",
    "nvidia-cuda-runtime",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-cudnn-cu12",
    "nvidia-ml-py",
    "amdsmi",
    "aiter",
    "ray",
    "numpy",
)


def read_software(files: Files) -> dict[str, str]:
    """Packages of this Python, and what the system has outside of it (`cuda`, `rocm`, `nccl`)."""
    return {**_packages(), **_system(files)}


def torch_cuda(software: dict[str, str]) -> tuple[int, int] | None:
    """The CUDA that the installed torch was built for; None without torch, or where its version does not tell.

    >>> torch_cuda({"torch": "2.11.0+cu130"})
    (13, 0)
    """
    match = re.search(r"\+cu(\d+)(\d)$", software.get("torch", ""))
    if match:
        return int(match[1]), int(match[2])
    if "torch" not in software:
        return None
    runtime = software.get("nvidia-cuda-runtime") or software.get("nvidia-cuda-runtime-cu12")
    numbers = re.match(r"(\d+)\.(\d+)", runtime or "")
    return (int(numbers[1]), int(numbers[2])) if numbers else None


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _system(files: Files) -> dict[str, str]:
    found = {}
    with suppress(ValueError, KeyError, TypeError):
        found["cuda"] = str(json.loads(files.text("usr/local/cuda/version.json") or "")["cuda"]["version"])
    if rocm := files.text("opt/rocm/.info/version"):
        found["rocm"] = rocm.splitlines()[0]
    libraries = files.folders("usr/lib/*-linux-gnu/libnccl.so.*.*.*") + files.folders("usr/lib64/libnccl.so.*.*.*")
    if libraries:
        found["nccl"] = libraries[-1].name.removeprefix("libnccl.so.")
    return found
