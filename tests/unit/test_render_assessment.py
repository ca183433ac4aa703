"""The assessment in the terminal: whole at any width, nothing said by colour alone, findings last."""

from __future__ import annotations

import pytest

from assay.probes.findings import findings
from assay.records.assessment import Assessment
from assay.records.machine import Finding
from assay.records.snapshot import MachineSnapshot, Server
from assay.render.assessment import assessment_view
from assay.render.machine_view import size
from assay.testing.sample_state import sample_machine
from tests.unit.fake_nvml import FakeNvml, h200, mute, rtx_pro_6000
from tests.unit.machines import CALM, box, changed, gpu_changed, one_h200, with_nvml
from tests.unit.test_render_terminal import drawn

MIXED = with_nvml(FakeNvml(boards=[h200(), rtx_pro_6000(1), mute()], p2p=1))
MACHINES = {
    "calm": CALM,
    "box": gpu_changed(box(), 2, 3, pcie={"width": 8}, lost="GPU is lost"),
    "one": one_h200(),
    "mixed": MIXED,
    "served": changed(CALM, servers=[Server(port=30000, pid=7, engine="sglang", version="0.5.17", models=["GLM-5"])]),
}


def assessed(seen: MachineSnapshot) -> Assessment:
    return Assessment(
        machine=seen.machine, build=None, build_problem="not looked for", model=None, model_problem="not looked for",
        findings=findings(seen), record=None, snapshot=seen, machine_file="box.json",
    )  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", MACHINES)
def test_no_line_is_longer_than_the_terminal_and_no_control_code_is_written(name, width):
    text = drawn(assessment_view(assessed(MACHINES[name])), width)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


def test_findings_come_last_with_severity_in_words_evidence_and_remedy():
    lines = drawn(assessment_view(assessed(MACHINES["box"])), 120).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("findings (1 blocker, "))
    rest = "\n".join(lines[start:])
    assert "blocker: A GPU does not answer (GPU 2-3: GPU is lost)" in rest
    assert "remedy: Reset it" in rest
    assert not [line for line in lines[start + 1 :] if line and not line.startswith(" ")]


def test_eight_gpus_have_a_row_each_at_80_columns_and_a_matrix():
    text = drawn(assessment_view(assessed(box())), 80)
    assert "8x NVIDIA RTX PRO 6000 Blackwell Server Edition" in text
    assert text.count("1 x16 / 5 x16") == 8
    assert "NODE: within a NUMA node; SYS: between sockets" in text


def test_numbers_that_are_not_the_drivers_say_their_basis_and_unknown_ones_that_they_are():
    text = drawn(assessment_view(assessed(one_h200())), 120)
    assert "132 SMs, shared memory a block unknown, L2 unknown" in text
    assert "132 SMs (" not in text


def test_gpus_of_several_kinds_are_listed_kind_by_kind_and_barred_pairs_are_marked():
    text = drawn(assessment_view(assessed(MIXED)), 120)
    for words in ("1x NVIDIA H200", "1x NVIDIA RTX PRO 6000 Blackwell Server Edition", "1x NVIDIA Something"):
        assert words in text
    assert "every pair: within a NUMA node, no peer access (chipset not supported)" in text


def test_a_machine_without_gpus_says_why():
    text = drawn(assessment_view(assessed(changed(CALM, gpu={"problem": "NVML Shared Library Not Found"}))))
    assert "none (NVML Shared Library Not Found)" in text
    assert "nothing found that would spoil a measurement" in text


def test_an_assessment_tells_severity_and_remedy_and_why_there_is_no_engine():
    found = Assessment(
        machine=sample_machine(), build=None, build_problem="llama-server is not in PATH", model=None,
        model_problem="no such file: x.gguf", record=None,
        findings=[Finding(severity="blocker", title="no room", evidence="3 MiB free", remedy="free the disk")],
    )  # fmt: skip
    text = drawn(assessment_view(found))
    assert "blocker: no room (3 MiB free)" in text
    assert "remedy: free the disk" in text
    assert "none: llama-server is not in PATH" in text
    assert "none: no such file: x.gguf" in text


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [(0, "0 B"), (32 << 10, "32 KiB"), (1 << 20, "1 MiB"), (102642221056, "95.6 GiB"), (2 << 40, "2 TiB"),
     (1900 << 30, "1.86 TiB"), (251 << 30, "251 GiB")],
)  # fmt: skip
def test_sizes_have_about_three_figures(size_bytes, words):
    assert size(size_bytes) == words
