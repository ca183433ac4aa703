"""AMD's library as the same records, over a hand-written `amdsmi` (written from its Python reference)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from assay.probes.amd import read_amdsmi
from assay.probes.files import Files
from assay.probes.gpus import read_gpus
from tests.unit.fake_nvml import FakeNvml


class AmdSmiException(Exception):  # noqa: N818 - amdsmi's name
    pass


class FakeAmdSmi:
    AmdSmiException = AmdSmiException
    AmdSmiClkType = SimpleNamespace(GFX="gfx", MEM="mem")
    AmdSmiTemperatureType = SimpleNamespace(HOTSPOT="hotspot")
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT="current")

    def __init__(self, count: int = 2, *, starts: bool = True, mute: bool = False) -> None:
        self.count, self.starts, self.mute = count, starts, mute

    def amdsmi_init(self) -> None:
        if not self.starts:
            raise AmdSmiException("driver not loaded")

    def amdsmi_shut_down(self) -> None:
        pass

    def amdsmi_get_processor_handles(self) -> list[int]:
        return list(range(self.count))

    def amdsmi_get_gpu_asic_info(self, handle: int) -> dict[str, Any]:
        return {"market_name": "MI300X", "num_compute_units": 304, "target_graphics_version": "gfx942"}

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "amdsmi_get_gpu_vram_usage": {"vram_total": 196592, "vram_used": 283},
            "amdsmi_get_gpu_device_uuid": "aaff74a1",
            "amdsmi_get_gpu_device_bdf": "0000:0c:00.0",
            "amdsmi_get_gpu_activity": {"gfx_activity": 5, "umc_activity": 0},
            "amdsmi_get_clock_info": {"clk": 132, "max_clk": 2100},
            "amdsmi_get_power_cap_info": {"power_cap": 750_000_000, "default_power_cap": 750_000_000},
            "amdsmi_get_power_info": {"current_socket_power": 141, "average_socket_power": "N/A"},
            "amdsmi_get_temp_metric": 39,
            "amdsmi_get_gpu_total_ecc_count": {"correctable_count": 3, "uncorrectable_count": 0},
            "amdsmi_get_pcie_info": {
                "pcie_static": {"max_pcie_speed": 32000, "max_pcie_width": 16},
                "pcie_metric": {"pcie_speed": 32000, "pcie_width": 16, "pcie_replay_count": "N/A"},
            },
            "amdsmi_topo_get_numa_node_number": 1,
            "amdsmi_topo_get_link_type": {"hops": 1, "type": 2},
            "amdsmi_is_P2P_accessible": True,
            "amdsmi_get_gpu_driver_info": {"driver_version": "6.12.12"},
        }
        if name not in answers:
            raise AttributeError(name)

        def call(handle: int, *arguments: Any) -> Any:
            if self.mute:
                raise AmdSmiException("not supported")
            return answers[name]

        return call


def test_an_instinct_is_read_into_the_same_record():
    reading = read_amdsmi(FakeAmdSmi())
    gpu = reading.gpus[1]
    assert (gpu.vendor, gpu.name, gpu.architecture, gpu.compute_capability) == ("amd", "MI300X", "gfx942", None)
    assert gpu.sms is not None
    assert gpu.sms.value == 304
    assert (gpu.memory_bytes, gpu.power.limit_w, gpu.power.draw_w) == (196592 << 20, 750.0, 141.0)
    assert (gpu.pcie.generation, gpu.pcie.width, gpu.pcie.replays) == (5, 16, None)
    assert (gpu.ecc.corrected, gpu.temperature_c, gpu.utilization, gpu.numa_node) == (3, 39.0, 0.05, 1)
    assert gpu.clocks.sm_max_hz == 2.1e9
    assert [(pair.level, pair.p2p_read) for pair in reading.pairs] == [("xgmi", "ok")]
    assert reading.driver == "6.12.12"


def test_a_board_that_supports_nothing_is_listed_with_the_reasons():
    (gpu,) = read_amdsmi(FakeAmdSmi(1, mute=True)).gpus
    assert (gpu.memory_bytes, gpu.power.limit_w) == (None, None)
    assert gpu.missing["memory_bytes"] == "not supported"


def test_without_a_driver_or_boards_there_is_a_reason():
    assert read_amdsmi(FakeAmdSmi(starts=False)).problem == "amdsmi: driver not loaded"
    assert read_amdsmi(FakeAmdSmi(0)).problem == "amdsmi: the driver lists no GPU"


def test_amd_is_asked_where_nvidia_has_nothing(tmp_path):
    reading = read_gpus(Files(tmp_path), FakeNvml(fails_at_start=12), FakeAmdSmi())
    assert [gpu.vendor for gpu in reading.gpus] == ["amd", "amd"]
    reading = read_gpus(Files(tmp_path), FakeNvml(fails_at_start=12), FakeAmdSmi(starts=False))
    assert (reading.gpus, reading.problem) == ([], "NVML Shared Library Not Found")
