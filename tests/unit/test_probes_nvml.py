"""NVML's answers as our records: whole boxes, odd boards, and boards that say next to nothing."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest

from assay.probes.files import Files
from assay.probes.gpu_facts import counted_sms, find_device, with_facts
from assay.probes.gpus import driver_major, identity, read_gpus
from assay.probes.nvml import read_nvml
from assay.probes.nvml_names import throttle_reasons
from assay.records.device import Device, Fact
from assay.records.gpu import Gpu
from tests.unit import fake_nvml
from tests.unit.fake_nvml import CALLS, CONSTANTS, NEVER, FakeNvml, NVMLError, h200, mig_h200, mute, rtx_pro_6000


def test_the_fake_has_the_names_arguments_and_numbers_of_the_real_package():
    real = pytest.importorskip("pynvml")
    for name, num_arguments in CALLS.items():
        needed = [p for p in inspect.signature(getattr(real, name)).parameters.values() if p.default is p.empty]
        assert len(needed) == num_arguments, name
    assert {name: getattr(real, name) for name in CONSTANTS} == CONSTANTS
    for name, function in vars(FakeNvml).items():
        if name.startswith("nvml"):
            assert len(inspect.signature(function).parameters) - 1 == len(
                inspect.signature(getattr(real, name)).parameters
            )


def test_eight_pcie_boards_on_two_sockets_are_read_whole():
    reading = read_nvml(fake_nvml.rtx_pro_6000_box())
    gpu = reading.gpus[7]
    assert (len(reading.gpus), reading.driver, reading.cuda, reading.problem) == (8, "580.95.05", "13.0", None)
    assert (gpu.index, gpu.architecture, gpu.compute_capability) == (7, "sm_120", 12.0)
    assert gpu.sms is not None
    assert (gpu.sms.value, gpu.sms.basis) == (188, "measured")
    assert gpu.memory_bytes == 97887 * 1024**2
    assert gpu.clocks.sm_max_hz == pytest.approx(2.43e9)
    assert (gpu.power.limit_w, gpu.power.draw_w) == (600.0, 34.0)
    assert (gpu.pcie.generation, gpu.pcie.max_generation, gpu.pcie.width) == (1, 5, 16)
    assert (gpu.nvlinks_active, gpu.mig_enabled, gpu.persistence, gpu.compute_mode) == (None, False, True, "default")
    assert gpu.throttle_reasons == ["idle"]
    assert gpu.processes == []
    levels = {(pair.a, pair.b): pair.level for pair in reading.pairs}
    assert (len(levels), levels[0, 3], levels[3, 4]) == (28, "node", "system")
    assert {(pair.p2p_read, pair.p2p_write) for pair in reading.pairs} == {("ok", "ok")}


def test_a_unique_id_is_kept_as_a_hash_only():
    reading = read_nvml(fake_nvml.rtx_pro_6000_box())
    assert len({gpu.id_hash for gpu in reading.gpus}) == 8
    assert "GPU-0000" not in reading.model_dump_json()


def test_one_h200_has_its_links_counted_and_its_multiprocessors():
    (gpu,) = read_nvml(FakeNvml(boards=[h200()])).gpus
    assert (gpu.nvlinks_active, gpu.nvlinks_inactive, gpu.nvlink_version) == (18, 0, "4")
    assert gpu.sms is not None
    assert gpu.sms.value == 132
    assert gpu.clocks.sm_application_hz == pytest.approx(1.98e9)


def test_links_that_are_down_are_counted_apart_and_the_first_that_does_not_exist_ends_the_count():
    def state(link):
        if link >= 12:
            raise NVMLError(3)
        return int(link % 4 != 0)

    (gpu,) = read_nvml(FakeNvml(boards=[h200(nvmlDeviceGetNvLinkState=state)])).gpus
    assert (gpu.nvlinks_active, gpu.nvlinks_inactive) == (9, 3)


def test_boards_joined_by_nvlink_say_so():
    (pair,) = read_nvml(FakeNvml(boards=[h200(0), h200(1)], nvlinked=True)).pairs
    assert pair.level == "nvlink"


@pytest.mark.parametrize(("state", "word"), [(None, None), (0, "not-supported"), (2, "in-progress"), (3, "completed")])
def test_the_state_of_the_fabric_is_read(state, word):
    (gpu,) = read_nvml(FakeNvml(boards=[h200()], fabric_state=state)).gpus
    assert gpu.fabric == word


@pytest.mark.parametrize("instances", [0, 3, 7])
def test_mig_is_seen_with_the_number_of_its_slices(instances):
    (gpu,) = read_nvml(FakeNvml(boards=[mig_h200(instances)])).gpus
    assert (gpu.mig_enabled, gpu.mig_instances) == (True, instances)


@pytest.mark.parametrize(("code", "words"), [(12, "NVML Shared Library Not Found"), (9, "NVML: Driver Not Loaded")])
def test_without_a_driver_there_are_no_gpus_and_a_reason(code, words):
    reading = read_nvml(FakeNvml(fails_at_start=code))
    assert (reading.gpus, reading.problem) == ([], words)


def test_a_driver_without_boards_is_a_reason_too():
    fake = FakeNvml()
    assert read_nvml(fake).problem == "NVML: the driver lists no GPU"
    assert fake.num_shutdowns == 1


def test_a_board_that_supports_nothing_is_still_listed_with_the_reasons():
    reading = read_nvml(FakeNvml(boards=[mute(0), mute(1)]))
    gpu = reading.gpus[0]
    assert gpu.name == "NVIDIA Something"
    assert (gpu.memory_bytes, gpu.power.limit_w, gpu.processes, gpu.throttle_reasons) == (None, None, None, None)
    assert gpu.missing["memory_bytes"] == "Not Supported"
    assert gpu.missing["power.limit_w"] == "Not Supported"
    assert gpu.lost is None
    assert len(reading.pairs) == 1


@pytest.mark.parametrize("call", sorted(CALLS))
def test_any_single_call_may_be_missing_or_unsupported(call):
    (unsupported,) = read_nvml(FakeNvml(boards=[h200(**{call: NEVER})])).gpus
    (known,) = read_nvml(FakeNvml(boards=[h200()])).gpus
    assert unsupported.index == known.index == 0
    assert unsupported.lost is None


def test_an_older_package_without_a_call_is_a_reason_not_a_crash():
    class Older(FakeNvml):
        def __getattr__(self, name):
            if name == "nvmlDeviceGetNumGpuCores":
                raise AttributeError(name)
            return super().__getattr__(name)

    (gpu,) = read_nvml(Older(boards=[h200()])).gpus
    assert gpu.sms is None
    assert gpu.missing["sms"] == "this pynvml has no nvmlDeviceGetNumGpuCores"


def test_the_older_name_of_the_throttle_reasons_is_tried_too():
    board = h200(nvmlDeviceGetCurrentClocksEventReasons=NEVER, nvmlDeviceGetCurrentClocksThrottleReasons=0x44)
    (gpu,) = read_nvml(FakeNvml(boards=[board])).gpus
    assert gpu.throttle_reasons == ["sw-power-cap", "hw-thermal"]
    assert "throttle_reasons" not in gpu.missing


def test_throttle_reasons_that_nobody_knows_are_not_swallowed():
    assert throttle_reasons(0x8000_0001) == ["idle", "unknown (0x80000000)"]
    assert throttle_reasons(0) == []


def test_a_board_that_fell_off_the_bus_is_lost_and_the_others_stay():
    gone = h200(nvmlDeviceGetPowerUsage=NVMLError(15))
    reading = read_nvml(FakeNvml(boards=[h200(handle=NEVER), gone, h200()]))
    assert [gpu.lost for gpu in reading.gpus] == ["GPU is lost", "GPU is lost", None]
    assert [gpu.index for gpu in reading.gpus] == [0, 1, 2]


def test_processes_are_named_and_a_compute_process_is_not_counted_as_graphics_again():
    def process(pid, used):
        return SimpleNamespace(pid=pid, usedGpuMemory=used)

    board = h200(
        nvmlDeviceGetComputeRunningProcesses=[process(7, 5 * 1024**3), process(8, None)],
        nvmlDeviceGetGraphicsRunningProcesses=[process(7, 1), process(9, 4096)],
    )
    (gpu,) = read_nvml(FakeNvml(boards=[board]), {7: "vllm"}.get).gpus
    assert gpu.processes is not None
    seen = [(one.pid, one.program, one.memory_bytes, one.kind) for one in gpu.processes]
    assert seen == [(7, "vllm", 5 * 1024**3, "compute"), (8, None, None, "compute"), (9, None, 4096, "graphics")]


def test_memory_errors_and_replaced_rows_are_read():
    board = rtx_pro_6000(0, nvmlDeviceGetTotalEccErrors=lambda kind, counter: {0: 12, 1: 1}[kind],
                         nvmlDeviceGetRemappedRows=(1, 0, 1, 0), nvmlDeviceGetEccMode=[1, 0])  # fmt: skip
    (gpu,) = read_nvml(FakeNvml(boards=[board])).gpus
    assert (gpu.ecc.corrected, gpu.ecc.uncorrected) == (12, 1)
    assert (gpu.ecc.remap_pending, gpu.ecc.remap_failed) == (True, False)
    assert (gpu.ecc.enabled, gpu.ecc.pending) == (True, False)


def test_older_packages_give_bytes():
    reading = read_nvml(FakeNvml(boards=[h200(nvmlDeviceGetName=b"NVIDIA H200")], driver=b"535.1"))
    assert (reading.gpus[0].name, reading.driver, driver_major(reading.driver)) == ("NVIDIA H200", "535.1", 535)


@pytest.mark.parametrize(
    ("cores", "capability", "sms"),
    [(24064, (12, 0), 188), (6912, (8, 0), 108), (1000, (9, 0), None), (24064, (13, 7), None), (None, (9, 0), None)],
)
def test_multiprocessors_follow_from_cores_only_where_the_kind_is_known(cores, capability, sms):
    fact = counted_sms(cores, capability)
    assert (fact.value if fact else None) == sms


DEVICES = {
    one.id: one
    for one in (
        Device(id="h200", name="NVIDIA H200 SXM", kind="gpu", aliases=["H200"], facts={
            "l2_bytes": [Fact(value=50e6, unit="bytes", basis="spec", source="a page")],
            "sms": [Fact(value=132, unit="1", basis="spec", source="a page")],
        }),
        Device(id="rtx-pro-6000", name="RTX PRO 6000 Blackwell Server", kind="gpu", facts={}),
        Device(id="rtx-6000", name="RTX 6000", kind="gpu", facts={}),
    )
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        ("NVIDIA H200NVL-Something", None),
        ("unknown", None),
    ],
)
def test_device_facts_are_found_by_the_drivers_name(name, found):
    device = find_device(name, DEVICES)
    assert (device.id if device else None) == found


def test_what_the_driver_does_not_say_comes_from_the_kind_and_says_so():
    (gpu,) = read_nvml(FakeNvml(boards=[h200(nvmlDeviceGetNumGpuCores=NEVER)])).gpus
    whole = with_facts(gpu, DEVICES)
    assert (whole.sms, whole.l2_bytes) == (DEVICES["h200"].fact("sms"), DEVICES["h200"].fact("l2_bytes"))
    assert whole.smem_per_block_bytes is not None
    assert (whole.smem_per_block_bytes.value, whole.smem_per_block_bytes.basis) == (227 * 1024, "spec")
    unknown = with_facts(Gpu(index=0, name="nobody's"), DEVICES)
    assert (unknown.sms, unknown.l2_bytes, unknown.smem_per_block_bytes) == (None, None, None)


def test_a_gpu_gets_its_node_and_cores_from_the_bus(tmp_path):
    folder = tmp_path / "sys/bus/pci/devices/0000:50:00.0"
    folder.mkdir(parents=True)
    (folder / "numa_node").write_text("1\n")
    (folder / "local_cpulist").write_text("32-63\n")
    gpus = read_gpus(Files(tmp_path), fake_nvml.rtx_pro_6000_box()).gpus
    assert (gpus[4].numa_node, gpus[4].cpus) == (1, "32-63")
    assert (gpus[0].numa_node, gpus[0].cpus) == (None, None)
    assert gpus[4].smem_per_block_bytes is not None


def test_what_measurements_depend_on_is_taken_from_a_gpu():
    (gpu,) = read_nvml(FakeNvml(boards=[h200()])).gpus
    kept = identity(gpu)
    assert (kept.name, kept.power_limit_w, kept.pcie_generation, kept.pcie_width) == ("NVIDIA H200", 700.0, 5, 16)
    assert (kept.nvlinks, kept.ecc, kept.mig) == (18, True, False)
