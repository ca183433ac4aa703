"""Parts of what NVML says of a GPU: clocks, power, memory errors, the PCIe link, processes."""

from __future__ import annotations

from collections.abc import Callable

from assay.probes.nvml_ask import Asker
from assay.probes.nvml_names import throttle_reasons
from assay.records.gpu import Clocks, Ecc, GpuProcess, PcieLink, Power

_HZ_PER_MHZ = 1e6
_W_PER_MW = 1e-3
_MAX_MIG = 16


def clocks(asker: Asker) -> Clocks:
    """Clocks, now and at most."""
    nvml = asker.nvml

    def hertz(field: str, call: str, domain: int) -> float | None:
        megahertz = asker.ask(f"clocks.{field}", call, domain)
        return None if megahertz is None else megahertz * _HZ_PER_MHZ

    sm, memory = nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM
    return Clocks(
        sm_hz=hertz("sm_hz", "nvmlDeviceGetClockInfo", sm),
        sm_max_hz=hertz("sm_max_hz", "nvmlDeviceGetMaxClockInfo", sm),
        sm_application_hz=hertz("sm_application_hz", "nvmlDeviceGetApplicationsClock", sm),
        sm_application_default_hz=hertz("sm_application_default_hz", "nvmlDeviceGetDefaultApplicationsClock", sm),
        memory_hz=hertz("memory_hz", "nvmlDeviceGetClockInfo", memory),
        memory_max_hz=hertz("memory_max_hz", "nvmlDeviceGetMaxClockInfo", memory),
    )


def power(asker: Asker) -> Power:
    """Draw and limits."""

    def watts(field: str, call: str) -> float | None:
        milliwatts = asker.ask(f"power.{field}", call)
        return None if milliwatts is None else milliwatts * _W_PER_MW

    constraints = asker.ask("power.max_limit_w", "nvmlDeviceGetPowerManagementLimitConstraints")
    return Power(
        draw_w=watts("draw_w", "nvmlDeviceGetPowerUsage"),
        limit_w=watts("limit_w", "nvmlDeviceGetPowerManagementLimit"),
        default_limit_w=watts("default_limit_w", "nvmlDeviceGetPowerManagementDefaultLimit"),
        max_limit_w=constraints[1] * _W_PER_MW if constraints else None,
    )


def ecc(asker: Asker) -> Ecc:
    """Error correction: mode, counts, replaced rows."""
    nvml = asker.nvml
    mode = asker.ask("ecc.enabled", "nvmlDeviceGetEccMode")
    counts = {}
    for field, kind in (("corrected", nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
                        ("uncorrected", nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)):  # fmt: skip
        counts[field] = asker.ask(f"ecc.{field}", "nvmlDeviceGetTotalEccErrors", kind, nvml.NVML_VOLATILE_ECC)
    rows = asker.ask("ecc.remap_pending", "nvmlDeviceGetRemappedRows")
    return Ecc(
        enabled=enabled(asker, mode[0]) if mode else None,
        pending=enabled(asker, mode[1]) if mode else None,
        remap_pending=bool(rows[2]) if rows else None,
        remap_failed=bool(rows[3]) if rows else None,
        **counts,
    )


def pcie(asker: Asker) -> PcieLink:
    """The link to the host."""
    calls = {
        "generation": "nvmlDeviceGetCurrPcieLinkGeneration",
        "width": "nvmlDeviceGetCurrPcieLinkWidth",
        "max_generation": "nvmlDeviceGetMaxPcieLinkGeneration",
        "max_width": "nvmlDeviceGetMaxPcieLinkWidth",
        "gpu_max_generation": "nvmlDeviceGetGpuMaxPcieLinkGeneration",
        "replays": "nvmlDeviceGetPcieReplayCounter",
    }
    return PcieLink(**{field: asker.ask(f"pcie.{field}", call) for field, call in calls.items()})


def processes(asker: Asker, program_of: Callable[[int], str | None]) -> list[GpuProcess] | None:
    """Who holds memory; None where the driver does not say."""
    compute = asker.ask("processes", "nvmlDeviceGetComputeRunningProcesses")
    graphics = asker.ask("processes.graphics", "nvmlDeviceGetGraphicsRunningProcesses")
    if compute is None:
        return None
    compute_pids = {process.pid for process in compute}
    kinds = [(process, "compute") for process in compute]
    kinds += [(process, "graphics") for process in graphics or [] if process.pid not in compute_pids]
    return [
        GpuProcess.model_validate(
            {
                "pid": process.pid,
                "program": program_of(process.pid),
                "memory_bytes": process.usedGpuMemory,
                "kind": kind,
            }
        )
        for process, kind in kinds
    ]


def reasons(asker: Asker) -> list[str] | None:
    """Why the clock is not higher; None where the driver does not say."""
    # Renamed in driver 535; older ones only know the second name.
    for call in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
        bits = asker.ask("throttle_reasons", call)
        if bits is not None:
            asker.missing.pop("throttle_reasons", None)
            return throttle_reasons(bits)
    return None


def mig_instances(asker: Asker) -> int:
    """Slices that are set up."""
    most = asker.ask("mig_instances", "nvmlDeviceGetMaxMigDeviceCount")
    found = 0
    for number in range(min(most or 0, _MAX_MIG)):
        try:
            asker.nvml.nvmlDeviceGetMigDeviceHandleByIndex(asker.handle, number)
        except asker.nvml.NVMLError:  # an empty place is an error to NVML
            continue
        found += 1
    return found


def enabled(asker: Asker, state: int | None) -> bool | None:
    """A driver's on or off."""
    return None if state is None else bool(state == asker.nvml.NVML_FEATURE_ENABLED)
