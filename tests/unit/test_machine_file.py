"""Machines as files and their fingerprints: what pools with what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.api import status
from assay.errors import RecordError, UsageError
from assay.probes.findings import findings
from assay.records.machine import Machine
from assay.store.machine_file import read_machine, write_machine
from assay.testing.sample_state import sample_machine
from tests.unit.fake_nvml import FakeNvml, h200
from tests.unit.machines import CALM, box, changed, one_h200, with_nvml

ROOT = Path(__file__).parents[2]
RECORDED = sorted((ROOT / "examples" / "machines").glob("*.json"))


def test_a_machine_written_is_read_back_the_same_with_the_same_findings(tmp_path):
    seen = changed(box(), cpu={"load_1m": 300.0})
    write_machine(tmp_path / "box.json", seen)
    again = read_machine(tmp_path / "box.json")
    assert again == seen
    assert findings(again) == findings(seen)


def test_secrets_do_not_get_into_the_file(tmp_path):
    key = "sk-" + "a1" * 12
    write_machine(tmp_path / "box.json", changed(CALM, software={"vllm": f"0.1 {key}"}))
    assert key not in (tmp_path / "box.json").read_text()


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot read"), ("{}", "taken_at"), ("no json", "the whole file"), ('{"format": 2}', "format")],
)
def test_a_file_that_is_no_machine_is_refused_with_the_reason(tmp_path, content, words):
    if content is not None:
        (tmp_path / "x.json").write_text(content)
    with pytest.raises(UsageError, match=words) as caught:
        read_machine(tmp_path / "x.json")
    assert "--save" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("machine", "physical_cores"), -5),
        (("machine", "usable_cores"), 0),
        (("machine", "memory_bytes"), -1),
        (("cpu", "steal_share"), 1.5),
        (("cpu", "quota_cores"), 0),
        (("memory", "available_bytes"), -1),
    ],
)
def test_a_file_with_a_number_that_no_machine_has_is_refused_with_its_place(tmp_path, place, value):
    document = CALM.model_dump(mode="json")
    document[place[0]][place[1]] = value
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(UsageError, match=rf"{'.'.join(place)}: .*, found {value}"):
        read_machine(tmp_path / "x.json")


def test_a_folder_that_does_not_exist_is_said(tmp_path):
    with pytest.raises(RecordError, match="No such file"):
        write_machine(tmp_path / "absent" / "x.json", CALM)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_recorded_machines_can_be_read_and_name_nobody(path):
    seen = read_machine(path)
    assert seen.machine.fingerprint
    assert findings(seen) is not None
    assert not {"hostname", "user", "cmdline"} & set(json.loads(path.read_text()))


def test_there_are_recorded_machines():
    assert RECORDED


def test_machines_without_gpus_keep_the_fingerprints_of_old_records():
    old = sample_machine().model_dump()
    del old["gpus"], old["gpu_driver_major"]
    assert Machine.model_validate(old).fingerprint == sample_machine().fingerprint == "49adc8a76b19"


def test_memory_that_differs_by_what_a_kernel_keeps_for_itself_makes_no_other_machine():
    seen = [one_h200().machine.model_copy(update={"memory_bytes": size}) for size in (135_148_564_480, 135_128_870_912)]
    assert seen[0].fingerprint == seen[1].fingerprint
    assert seen[0].model_copy(update={"memory_bytes": 64 * 2**30}).fingerprint != seen[0].fingerprint


def test_the_record_of_the_demo_is_still_read():
    assert status(ROOT / "examples" / "demo").machine.gpus == []


@pytest.mark.parametrize(
    "answers",
    [
        {"nvmlDeviceGetName": "NVIDIA H100"},
        {"nvmlDeviceGetPowerManagementLimit": 500_000},
        {"nvmlDeviceGetCurrPcieLinkWidth": 8},
        {"nvmlDeviceGetMaxPcieLinkGeneration": 4},
        {"nvmlDeviceGetEccMode": [0, 0]},
        {"nvmlDeviceGetMigMode": [1, 1]},
        {"nvmlDeviceGetNvLinkState": lambda link: int(link < 12)},
    ],
)
def test_what_a_measurement_depends_on_changes_the_fingerprint(answers):
    assert with_nvml(FakeNvml(boards=[h200(**answers)])).machine.fingerprint != one_h200().machine.fingerprint


@pytest.mark.parametrize(
    "fake",
    [
        FakeNvml(boards=[h200(), h200(1)]),
        FakeNvml(boards=[h200()], driver="570.1"),
        FakeNvml(),
    ],
)
def test_the_number_of_gpus_and_the_drivers_major_version_change_it_too(fake):
    assert with_nvml(fake).machine.fingerprint != one_h200().machine.fingerprint


@pytest.mark.parametrize(
    "answers",
    [
        {"nvmlDeviceGetCurrPcieLinkGeneration": 1},
        {"nvmlDeviceGetPowerUsage": 300_000},
        {"nvmlDeviceGetClockInfo": lambda domain: 1000},
        {"nvmlDeviceGetUUID": "GPU-another"},
    ],
)
def test_what_changes_with_the_moment_does_not(answers):
    assert with_nvml(FakeNvml(boards=[h200(**answers)])).machine.fingerprint == one_h200().machine.fingerprint
    assert with_nvml(FakeNvml(boards=[h200()], driver="580.1")).machine.fingerprint == one_h200().machine.fingerprint
