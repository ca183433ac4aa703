"""NVIDIA GPUs through NVML: pynvml's answers as our records.

The module is handed in, so that this file imports nothing, and tests bring their own. Many boards do not support many
calls: each is asked on its own, and what it will not say is None with the reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from itertools import combinations
from typing import Any

from assay.probes.gpu_facts import counted_sms
from assay.probes.nvml_ask import Asker
from assay.probes.nvml_links import fabric, nvlinks, pair
from assay.probes.nvml_names import COMPUTE_MODES
from assay.probes.nvml_parts import clocks, ecc, enabled, mig_instances, pcie, power, processes, reasons
from assay.records.gpu import Gpu, GpuReading


def read_nvml(nvml: Any, program_of: Callable[[int], str | None] = lambda _: None) -> GpuReading:
    """Ask the driver about everything.

    Args:
        nvml: the module `pynvml`, or one with the same functions.
        program_of: the program of a process, by its id.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return GpuReading(problem=_said(error))
    try:
        return _read(nvml, program_of)
    except nvml.NVMLError as error:
        return GpuReading(problem=_said(error))
    finally:
        with suppress(nvml.NVMLError):  # what was read stands
            nvml.nvmlShutdown()


def used_bytes(nvml: Any) -> int | None:
    """Memory in use on all GPUs together; None without one, or where the driver does not say."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return sum(int(nvml.nvmlDeviceGetMemoryInfo(handle).used) for handle in handles) if handles else None
    except nvml.NVMLError:
        return None
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _read(nvml: Any, program_of: Callable[[int], str | None]) -> GpuReading:
    handles = []
    lost = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handles.append((index, nvml.nvmlDeviceGetHandleByIndex(index)))
        except nvml.NVMLError as error:
            lost.append(Gpu(index=index, name="unknown", lost=str(error)))
    gpus = [_gpu(Asker(nvml, handle), index, program_of) for index, handle in handles]
    return GpuReading(
        gpus=sorted([*gpus, *lost], key=lambda gpu: gpu.index),
        pairs=[pair(nvml, a, b) for a, b in combinations(handles, 2)],
        driver=_system(nvml, "nvmlSystemGetDriverVersion"),
        cuda=_cuda(nvml),
        problem=None if gpus or lost else "NVML: the driver lists no GPU",
    )


def _gpu(asker: Asker, index: int, program_of: Callable[[int], str | None]) -> Gpu:
    nvml, ask = asker.nvml, asker.ask
    capability = ask("compute_capability", "nvmlDeviceGetCudaComputeCapability")
    memory = ask("memory_bytes", "nvmlDeviceGetMemoryInfo")
    bar1 = ask("bar1_bytes", "nvmlDeviceGetBAR1MemoryInfo")
    pci = ask("bus_id", "nvmlDeviceGetPciInfo")
    mig = ask("mig_enabled", "nvmlDeviceGetMigMode")
    rates = ask("utilization", "nvmlDeviceGetUtilizationRates")
    active, inactive, version = nvlinks(asker)
    gpu = Gpu(
        index=index,
        name=_text(ask("name", "nvmlDeviceGetName")) or "unknown",
        id_hash=_hashed(_text(ask("id_hash", "nvmlDeviceGetUUID"))),
        bus_id=_text(pci.busId) if pci else None,
        architecture=f"sm_{capability[0]}{capability[1]}" if capability else None,
        compute_capability=capability[0] + capability[1] / 10 if capability else None,
        sms=counted_sms(ask("sms", "nvmlDeviceGetNumGpuCores"), capability),
        memory_bytes=memory.total if memory else None,
        memory_used_bytes=memory.used if memory else None,
        bar1_bytes=bar1.bar1Total if bar1 else None,
        clocks=clocks(asker),
        power=power(asker),
        temperature_c=ask("temperature_c", "nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        slowdown_temperature_c=ask(
            "slowdown_temperature_c", "nvmlDeviceGetTemperatureThreshold", nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        ),
        throttle_reasons=reasons(asker),
        performance_state=_known_state(ask("performance_state", "nvmlDeviceGetPerformanceState")),
        utilization=rates.gpu / 100 if rates else None,
        ecc=ecc(asker),
        mig_enabled=mig[0] == nvml.NVML_DEVICE_MIG_ENABLE if mig else None,
        mig_instances=mig_instances(asker) if mig and mig[0] == nvml.NVML_DEVICE_MIG_ENABLE else None,
        persistence=enabled(asker, ask("persistence", "nvmlDeviceGetPersistenceMode")),
        compute_mode=COMPUTE_MODES.get(ask("compute_mode", "nvmlDeviceGetComputeMode")),
        pcie=pcie(asker),
        nvlinks_active=active,
        nvlinks_inactive=inactive,
        nvlink_version=version,
        fabric=fabric(asker),
        processes=processes(asker, program_of),
    )
    return gpu.model_copy(update={"missing": asker.missing, "lost": asker.lost})


def _said(error: Exception) -> str:
    return str(error) if "NVML" in str(error) else f"NVML: {error}"


def _known_state(state: int | None) -> int | None:
    return state if state is not None and 0 <= state <= 15 else None  # noqa: PLR2004 - P0 to P15; 32 is unknown


def _cuda(nvml: Any) -> str | None:
    number = _system(nvml, "nvmlSystemGetCudaDriverVersion_v2")
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}" if number else None


def _system(nvml: Any, call: str) -> str | None:
    try:
        return _text(getattr(nvml, call)())
    except (nvml.NVMLError, AttributeError):
        return None


def _text(value: Any) -> str:
    """Older pynvml gives bytes."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return "" if value is None else str(value)


def _hashed(unique_id: str) -> str:
    return hashlib.sha256(unique_id.encode()).hexdigest()[:12] if unique_id else ""
