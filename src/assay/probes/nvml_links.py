"""How NVIDIA GPUs are joined: NVLink, the NVSwitch fabric, peer-to-peer access."""

from __future__ import annotations

import ctypes
from typing import Any

from assay.probes.nvml_ask import Asker
from assay.probes.nvml_names import FABRIC, LEVELS, P2P
from assay.records.gpu import GpuPair


def nvlinks(asker: Asker) -> tuple[int | None, int | None, str | None]:
    """Links that are up, links that are down, and their version; None where the board has none."""
    nvml = asker.nvml
    states, version = [], None
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        state = asker.ask("nvlinks_active", "nvmlDeviceGetNvLinkState", link)
        if state is None:  # this board has no further link
            break
        states.append(state == nvml.NVML_FEATURE_ENABLED)
        if states[-1] and version is None:
            version = asker.ask("nvlink_version", "nvmlDeviceGetNvLinkVersion", link)
    if not states:
        return None, None, None
    asker.missing.pop("nvlinks_active", None)
    return sum(states), len(states) - sum(states), None if version is None else str(version)


def fabric(asker: Asker) -> str | None:
    """State of the NVSwitch fabric that the GPU belongs to."""
    kind = getattr(asker.nvml, "c_nvmlGpuFabricInfo_t", None)
    if kind is None:
        return None
    info = kind()
    answered = asker.ask("fabric", "nvmlDeviceGetGpuFabricInfo", ctypes.byref(info))
    return None if answered is None else FABRIC.get(info.state)


def pair(nvml: Any, first: tuple[int, Any], second: tuple[int, Any]) -> GpuPair:
    """What lies between two GPUs, and whether each may read and write the other's memory."""
    (a, handle_a), (b, handle_b) = first, second
    read, write = nvml.NVML_P2P_CAPS_INDEX_READ, nvml.NVML_P2P_CAPS_INDEX_WRITE
    by_nvlink = _status(nvml, handle_a, handle_b, nvml.NVML_P2P_CAPS_INDEX_NVLINK) == "ok"
    return GpuPair(
        a=a,
        b=b,
        level="nvlink" if by_nvlink else _level(nvml, handle_a, handle_b),
        p2p_read=_status(nvml, handle_a, handle_b, _index(read)),
        p2p_write=_status(nvml, handle_a, handle_b, _index(write)),
    )


def _index(value: Any) -> int:
    """Some releases of pynvml define NVML_P2P_CAPS_INDEX_READ as (0,), by a stray comma."""
    return int(value[0] if isinstance(value, tuple) else value)


def _status(nvml: Any, a: Any, b: Any, capability: int) -> str | None:
    try:
        return P2P.get(nvml.nvmlDeviceGetP2PStatus(a, b, capability), "unknown")
    except (nvml.NVMLError, AttributeError):
        return None


def _level(nvml: Any, a: Any, b: Any) -> str | None:
    try:
        return LEVELS.get(nvml.nvmlDeviceGetTopologyCommonAncestor(a, b))
    except (nvml.NVMLError, AttributeError):
        return None
