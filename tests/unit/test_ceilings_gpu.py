"""GPUs' ceilings: measured by a program, kept, read back, laid over the device. The records are real ones."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assay.errors import UsageError
from assay.probes.ceilings import cache, gpu
from assay.probes.ceilings.gpu import gpu_ceilings, local_box, read
from assay.probes.ceilings.port import NotMeasurable
from assay.probes.devices import box
from assay.probes.measured_file import with_measured
from assay.records.machine import GpuIdentity, Machine

NAMES = st.sampled_from(
    ["facts", "curves", "problems", "about", "memory_read_bytes_per_s", "launch_s", "value", "unit", "basis", "source"]
)
RECORD = Path(__file__).parents[2] / "examples" / "ceilings" / "one-h200.json"
WHOLE = {
    **json.loads(RECORD.read_text(encoding="utf-8")),
    "device": "NVIDIA H200", "about": "NVIDIA H200, torch 2.11.0", "chip": {"sms": 132}, "readings": [],
    "problems": {"links": "1 GPU here: nothing to link"}, "took_s": {},
}  # fmt: skip


def machine(*names: str, mig: bool = False) -> Machine:
    return Machine(
        cpu_model="a CPU", physical_cores=1, logical_cores=1, usable_cores=1, isa=[], memory_bytes=1, numa_nodes=1,
        kernel="6", os="Linux", python="3.12", hypervisor=False, gpu_driver_major=580,
        gpus=[
            GpuIdentity(
                name=name, memory_bytes=150 << 30, compute_capability=9.0, pcie_generation=5, pcie_width=16, mig=mig
            )
            for name in names
        ],
    )  # fmt: skip


def program(tmp_path: Path, body: str) -> tuple[str, ...]:
    """A program that gets `--seconds S --out FILE`, and counts how often it was run."""
    path = tmp_path / "program.py"
    path.write_text(
        f"import json, pathlib, sys\n"
        f"runs = pathlib.Path({str(tmp_path / 'runs')!r})\n"
        f"runs.write_text(runs.read_text() + '.' if runs.exists() else '.')\n"
        f"out = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])\n{body}\n",
        encoding="utf-8",
    )
    return sys.executable, str(path)


def writing(tmp_path: Path, content: object) -> tuple[str, ...]:
    (tmp_path / "record.json").write_text(json.dumps(content), encoding="utf-8")
    return program(tmp_path, f"out.write_text(pathlib.Path({str(tmp_path / 'record.json')!r}).read_text())")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_ceilings_are_measured_once_for_a_machine_and_again_when_asked(tmp_path: Path) -> None:
    command = writing(tmp_path, WHOLE)
    first = gpu_ceilings(machine("NVIDIA H200"), program=command)
    again = gpu_ceilings(machine("NVIDIA H200"), program=command)
    assert again == first
    assert (tmp_path / "runs").read_text() == "."
    gpu_ceilings(machine("NVIDIA H200"), again=True, program=command)
    gpu_ceilings(machine("NVIDIA H200", "NVIDIA H200"), program=command)
    assert (tmp_path / "runs").read_text() == "..."
    assert first.about == "NVIDIA H200, torch 2.11.0"
    assert first.problems == {"links": "1 GPU here: nothing to link"}


CUT = {"links": "1 GPU here: nothing to link", "launches": "no time was left for it"}


def without_launches(problems: dict[str, str]) -> dict[str, object]:
    facts = {name: fact for name, fact in WHOLE["facts"].items() if name != "launch_s"}
    return {**WHOLE, "facts": facts, "problems": problems}


def test_a_record_that_time_cut_short_is_completed_by_the_next_call(tmp_path: Path) -> None:
    first = gpu_ceilings(machine("NVIDIA H200"), program=writing(tmp_path, without_launches(CUT)))
    assert "launch_s" not in first.facts
    only = {**WHOLE, "facts": {"launch_s": WHOLE["facts"]["launch_s"]}}
    whole = gpu_ceilings(machine("NVIDIA H200"), program=writing(tmp_path, only))
    assert whole.facts == {name: read(RECORD).facts[name] for name in read(RECORD).facts}
    assert whole.problems == {"links": "1 GPU here: nothing to link"}
    assert gpu_ceilings(machine("NVIDIA H200"), program=writing(tmp_path, only)) == whole
    assert (tmp_path / "runs").read_text() == ".."


@pytest.mark.parametrize("second", ["cut again", "dies"])
def test_what_time_cuts_short_twice_is_kept_and_says_what_is_missing(tmp_path: Path, second: str) -> None:
    cut = writing(tmp_path, without_launches(CUT))
    first = gpu_ceilings(machine("NVIDIA H200"), program=cut)
    again = cut if second == "cut again" else program(tmp_path, "sys.exit(3)")
    assert gpu_ceilings(machine("NVIDIA H200"), program=again) == first
    assert gpu_ceilings(machine("NVIDIA H200"), program=again) == first
    assert (tmp_path / "runs").read_text() == ".."
    assert first.problems == CUT


def test_the_words_of_a_part_that_was_cut_short_are_those_of_the_program_that_measures() -> None:
    source = Path(gpu.__file__).with_name("gpu_program.py").read_text(encoding="utf-8")
    assert all(f'"{words}"' in source for words in cache.CUT_SHORT)


def test_what_was_measured_here_goes_before_what_is_known_of_the_device(tmp_path: Path) -> None:
    found = gpu_ceilings(machine("NVIDIA H200"), program=writing(tmp_path, WHOLE))
    here = local_box(machine("NVIDIA H200"), found)
    read_here, known = here.device.fact("memory_read_bytes_per_s"), box("H200").device.fact("memory_read_bytes_per_s")
    assert read_here is not None
    assert known is not None
    assert (read_here.basis, known.basis) == ("measured", "elsewhere")
    assert read_here.value == found.facts["memory_read_bytes_per_s"].value


def test_a_device_that_no_data_tells_of_is_made_of_measurements(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no device is called"):
        local_box(machine("Accelerator 9000", "Accelerator 9000"), None)
    found = gpu_ceilings(machine("NVIDIA H200"), program=writing(tmp_path, WHOLE))
    made = local_box(machine("Accelerator 9000", "Accelerator 9000"), found)
    assert (made.device.id, made.count, made.device.link) == ("accelerator-9000", 2, "PCIe 5.0 x16")
    memory = made.device.fact("memory_bytes")
    assert memory is not None
    assert memory.basis == "spec"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("print(json.dumps({'problem': 'PyTorch sees no CUDA device here'}))", "PyTorch sees no CUDA device here"),
        ("raise ModuleNotFoundError(\"No module named 'torch'\")", "install Assay where the engine is"),
        ("sys.exit(3)", "exit code 3: no output"),
        ('out.write_text(\'{"facts": {}, "problems": {"memory": "out of memory"}}\')', "holds no fact"),
    ],
)
def test_a_program_that_measures_nothing_is_told_with_its_reason(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises((NotMeasurable, UsageError)) as raised:
        gpu_ceilings(machine("NVIDIA H200"), program=program(tmp_path, body))
    assert said in str(getattr(raised.value, "message", raised.value))


def test_machines_without_a_whole_gpu_are_not_measured() -> None:
    with pytest.raises(NotMeasurable, match="no GPU"):
        gpu_ceilings(machine())
    with pytest.raises(NotMeasurable, match="MIG"):
        gpu_ceilings(machine("NVIDIA H200", mig=True))


def test_a_recorded_file_is_read_by_the_same_reader() -> None:
    assert read(RECORD).facts == read_facts()


def read_facts() -> object:
    return {
        name: facts[0]
        for name, facts in with_measured(box("H200"), RECORD).device.facts.items()
        if facts[0].basis == "measured"
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | NAMES, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, JSON, max_size=4))
@example({"problems": True, "memory_read_bytes_per_s": 1.0})
def test_any_file_of_ceilings_is_read_or_refused(content: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ceilings.json")
        path.write_text(json.dumps(content), encoding="utf-8")
        try:
            found = read(path)
        except UsageError as error:
            assert error.hint  # noqa: PT017 - either outcome is right
        else:
            assert all(0 < fact.value < float("inf") for fact in found.facts.values())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"memory_read_bytes_per_s": {"value": 4000, "unit": "GB/s"}}, "is in 'GB/s', and only 'bytes/s' is read"),
        ({"memory_read_bytes_per_s": 0}, "a ceiling is a number above zero"),
        ({"facts": {"memory_reed_bytes_per_s": 1}}, "is no fact of a device"),
        ({"facts": {}}, "holds no fact of a device and no curve"),
        ({"curves": [{"collective": "all_reduce"}], "launch_s": 1e-6}, "a curve is malformed"),
        ([], "holds no object of facts"),
    ],
)
def test_a_file_that_says_something_else_is_refused_with_the_value(tmp_path: Path, content: object, said: str) -> None:
    path = tmp_path / "ceilings.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read(path)
    assert said in raised.value.message
    assert raised.value.hint
