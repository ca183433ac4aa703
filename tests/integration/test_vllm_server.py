"""A real vLLM: start, answers, load, kill -9, stop, and a flag that fails at launch.

Opt-in, because an installation takes gigabytes: ASSAY_VLLM names a `vllm` program, its virtual environment or its
Python. The model (a small Qwen3-MoE with random weights) is made by benchmarks/tiny_moe.py, by that same Python.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from assay import load
from assay.engines.venv import locate
from assay.engines.vllm import Vllm
from assay.engines.vllm_program import MODULE
from assay.engines.vllm_server import VllmServer
from assay.process import free_port
from assay.records.base import Flags
from assay.records.failure import Cause
from assay.records.load import LoadRequest
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.spec import Target, Workload
from assay.testing import engine_conformance as conformance

VLLM = os.environ.get("ASSAY_VLLM", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not VLLM, reason="ASSAY_VLLM names no vLLM"),
]
ENGINE = Vllm()
MAKER = Path(__file__).parents[2] / "benchmarks" / "tiny_moe.py"
BASELINE: Flags = {"--enforce-eager": True, "--max-model-len": 1024, "--max-num-seqs": 8}
CPU = {"VLLM_CPU_KVCACHE_SPACE": "1"}
"""GiB of cache; read by builds for CPUs alone."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    python = locate(VLLM, "vllm", MODULE).python
    assert python is not None
    folder = tmp_path_factory.mktemp("models") / "tiny-moe"
    subprocess.run([python, str(MAKER), str(folder), "--layers", "2", "--experts", "8"], check=True)
    return Target(engine="vllm", model=str(folder), executable=VLLM, flags=BASELINE, env=CPU)


@pytest.fixture(scope="module")
def build(target: Target) -> EngineBuild:
    return conformance.check_build(ENGINE, target)


@pytest.fixture(scope="module")
def model(target: Target) -> ModelFacts:
    return conformance.check_model(ENGINE, target)


def launched(build: EngineBuild, model: ModelFacts, flags: Flags, log: Path) -> VllmServer:
    return ENGINE.launch(ENGINE.argv(build, model.path, flags, free_port()), CPU, log, log.name)


def test_what_its_help_lists_is_taken_and_nothing_else(build: EngineBuild, model: ModelFacts) -> None:
    conformance.check_command(ENGINE, build, model, BASELINE)
    conformance.check_unknown_flag(ENGINE, build)
    assert ENGINE.check_flags(build, BASELINE) is None


def test_a_server_lives_is_measured_and_leaves_nothing_even_when_its_first_process_is_killed(
    build: EngineBuild, model: ModelFacts, tmp_path: Path
) -> None:
    traces = tmp_path / "traces"
    profiled: Flags = {"--profiler-config.profiler": "torch", "--profiler-config.torch_profiler_dir": str(traces)}
    server = launched(build, model, {**BASELINE, **profiled}, tmp_path / "life.log")
    try:
        assert server.wait_ready(conformance.READY_TIMEOUT_S) > 0
        conformance.check_answers(server)
        effective = server.effective()
        assert effective["scheduler_config.max_num_seqs"] == 8
        assert ENGINE.in_force(BASELINE, effective, server.fallbacks()) is None
        assert "max_num_seqs" in (ENGINE.in_force({"--max-num-seqs": 9}, effective, []) or "")
        workload = Workload(concurrency=8, window_s=1.0, windows=2, warmup_max_s=30.0)
        request = LoadRequest(
            base_url=server.base_url,
            model=server.model_name,
            workload=workload,
            seed=1,
            extra_body=dict(server.extra_body),
        )
        assert server.reset_prefix_cache(), "development endpoints are open"
        assert server.start_profile()
        server.next_tokens([[5, 6, 7]])
        assert server.stop_profile()
        assert list(traces.rglob("*.json*")), "a trace was written"
        before = server.counters()
        played = load.create().run(request, server.tokenize, lambda: server.failure() is None)
        generated = 'vllm:generation_tokens_total{engine="0",model_name="model"}'
        tokens = sum(sample.output_tokens or 0 for sample in played.samples)
        assert tokens > 0
        assert server.counters()[generated] - before[generated] >= tokens
        family = [psutil.Process(server.identity.pid), *psutil.Process(server.identity.pid).children(recursive=True)]
        assert len(family) > 1, "the engine has processes of its own"
        os.kill(server.identity.pid, signal.SIGKILL)
    finally:
        server.stop()
    assert not [each.pid for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def test_a_flag_that_cannot_work_here_fails_at_launch_with_the_line_that_says_so(
    build: EngineBuild, model: ModelFacts, tmp_path: Path
) -> None:
    flags: Flags = {**BASELINE, "--quantization": "awq"}
    assert ENGINE.check_flags(build, flags) is None, "its help lists the value"
    failure = conformance.check_failed_launch(ENGINE, build, model, flags, tmp_path)
    assert failure.cause is not Cause.UNKNOWN
    assert "awq" in failure.line.lower() or "quantization" in failure.line.lower()
