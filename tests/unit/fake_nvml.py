"""A hand-written NVML: the functions and numbers of `pynvml` that the probe uses, over boards that a test describes.

`test_probes_nvml.py` holds the names, the numbers of arguments and the constants against the real package where it is
installed.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

CALLS = {
    "nvmlDeviceGetName": 1,
    "nvmlDeviceGetUUID": 1,
    "nvmlDeviceGetPciInfo": 1,
    "nvmlDeviceGetCudaComputeCapability": 1,
    "nvmlDeviceGetNumGpuCores": 1,
    "nvmlDeviceGetMemoryInfo": 1,
    "nvmlDeviceGetBAR1MemoryInfo": 1,
    "nvmlDeviceGetClockInfo": 2,
    "nvmlDeviceGetMaxClockInfo": 2,
    "nvmlDeviceGetApplicationsClock": 2,
    "nvmlDeviceGetDefaultApplicationsClock": 2,
    "nvmlDeviceGetPowerUsage": 1,
    "nvmlDeviceGetPowerManagementLimit": 1,
    "nvmlDeviceGetPowerManagementDefaultLimit": 1,
    "nvmlDeviceGetPowerManagementLimitConstraints": 1,
    "nvmlDeviceGetTemperature": 2,
    "nvmlDeviceGetTemperatureThreshold": 2,
    "nvmlDeviceGetCurrentClocksEventReasons": 1,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 1,
    "nvmlDeviceGetPerformanceState": 1,
    "nvmlDeviceGetUtilizationRates": 1,
    "nvmlDeviceGetEccMode": 1,
    "nvmlDeviceGetTotalEccErrors": 3,
    "nvmlDeviceGetRemappedRows": 1,
    "nvmlDeviceGetMigMode": 1,
    "nvmlDeviceGetMaxMigDeviceCount": 1,
    "nvmlDeviceGetMigDeviceHandleByIndex": 2,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetComputeMode": 1,
    "nvmlDeviceGetCurrPcieLinkGeneration": 1,
    "nvmlDeviceGetCurrPcieLinkWidth": 1,
    "nvmlDeviceGetMaxPcieLinkGeneration": 1,
    "nvmlDeviceGetMaxPcieLinkWidth": 1,
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": 1,
    "nvmlDeviceGetPcieReplayCounter": 1,
    "nvmlDeviceGetNvLinkState": 2,
    "nvmlDeviceGetNvLinkVersion": 2,
    "nvmlDeviceGetComputeRunningProcesses": 1,
    "nvmlDeviceGetGraphicsRunningProcesses": 1,
}
"""Calls about one device, with the number of their arguments."""
CONSTANTS = {
    "NVML_ERROR_NOT_SUPPORTED": 3,
    "NVML_ERROR_NOT_FOUND": 6,
    "NVML_ERROR_DRIVER_NOT_LOADED": 9,
    "NVML_ERROR_LIBRARY_NOT_FOUND": 12,
    "NVML_ERROR_GPU_IS_LOST": 15,
    "NVML_ERROR_RESET_REQUIRED": 16,
    "NVML_CLOCK_SM": 1,
    "NVML_CLOCK_MEM": 2,
    "NVML_TEMPERATURE_GPU": 0,
    "NVML_TEMPERATURE_THRESHOLD_SLOWDOWN": 1,
    "NVML_MEMORY_ERROR_TYPE_CORRECTED": 0,
    "NVML_MEMORY_ERROR_TYPE_UNCORRECTED": 1,
    "NVML_VOLATILE_ECC": 0,
    "NVML_FEATURE_ENABLED": 1,
    "NVML_DEVICE_MIG_ENABLE": 1,
    "NVML_P2P_CAPS_INDEX_WRITE": 1,
    "NVML_P2P_CAPS_INDEX_NVLINK": 2,
}
MESSAGES = {3: "Not Supported", 6: "Not Found", 9: "Driver Not Loaded", 12: "NVML Shared Library Not Found",
            15: "GPU is lost", 16: "GPU requires restart"}  # fmt: skip
NEVER = object()
"""The answer of a call that the board does not support."""
GIB = 1024**3


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(MESSAGES[value])
        self.value = value


@dataclass
class Board:
    """Answers by call; a callable answer is given the call's further arguments, an exception is raised."""

    answers: dict[str, Any]
    socket: int = 0

    def but(self, **changes: Any) -> Board:
        return Board(answers={**self.answers, **changes}, socket=self.socket)


@dataclass
class FakeNvml:
    boards: list[Board] = field(default_factory=list)
    driver: str | bytes = "580.95.05"
    cuda: int = 13000
    fails_at_start: int | None = None
    p2p: int = 0
    nvlinked: bool = False
    fabric_state: int | None = None
    num_shutdowns: int = 0

    class c_nvmlGpuFabricInfo_t(ctypes.Structure):  # noqa: N801 - NVML's name
        _fields_ = (("state", ctypes.c_ubyte),)

    NVMLError = NVMLError
    NVML_NVLINK_MAX_LINKS = 18
    NVML_P2P_CAPS_INDEX_READ = (0,)  # as in some releases of pynvml

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's name
        if self.fails_at_start is not None:
            raise NVMLError(self.fails_at_start)

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.num_shutdowns += 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.boards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Board:  # noqa: N802
        board = self.boards[index]
        if board.answers.get("handle") is NEVER:
            raise NVMLError(CONSTANTS["NVML_ERROR_GPU_IS_LOST"])
        return board

    def nvmlSystemGetDriverVersion(self) -> str | bytes:  # noqa: N802
        return self.driver

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return self.cuda

    def nvmlDeviceGetP2PStatus(self, one: Board, other: Board, capability: int) -> int:  # noqa: N802
        if capability == CONSTANTS["NVML_P2P_CAPS_INDEX_NVLINK"]:
            return 0 if self.nvlinked else 5
        return self.p2p

    def nvmlDeviceGetGpuFabricInfo(self, board: Board, reference: Any) -> int:  # noqa: N802
        if self.fabric_state is None:
            raise NVMLError(CONSTANTS["NVML_ERROR_NOT_SUPPORTED"])
        reference._obj.state = self.fabric_state
        return 0

    def nvmlDeviceGetTopologyCommonAncestor(self, one: Board, other: Board) -> int:  # noqa: N802
        return 40 if one.socket == other.socket else 50

    def __getattr__(self, name: str) -> Any:
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name not in CALLS:
            raise AttributeError(name)

        def call(board: Board, *arguments: Any) -> Any:
            assert len(arguments) + 1 == CALLS[name], f"{name} takes {CALLS[name]} arguments"
            answer = board.answers.get(name, NEVER)
            if isinstance(answer, Exception):
                raise answer
            if answer is NEVER:
                raise NVMLError(CONSTANTS["NVML_ERROR_NOT_SUPPORTED"])
            return answer(*arguments) if callable(answer) else answer

        return call


def rtx_pro_6000(number: int, **changes: Any) -> Board:
    """One of eight, four at each socket: no NVLink, no MIG, idle at PCIe generation 1."""
    bus_id = f"00000000:{0x10 + 0x10 * number:02X}:00.0"
    answers = {
        "nvmlDeviceGetName": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "nvmlDeviceGetUUID": f"GPU-00000000-0000-0000-0000-{number:012d}",
        "nvmlDeviceGetPciInfo": SimpleNamespace(busId=bus_id),
        "nvmlDeviceGetCudaComputeCapability": (12, 0),
        "nvmlDeviceGetNumGpuCores": 24064,
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=97887 * 1024**2, used=600 * 1024**2, free=0),
        "nvmlDeviceGetBAR1MemoryInfo": SimpleNamespace(bar1Total=128 * GIB),
        "nvmlDeviceGetClockInfo": lambda domain: {1: 180, 2: 405}[domain],
        "nvmlDeviceGetMaxClockInfo": lambda domain: {1: 2430, 2: 12481}[domain],
        "nvmlDeviceGetPowerUsage": 34_000,
        "nvmlDeviceGetPowerManagementLimit": 600_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 600_000,
        "nvmlDeviceGetPowerManagementLimitConstraints": [150_000, 600_000],
        "nvmlDeviceGetTemperature": lambda sensor: 31,
        "nvmlDeviceGetTemperatureThreshold": lambda threshold: 92,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
        "nvmlDeviceGetPerformanceState": 8,
        "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=0, memory=0),
        "nvmlDeviceGetEccMode": [1, 1],
        "nvmlDeviceGetTotalEccErrors": lambda kind, counter: 0,
        "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetComputeMode": 0,
        "nvmlDeviceGetCurrPcieLinkGeneration": 1,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetMaxPcieLinkWidth": 16,
        "nvmlDeviceGetGpuMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetPcieReplayCounter": 0,
        "nvmlDeviceGetComputeRunningProcesses": [],
        "nvmlDeviceGetGraphicsRunningProcesses": [],
    }
    return Board(answers={**answers, **changes}, socket=number // 4)


def rtx_pro_6000_box() -> FakeNvml:
    return FakeNvml(boards=[rtx_pro_6000(number) for number in range(8)])


def h200(number: int = 0, **changes: Any) -> Board:
    """One, with its 18 links up."""
    changes = {
        "nvmlDeviceGetName": "NVIDIA H200",
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetNumGpuCores": 16896,
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=143771 * 1024**2, used=500 * 1024**2, free=0),
        "nvmlDeviceGetBAR1MemoryInfo": SimpleNamespace(bar1Total=256 * GIB),
        "nvmlDeviceGetClockInfo": lambda domain: {1: 345, 2: 3201}[domain],
        "nvmlDeviceGetMaxClockInfo": lambda domain: {1: 1980, 2: 3201}[domain],
        "nvmlDeviceGetApplicationsClock": lambda domain: {1: 1980, 2: 3201}[domain],
        "nvmlDeviceGetDefaultApplicationsClock": lambda domain: {1: 1980, 2: 3201}[domain],
        "nvmlDeviceGetPowerManagementLimit": 700_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
        "nvmlDeviceGetPowerManagementLimitConstraints": [200_000, 700_000],
        "nvmlDeviceGetPerformanceState": 0,
        "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetNvLinkState": lambda link: 1,
        "nvmlDeviceGetNvLinkVersion": lambda link: 4,
        **changes,
    }
    return rtx_pro_6000(number, **changes)


def mig_h200(instances: int) -> Board:
    def handle(number: int) -> object:
        if number >= instances:
            raise NVMLError(CONSTANTS["NVML_ERROR_NOT_FOUND"])
        return object()

    return h200(
        nvmlDeviceGetMigMode=[1, 1], nvmlDeviceGetMaxMigDeviceCount=7, nvmlDeviceGetMigDeviceHandleByIndex=handle
    )


def mute(number: int = 0) -> Board:
    """A board that supports nothing but its name."""
    return Board(answers={"nvmlDeviceGetName": b"NVIDIA Something"}, socket=number)
