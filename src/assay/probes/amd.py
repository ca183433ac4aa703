"""AMD GPUs through amdsmi, as the same records; what its version does not say is None with the reason.

Written against the AMD SMI Python reference (ROCm 6 and 7): some keys changed names between them, and "N/A" stands for
what a board does not have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from assay.records.device import Fact
from assay.records.gpu import Clocks, Ecc, Gpu, GpuPair, GpuReading, PcieLink, Power
from assay.units import MIB_BYTES

_W_PER_UW = 1e-6
_HZ_PER_MHZ = 1e6
_GENERATION_OF_MT_PER_S = {2500: 1, 5000: 2, 8000: 3, 16000: 4, 32000: 5, 64000: 6}
_XGMI = 2
"""AMDSMI_LINK_TYPE_XGMI."""


def read_amdsmi(smi: Any) -> GpuReading:
    """Ask the driver about everything; `smi` is the module `amdsmi`, or one with the same functions."""
    try:
        smi.amdsmi_init()
    except smi.AmdSmiException as error:
        return GpuReading(problem=f"amdsmi: {error}")
    try:
        handles = list(enumerate(smi.amdsmi_get_processor_handles()))
        gpus = [_gpu(_Asker(smi, handle), index) for index, handle in handles]
        driver = _Asker(smi, handles[0][1]).ask("driver", "amdsmi_get_gpu_driver_info") if handles else {}
        return GpuReading(
            gpus=gpus,
            pairs=[_pair(smi, one, other) for one, other in combinations(handles, 2)],
            driver=str(driver["driver_version"]) if driver.get("driver_version") else None,
            problem=None if gpus else "amdsmi: the driver lists no GPU",
        )
    except smi.AmdSmiException as error:
        return GpuReading(problem=f"amdsmi: {error}")
    finally:
        smi.amdsmi_shut_down()


class _Asker:
    """Asks one GPU; every answer is a dictionary, empty when there is none."""

    def __init__(self, smi: Any, handle: Any) -> None:
        self.smi = smi
        self.handle = handle
        self.missing: dict[str, str] = {}

    def ask(self, field: str, call: str, *arguments: Any) -> Mapping[str, Any]:
        answer = self.value(field, call, *arguments)
        return answer if isinstance(answer, Mapping) else {}

    def value(self, field: str, call: str, *arguments: Any) -> Any:
        try:
            return getattr(self.smi, call)(self.handle, *arguments)
        except AttributeError:
            self.missing[field] = f"this amdsmi has no {call}"
        except self.smi.AmdSmiException as error:
            self.missing[field] = str(error)
        return None


def _gpu(asker: _Asker, index: int) -> Gpu:
    asic = asker.ask("name", "amdsmi_get_gpu_asic_info")
    memory = asker.ask("memory_bytes", "amdsmi_get_gpu_vram_usage")
    units = _number(asic, "num_compute_units", "num_of_compute_units")
    unique_id = asker.value("id_hash", "amdsmi_get_gpu_device_uuid")
    activity = _number(asker.ask("utilization", "amdsmi_get_gpu_activity"), "gfx_activity")
    gpu = Gpu(
        index=index,
        vendor="amd",
        name=str(asic.get("market_name") or "unknown"),
        id_hash=hashlib.sha256(str(unique_id).encode()).hexdigest()[:12] if unique_id else "",
        bus_id=asker.value("bus_id", "amdsmi_get_gpu_device_bdf"),
        architecture=asic.get("target_graphics_version"),
        sms=Fact(value=units, unit="1", basis="measured", source="the driver: compute units") if units else None,
        memory_bytes=_bytes(_number(memory, "vram_total")),
        memory_used_bytes=_bytes(_number(memory, "vram_used")),
        clocks=_clocks(asker),
        power=_power(asker),
        temperature_c=_temperature_c(asker),
        utilization=None if activity is None else activity / 100,
        ecc=_ecc(asker),
        pcie=_pcie(asker),
        numa_node=asker.value("numa_node", "amdsmi_topo_get_numa_node_number"),
    )
    return gpu.model_copy(update={"missing": asker.missing})


def _clocks(asker: _Asker) -> Clocks:
    kinds = getattr(asker.smi, "AmdSmiClkType", None)
    graphics = asker.ask("clocks.sm_hz", "amdsmi_get_clock_info", kinds.GFX) if kinds else {}
    memory = asker.ask("clocks.memory_hz", "amdsmi_get_clock_info", kinds.MEM) if kinds else {}
    return Clocks(
        sm_hz=_hertz(_number(graphics, "clk", "cur_clk")),
        sm_max_hz=_hertz(_number(graphics, "max_clk")),
        memory_hz=_hertz(_number(memory, "clk", "cur_clk")),
        memory_max_hz=_hertz(_number(memory, "max_clk")),
    )


def _power(asker: _Asker) -> Power:
    cap = asker.ask("power.limit_w", "amdsmi_get_power_cap_info")
    now = asker.ask("power.draw_w", "amdsmi_get_power_info")
    return Power(
        draw_w=_number(now, "current_socket_power", "average_socket_power", "socket_power"),
        limit_w=_watts(_number(cap, "power_cap")),
        default_limit_w=_watts(_number(cap, "default_power_cap")),
        max_limit_w=_watts(_number(cap, "max_power_cap")),
    )


def _temperature_c(asker: _Asker) -> float | None:
    kinds, metrics = (
        getattr(asker.smi, "AmdSmiTemperatureType", None),
        getattr(asker.smi, "AmdSmiTemperatureMetric", None),
    )
    if kinds is None or metrics is None:
        return None
    value = asker.value("temperature_c", "amdsmi_get_temp_metric", kinds.HOTSPOT, metrics.CURRENT)
    return float(value) if isinstance(value, int | float) else None


def _ecc(asker: _Asker) -> Ecc:
    counts = asker.ask("ecc.corrected", "amdsmi_get_gpu_total_ecc_count")
    corrected, uncorrected = _number(counts, "correctable_count"), _number(counts, "uncorrectable_count")
    return Ecc(
        corrected=None if corrected is None else int(corrected),
        uncorrected=None if uncorrected is None else int(uncorrected),
    )


def _pcie(asker: _Asker) -> PcieLink:
    info = asker.ask("pcie.width", "amdsmi_get_pcie_info")
    fixed, now = info.get("pcie_static") or {}, info.get("pcie_metric") or {}
    return PcieLink(
        generation=_generation(_number(now, "pcie_speed")),
        width=_count(_number(now, "pcie_width")),
        max_generation=_generation(_number(fixed, "max_pcie_speed")),
        max_width=_count(_number(fixed, "max_pcie_width")),
        replays=_count(_number(now, "pcie_replay_count")),
    )


def _pair(smi: Any, one: tuple[int, Any], other: tuple[int, Any]) -> GpuPair:
    (a, handle_a), (b, handle_b) = one, other
    link = _Asker(smi, handle_a).ask("level", "amdsmi_topo_get_link_type", handle_b)
    accessible = _Asker(smi, handle_a).value("p2p", "amdsmi_is_P2P_accessible", handle_b)
    status = None if accessible is None else "ok" if accessible else "not supported"
    level = None if not link else "xgmi" if link.get("type") == _XGMI else "host-bridge"
    return GpuPair(a=a, b=b, level=level, p2p_read=status, p2p_write=status)


def _number(answer: Mapping[str, Any], *names: str) -> float | None:
    """The first of these keys that holds a number."""
    values = (answer.get(name) for name in names)
    return next((float(value) for value in values if isinstance(value, int | float)), None)


def _count(value: float | None) -> int | None:
    return None if value is None else int(value)


def _bytes(mebibytes: float | None) -> int | None:
    return None if mebibytes is None else int(mebibytes * MIB_BYTES)


def _watts(microwatts: float | None) -> float | None:
    return None if microwatts is None else microwatts * _W_PER_UW


def _hertz(megahertz: float | None) -> float | None:
    return None if megahertz is None else megahertz * _HZ_PER_MHZ


def _generation(mt_per_s: float | None) -> int | None:
    return None if mt_per_s is None else _GENERATION_OF_MT_PER_S.get(int(mt_per_s))
