"""The campaign on two GPUs: what it asks, what it may never switch on, in which order it tries, what its tables say."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from benchmarks.gpu import two_gpu_campaign, two_gpu_tables
from benchmarks.gpu.campaign_slices import INTERRUPTED, WORKLOAD, ended
from benchmarks.gpu.moe_model import HEAD, config

from assay import models
from assay.api.plan_facts import situation_of
from assay.api.plan_findings import findings
from assay.catalogue.loader import builtin_folder, load
from assay.engines import declared_flags
from assay.engines.folder_facts import read_facts
from assay.flags import history
from assay.plan.hypotheses import Plan
from assay.plan.hypotheses import build as planned
from assay.plan.runs import derived_seed
from assay.probes.devices import box
from assay.probes.measured_file import parsed, with_measured
from assay.records.estimate import Layout
from assay.records.machine import EngineBuild
from assay.roofline import layouts
from assay.roofline.communication import collective_s
from tests.unit.fake_nvml import FakeNvml, h200
from tests.unit.machines import with_nvml

QUESTION = two_gpu_campaign.QUESTION
ROOT = Path(__file__).parents[2]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    shape = config(QUESTION.layers, QUESTION.intermediate, 32768, QUESTION.heads)
    (folder / "config.json").write_text(json.dumps(shape))
    return folder


@pytest.fixture
def plan(model: Path) -> Plan:
    spec = QUESTION.spec(model, "/opt/python")
    infos = [declared_flags.to_info(one) for one in history("vllm").at("0.26.0")]
    build = EngineBuild(engine="vllm", argv=["/opt/python"], version="vLLM 0.26.0", source="", flags=infos)
    machine = with_nvml(FakeNvml(boards=[h200(), h200()])).machine
    situation = situation_of(spec, machine, build, read_facts(model))
    assert situation.missing == {}
    assert QUESTION.catalogue is not None
    entries = load([builtin_folder(), QUESTION.catalogue], "vllm")
    return planned(
        entries, spec, machine, build, situation.model,
        lambda flags: declared_flags.problem(build, flags), situation=situation, findings=findings(situation),
    )  # fmt: skip


def test_every_arm_is_planned_on_two_gpus(plan: Plan) -> None:
    assert {one.id: one.status for one in plan.hypotheses} == dict.fromkeys(two_gpu_campaign.TRIED, "planned")


def test_the_seed_draws_the_order_that_the_script_names() -> None:
    drawn = sorted(two_gpu_campaign.TRIED, key=lambda one: derived_seed(two_gpu_campaign.SEED, "order", 0, one))

    assert drawn == list(two_gpu_campaign.TRIED)


def test_a_rank_of_two_holds_what_one_of_glm_5s_eight_holds(model: Path) -> None:
    here, whole = (
        json.loads((model / "config.json").read_text()),
        json.loads((ROOT / "src/assay/data/models/glm-5.json").read_text()),
    )
    assert here["moe_intermediate_size"] / 2 == whole["moe_intermediate_size"] / 8
    assert here["hidden_size"] == whole["hidden_size"]
    assert here["num_attention_heads"] * HEAD / 2 == whole["num_attention_heads"] * whole["v_head_dim"] / 8
    shape, two = models.load(str(model)), box("2xH200")
    for layout in (Layout(tp=2), Layout(tp=2, ep=2), Layout(dp=2), Layout(dp=2, ep=2)):
        assert layouts.check(shape, two, layout) is None


def test_no_server_of_it_may_use_nvlink_multicast(plan: Plan, model: Path) -> None:
    target = QUESTION.spec(model, "/opt/python").target

    assert target.env.items() >= {
        ("NCCL_NVLS_ENABLE", "0"), ("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"), ("NVSHMEM_DISABLE_NVLS", "1"),
        ("VLLM_ALLREDUCE_USE_SYMM_MEM", "0"), ("VLLM_USE_NCCL_SYMM_MEM", "0"),
    }  # fmt: skip
    given = {name for one in plan.hypotheses for name in one.optimization.env}
    assert given == {"NCCL_PROTO"}, "no arm changes what keeps it off"


def test_the_ceilings_of_links_set_the_same_and_call_nothing_that_multicasts() -> None:
    probes = ROOT / "src/assay/probes/ceilings"
    sources = [probes / "gpu_safety.py", probes / "gpu_links.py", ROOT / "benchmarks/gpu/two_gpu_links.py"]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)

    for name, value in two_gpu_campaign.SAFE_ENVIRONMENT.items():
        assert f'"{name}": "{value}"' in text
    assert text.count("os.environ.update(SAFE_ENVIRONMENT)") == len(("who starts the ranks", "each rank"))
    assert "multimem" not in text


def test_windows_are_longer_than_on_one_gpu_and_the_load_is_the_same(model: Path) -> None:
    load_ = QUESTION.spec(model, "/opt/python").workload

    assert load_ == WORKLOAD.model_copy(update={"seed": load_.seed, "window_s": load_.window_s})
    assert load_.window_s > WORKLOAD.window_s


def test_a_slice_in_one_call_is_interrupted_when_its_time_is_over() -> None:
    begun_s = time.monotonic()

    assert ended([sys.executable, "-c", "import threading; threading.Event().wait(30)"], 0.3) == INTERRUPTED
    assert time.monotonic() - begun_s < 10
    assert ended([sys.executable, "-c", "raise SystemExit(5)"], 20) == 5


def curve(algorithm: str, time_s: float, most: int | None) -> dict[str, Any]:
    points = [{"message_bytes": size, "time_s": time_s * (1 + size / 1e6)} for size in (1 << 12, 1 << 20)]
    return {
        "collective": "all_reduce", "world": 2, "algorithm": algorithm, "latency_s": time_s, "bus_bytes_per_s": 1e11,
        "points": points, "max_message_bytes": most, "basis": "measured", "source": "a test",
    }  # fmt: skip


def sample(name: str, time_s: float, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "unit": "s", "samples": [time_s] * 3, "check": "close", "correct": True, "cache": "warm", **more
    }  # fmt: skip


FOUND = {
    "about": "two GPUs",
    "facts": {"launch_s": 1e-6},
    "curves": [curve("vllm-custom", 4e-6, 1 << 20), curve("nccl", 9e-6, None), curve("nccl-ll", 7e-6, None)],
    "readings": [
        sample("all_reduce_s", 9e-6, algorithm="nccl", message_bytes=4096),
        sample("all_reduce_s", 4e-6, algorithm="vllm-custom", message_bytes=4096),
        {**sample("all_reduce_s", 1e-6, algorithm="one-shot", message_bytes=4096), "correct": False},
        sample("overlap_s", 9e-4, tokens=64, compute_s=5e-4, communication_s=6e-4),
    ],
    "problems": {"nccl_tree": "refused"},
    "nccl_settings_read": {"NCCL_NVLS_ENABLE 0": 4},
}


@pytest.mark.parametrize(
    ("arm", "expected_s"),
    [("baseline", 4e-6), ("expert-parallel", 4e-6), ("custom-all-reduce-off", 9e-6), ("nccl-all-reduce-ll", 7e-6)],
)
def test_each_arm_is_estimated_with_the_all_reduce_that_it_uses(tmp_path: Path, arm: str, expected_s: float) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(two_gpu_tables.of_arm(FOUND, arm)))
    known = with_measured(box("2xH200"), parsed(path))

    time_s, basis = collective_s(known, "all_reduce", 2, 1 << 12)

    assert basis == "measured"
    assert time_s.mid == pytest.approx(expected_s, rel=0.01)


def test_the_tables_mark_the_fastest_right_algorithm_and_say_what_is_missing() -> None:
    told = "\n".join(two_gpu_tables.links(FOUND))

    assert "| 4 KiB | 9.0 | **4.0** | WRONG |" in told
    assert "| 64 | 500 | 600 | 900 | 40% |" in told
    assert "not measured: nccl_tree: refused" in told
    assert "NCCL_NVLS_ENABLE 0 (4x)" in told
