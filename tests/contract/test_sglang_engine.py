"""The SGLang adapter against a stand-in program with SGLang's arguments, processes, log and endpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from assay import wiring
from assay.engines.sglang_server import SglangServer
from assay.errors import EngineError, UsageError
from assay.ports import Engine, LaunchFailed
from assay.process import free_port
from assay.process.children import is_ours
from assay.records.base import Flags
from assay.records.failure import Cause
from assay.records.machine import EngineBuild
from assay.records.spec import Target
from assay.testing import engine_conformance as conformance
from tests.contract.standins import environment

pytestmark = pytest.mark.slow
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256,
    "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip
FLAGS: Flags = {"--tensor-parallel-size": 2, "--mem-fraction-static": 0.8}


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sglang")
    (root / "model").mkdir()
    (root / "model" / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    environment(root / "env")
    environment(root / "old", "0.4.6")
    return root


@pytest.fixture(scope="module")
def engine() -> Engine:
    return wiring.engine("sglang")


def target(place: Path, env: str = "env", **more: object) -> Target:
    return Target.model_validate(
        {"engine": "sglang", "model": str(place / "model"), "executable": str(place / env), **more}
    )


def started(engine: Engine, build: EngineBuild, place: Path, flags: Flags, log: Path, **env: str) -> SglangServer:
    argv = engine.argv(build, str(place / "model"), flags, free_port())
    server = engine.launch(argv, env, log, log.name)
    assert isinstance(server, SglangServer)
    return server


@pytest.fixture(scope="module")
def server(engine: Engine, place: Path) -> Iterator[SglangServer]:
    running = started(engine, engine.find(target(place)), place, FLAGS, place / "server.log")
    running.wait_ready(30)
    yield running
    running.stop()


def test_the_adapter_keeps_the_contract_of_every_engine(engine: Engine, place: Path, tmp_path: Path) -> None:
    build = conformance.check_build(engine, target(place))
    conformance.check_unknown_flag(engine, build)
    model = engine.model(target(place))
    conformance.check_life(engine, build, model, FLAGS, tmp_path)


def test_version_and_flags_are_those_of_the_environment(engine: Engine, place: Path) -> None:
    build = engine.find(target(place))

    assert build.version == "SGLang 0.5.9"
    assert build.argv[1:] == ["-m", "sglang.launch_server"]
    assert len(build.flags) > 250
    assert build.flag("--mem-fraction-static") is not None


def test_where_the_help_does_not_run_the_recorded_flags_stand_in_and_it_is_said(
    engine: Engine, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_FAULT", "help")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is remembered

    build = engine.find(target(place))

    assert "libcuda.so.1" in build.source
    assert "recorded of the 0.5.9 wheel" in build.source
    assert engine.check_flags(build, FLAGS) is None


def test_an_environment_without_the_package_is_no_engine(engine: Engine, place: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to((place / "env" / "bin" / "python").read_text().splitlines()[0][2:])
    with pytest.raises(EngineError, match="no package sglang"):
        engine.find(target(place, executable=str(tmp_path)))


def test_flags_of_another_version_are_refused_with_their_new_name(engine: Engine, place: Path) -> None:
    build = engine.find(target(place))

    assert "--moe-runner-backend" in str(engine.check_flags(build, {"--enable-flashinfer-cutlass-moe": True}))
    assert "0.5.14 is the first" in str(engine.check_flags(build, {"--cuda-graph-bs-decode": "1 2 4"}))
    assert "takes a whole number" in str(engine.check_flags(build, {"--max-running-requests": "many"}))
    assert engine.check_flags(build, {"--cuda-graph-bs": "1 2 4"}) is None


def test_flags_have_one_spelling_and_those_of_assay_are_refused(engine: Engine, place: Path) -> None:
    build = engine.find(target(place))

    assert engine.canonical(build, {"--tp-size": 8}) == {"--tensor-parallel-size": 8}
    argv = engine.argv(build, "/m", {"--cuda-graph-bs": "1 2 4", "--disable-radix-cache": True}, 1234)
    assert argv[-5:] == ["--cuda-graph-bs", "1", "2", "4", "--disable-radix-cache"]
    for name in ("--port", "--model", "--enable-metrics"):
        with pytest.raises(UsageError, match="Assay sets this itself"):
            engine.argv(build, "/m", {name: 1}, 1234)


def test_what_the_server_reports_is_its_resolved_arguments_without_secrets_and_places(server: SglangServer) -> None:
    effective = server.effective()

    assert effective["tensor_parallel_size"] == 2
    assert effective["mem_fraction_static"] == 0.8
    assert effective["version"] == "0.5.9"
    assert effective["state.effective_max_running_requests_per_dp"] == 16
    assert effective["log.max_running_requests"] == 16
    assert not {"model_path", "api_key", "port", "state.last_gen_throughput"} & set(effective)


def test_a_value_that_the_engine_replaced_is_not_in_force(engine: Engine, place: Path, tmp_path: Path) -> None:
    flags: Flags = {**FLAGS, "--expert-parallel-size": 1, "--moe-a2a-backend": "deepep"}
    running = started(engine, engine.find(target(place)), place, flags, tmp_path / "server.log")
    running.wait_ready(30)
    effective, fallbacks = running.effective(), running.fallbacks()
    running.stop()

    assert engine.in_force({"--moe-a2a-backend": "deepep"}, effective, fallbacks) is None
    assert engine.in_force({"--expert-parallel-size": 1}, effective, fallbacks) == (
        "--expert-parallel-size 1 is not in force: the server reports ep_size = 2"
    )


def test_a_switch_that_a_warning_takes_back_is_not_in_force(engine: Engine, place: Path, tmp_path: Path) -> None:
    flags: Flags = {"--enable-mixed-chunk": True, "--speculative-algorithm": "EAGLE"}
    running = started(engine, engine.find(target(place)), place, flags, tmp_path / "server.log")
    running.wait_ready(30)
    effective, fallbacks = running.effective(), running.fallbacks()
    running.stop()

    assert fallbacks == ["Mixed chunked prefill is disabled because of using eagle speculative decoding."]
    assert engine.in_force({"--speculative-algorithm": "EAGLE"}, effective, fallbacks) is None
    assert "enable_mixed_chunk = false" in str(engine.in_force({"--enable-mixed-chunk": True}, effective, fallbacks))


def test_a_flag_that_no_code_of_the_version_reads_is_not_in_force_although_it_is_reported(
    engine: Engine, place: Path, tmp_path: Path
) -> None:
    flags: Flags = {"--num-continuous-decode-steps": 16}
    build = engine.find(target(place))
    running = started(engine, build, place, flags, tmp_path / "server.log")
    running.wait_ready(30)
    effective = running.effective()
    running.stop()

    assert engine.check_flags(build, flags) is None
    assert effective["num_continuous_decode_steps"] == 16
    assert "no code outside argument handling reads it" in str(engine.in_force(flags, effective, []))


def test_the_prefix_cache_is_emptied_and_a_profile_is_taken(server: SglangServer) -> None:
    assert server.counters()["sglang:cache_flushes"] == 0.0
    assert server.reset_prefix_cache()
    assert server.counters()["sglang:cache_flushes"] == 1.0
    assert server.start_profile(Path("/traces"))
    assert server.stop_profile()


def test_a_version_without_a_tokenizer_endpoint_tells_tokens_by_log_probabilities(
    engine: Engine, place: Path, tmp_path: Path
) -> None:
    text = "The river bends twice. " * 200
    running = started(engine, engine.find(target(place, "old")), place, {}, tmp_path / "server.log")
    running.wait_ready(30)
    tokens, version = running.tokenize(text), running.effective()["version"]
    running.stop()

    assert version == "0.4.6"
    assert tokens == list(text.encode())


def test_a_dead_scheduler_ends_the_wait_at_once_with_its_reason(engine: Engine, place: Path, tmp_path: Path) -> None:
    build = engine.find(target(place))
    running = started(engine, build, place, FLAGS, tmp_path / "server.log", STANDIN_FAULT="scheduler")
    with pytest.raises(LaunchFailed) as caught:
        running.wait_ready(30)
    running.stop()

    assert caught.value.failure.cause in {Cause.OOM_AT_LOAD, Cause.OOM_AT_CAPTURE}
    assert "CUDA out of memory" in caught.value.failure.line


def test_stopping_ends_the_scheduler_too(engine: Engine, place: Path, tmp_path: Path) -> None:
    running = started(engine, engine.find(target(place)), place, FLAGS, tmp_path / "server.log")
    running.wait_ready(30)
    family = psutil.Process(running.identity.pid).children(recursive=True)
    running.stop()

    assert family
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in family)
    assert not is_ours(running.identity.pid, running.identity.create_time)


def test_variables_of_the_engine_that_a_shell_happens_to_hold_are_not_inherited(
    engine: Engine, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGLANG_USE_MODELSCOPE", "1")
    running = started(engine, engine.find(target(place)), place, {}, tmp_path / "server.log", SGLANG_SET="1")
    running.wait_ready(30)
    seen = psutil.Process(running.identity.pid).environ()
    running.stop()

    assert "SGLANG_USE_MODELSCOPE" not in seen
    assert seen["SGLANG_SET"] == "1"
