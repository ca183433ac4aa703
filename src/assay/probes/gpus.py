"""The GPUs of this machine, whoever made them: finds the library, asks it, and adds what it does not say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import psutil

from assay.errors import UsageError
from assay.probes import pci
from assay.probes.amd import read_amdsmi
from assay.probes.devices import load_devices
from assay.probes.files import Files
from assay.probes.gpu_facts import with_facts
from assay.probes.nvml import read_nvml, used_bytes
from assay.probes.servers import program_of
from assay.records.device import Device
from assay.records.gpu import Gpu, GpuReading
from assay.records.machine import GpuIdentity

_INSTALL = "nvidia-ml-py is not installed (`pip install 'assay[gpu]'`)"


def read_gpus(files: Files, nvml: Any = None, smi: Any = None) -> GpuReading:
    """Everything about them; without any, the reason.

    Args:
        files: for what the kernel knows of them.
        nvml: the module to ask instead of `pynvml`.
        smi: the module to ask instead of `amdsmi`.
    """
    nvml, smi = nvml or _module("pynvml"), smi or _module("amdsmi")
    reading = read_nvml(nvml, _program) if nvml else GpuReading(problem=_INSTALL)
    if not reading.gpus and smi:
        other = read_amdsmi(smi)
        reading = other if other.gpus else reading
    if not reading.gpus:
        return reading
    devices = _devices()
    return reading.model_copy(update={"gpus": [_placed(files, with_facts(gpu, devices)) for gpu in reading.gpus]})


def memory_used_bytes(nvml: Any = None) -> int | None:
    """In use on all GPUs together, in a few calls; None where the driver does not say, and for AMD's."""
    nvml = nvml or _module("pynvml")
    return used_bytes(nvml) if nvml else None


def identity(gpu: Gpu) -> GpuIdentity:
    """What of it a measurement depends on."""
    return GpuIdentity(
        name=gpu.name,
        memory_bytes=gpu.memory_bytes,
        compute_capability=gpu.compute_capability,
        power_limit_w=gpu.power.limit_w,
        pcie_generation=gpu.pcie.max_generation,
        pcie_width=gpu.pcie.width,
        nvlinks=gpu.nvlinks_active,
        ecc=gpu.ecc.enabled,
        mig=gpu.mig_enabled,
    )


def driver_major(driver: str | None) -> int | None:
    """580 of `580.159.04`; None when the driver does not say, or not in numbers."""
    first = (driver or "").partition(".")[0]
    return int(first) if first.isdigit() else None


def _module(name: str) -> Any:
    """An optional library, loaded by name; None when it is not there or does not load."""
    load: Callable[[str], Any] = import_module
    try:
        return load(name)
    except (ImportError, OSError, KeyError):  # amdsmi raises the last two when ROCm is not whole
        return None


def _devices() -> Mapping[str, Device]:
    try:
        return load_devices()
    except UsageError:  # a broken file is told by the commands that depend on it; taking stock goes on
        return {}


def _placed(files: Files, gpu: Gpu) -> Gpu:
    """With the node and the processors that it hangs on."""
    if gpu.bus_id is None:
        return gpu
    node = pci.numa_node(files, gpu.bus_id) if gpu.numa_node is None else gpu.numa_node
    return gpu.model_copy(update={"numa_node": node, "cpus": pci.near_cpus(files, gpu.bus_id)})


def _program(pid: int) -> str | None:
    """The server that a process is, else its program's name; None when it cannot be seen."""
    try:
        process = psutil.Process(pid)
        return program_of(process.cmdline()) or process.name()
    except psutil.Error:
        return None
