"""What today's configuration has no room for is told before anything is planned on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.api.plan_facts import situation_of
from assay.cli import run_command
from assay.models import load
from assay.plan.expression import check
from assay.plan.situation import Situation, facts_of
from assay.plan.surroundings import surroundings
from assay.records.base import Flags
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.model_shape import ModelShape
from assay.records.spec import CampaignSpec, Target, Workload
from tests.unit.machines import CALM

QWEN, GLM = load("qwen3-30b-a3b"), load("glm-5")
TP = "--tensor-parallel-size"


def situation(
    shape: ModelShape, flags: Flags, on: str | None = None, engine: str = "vllm", **workload: object
) -> Situation:
    spec = CampaignSpec(
        target=Target(engine=engine, model="m", flags=flags), workload=Workload.model_validate(workload)
    )
    build = EngineBuild(engine=engine, argv=[engine], version=f"{engine} 0.20.0", source="PATH", flags=[])
    model = ModelFacts(path="m", architecture="moe", quantization="bf16", sha256="", size_bytes=None)
    small = CALM.machine.model_copy(update={"memory_bytes": 24 * 2**30})
    return situation_of(spec, small, build, model, on=on, shape=shape)


@pytest.mark.parametrize(
    ("shape", "flags", "on", "words"),
    [
        (QWEN, {TP: 2}, "1xH200", ("tp2 takes 2 GPUs, and there is 1", "as tp1 it would fit on 1x H200 SXM")),
        (QWEN, {TP: 8}, "1xL4", ("tp8 takes 8 GPUs, and there is 1", "on 4 of these GPUs it would fit as tp4")),
        (QWEN, {}, "2xL40S", ("does not fit as tp1", "as tp2 it would fit on 2x L40S")),
        (GLM, {TP: 8}, "8xH200", ("does not fit as tp8", "190 GB", "58.6 GB are missing", "stored as fp8-block128")),
        (QWEN, {}, None, ("take 61.1 GB, and the machine has no GPU and 25.8 GB of memory",)),
    ],
)
def test_what_has_no_room_is_told_with_what_is_missing_and_what_would_fit_and_gets_no_step(
    shape: ModelShape, flags: Flags, on: str | None, words: tuple[str, ...]
) -> None:
    found = situation(shape, flags, on)

    (told,) = surroundings(found).warnings
    assert all(word in told for word in words), told
    assert found.step is None
    assert not any("Served as" in sentence for sentence in surroundings(found).sentences)


def test_a_request_that_the_cache_cannot_hold_is_told() -> None:
    found = situation(QWEN, {}, "1xH100", input_tokens=(300_000, 300_000), output_tokens=(16, 16))

    (told,) = surroundings(found).warnings
    assert "a request of 300,0" in told


@pytest.mark.parametrize(
    ("flags", "on"),
    [
        ({TP: 8}, "8xH200"),
        ({"--cpu-offload-gb": 60}, "1xL40S"),
        ({"--quantization": "fp8"}, "1xL40S"),
        ({TP: 16, "--nnodes": 2}, "8xH200"),
    ],
)
def test_what_fits_or_is_not_calculated_gets_no_warning(flags: Flags, on: str) -> None:
    assert surroundings(situation(QWEN, flags, on)).warnings == []


def test_weights_in_a_format_that_the_gpu_does_not_compute_in_are_told() -> None:
    nvfp4 = load("glm-5-nvfp4")

    (told,) = surroundings(situation(nvfp4, {TP: 8}, "8xMI300X")).warnings

    assert "in NVFP4, and Instinct MI300X has no arithmetic in FP4" in told
    assert surroundings(situation(nvfp4, {TP: 8}, "8xB200")).warnings == []
    assert surroundings(situation(load("gpt-oss-120b"), {}, "1xMI300X")).warnings == []


@pytest.mark.parametrize("on", ["8xMI300X", None])
def test_a_compute_capability_that_there_is_not_is_known_and_a_condition_on_it_is_false(on: str | None) -> None:
    facts = facts_of(situation(QWEN, {TP: 8}, on))

    outcome = check("gpu.compute_capability >= 8.9", facts)
    assert outcome.reason == "gpu.compute_capability >= 8.9 is false: gpu.compute_capability = none"
    assert not check("gpu.vendor == 'nvidia'", facts).holds


def test_the_command_tells_it_before_anything_that_is_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "assay.toml").write_text(
        '[target]\nengine = "vllm"\nmodel = "qwen3-30b-a3b"\n[target.flags]\n--tensor-parallel-size = 2\n'
        "[policy]\nbuiltin_catalogue = false\n"
    )
    asked = ["plan", "--folder", str(tmp_path), "--on", "1xH200", "--engine-version", "0.20.0"]

    assert run_command(asked) == 0

    told = capsys.readouterr()
    assert told.err.startswith("warning: today's configuration cannot start: tp2 takes 2 GPUs, and there is 1")
    assert "Served as" not in told.out
    assert run_command([*asked, "--json"]) == 0
    assert "cannot start" in json.loads(capsys.readouterr().out)["warnings"][0]
