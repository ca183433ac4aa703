"""The TensorRT-LLM adapter against a stand-in program with the options, log and endpoints of `trtllm-serve`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from assay import wiring
from assay.engines import trtllm_log, trtllm_options
from assay.engines.trtllm_log import fallbacks
from assay.engines.trtllm_server import TrtllmServer
from assay.errors import UsageError
from assay.ports import Engine, LaunchFailed
from assay.process import free_port
from assay.records.base import Flags
from assay.records.machine import EngineBuild
from assay.records.spec import Target
from assay.testing import engine_conformance as conformance
from tests.contract.standins import trtllm_environment
from tests.contract.test_sglang_engine import CONFIG

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("trtllm")
    (root / "model").mkdir()
    (root / "model" / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (root / "model" / "tokenizer.json").write_text("{}", encoding="utf-8")
    trtllm_environment(root / "env")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        yield root


@pytest.fixture(scope="module")
def engine() -> Engine:
    return wiring.engine("trtllm")


@pytest.fixture(scope="module")
def target(place: Path) -> Target:
    return Target(engine="trtllm", model=str(place / "model"), executable=str(place / "env"))


@pytest.fixture(scope="module")
def build(engine: Engine, target: Target) -> EngineBuild:
    return engine.find(target)


def started(engine: Engine, build: EngineBuild, place: Path, flags: Flags, log: Path) -> TrtllmServer:
    server = engine.launch(engine.argv(build, str(place / "model"), flags, free_port()), {}, log, log.name)
    assert isinstance(server, TrtllmServer)
    return server


def test_the_adapter_keeps_the_contract_of_every_engine(engine: Engine, target: Target, tmp_path: Path) -> None:
    build = conformance.check_build(engine, target)
    conformance.check_unknown_flag(engine, build)
    conformance.check_life(engine, build, engine.model(target), {"--max_batch_size": 64}, tmp_path)


def test_version_subcommand_and_options_are_those_of_the_program(build: EngineBuild) -> None:
    assert build.version == "TensorRT-LLM 1.2.0"
    assert build.argv[-1] == "serve"
    tp = build.flag("--tp_size")
    assert tp is not None
    assert tp is build.flag("--tensor_parallel_size")


def test_flags_have_one_spelling_and_are_checked_against_the_help(engine: Engine, build: EngineBuild) -> None:
    flags: Flags = {"--tp_size": 2, "--kv_cache_config.dtype": "fp8", "--config.enable_attention_dp": True}

    assert engine.canonical(build, flags) == {
        "--tensor_parallel_size": 2, "--config.kv_cache_config.dtype": "fp8", "--config.enable_attention_dp": True,
    }  # fmt: skip
    assert engine.check_flags(build, flags) is None
    assert "takes one of" in str(engine.check_flags(build, {"--backend": "abacus"}))
    assert "--max_batch_sise" in str(engine.check_flags(build, {"--max_batch_sise": 2}))
    with pytest.raises(UsageError, match="Assay sets this itself"):
        engine.argv(build, "/m", {"--extra_llm_api_options": "mine.yaml"}, 1)


def test_options_without_a_flag_go_into_a_file_that_the_run_keeps(
    engine: Engine, build: EngineBuild, place: Path, tmp_path: Path
) -> None:
    flags: Flags = {
        "--config.kv_cache_config.free_gpu_memory_fraction": 0.85, "--kv_cache_config.enable_block_reuse": False,
        "--config.cuda_graph_config.batch_sizes": "[1, 2, 4]", "--max_batch_size": 64,
    }  # fmt: skip
    server = started(engine, build, place, flags, tmp_path / "server.log")
    server.wait_ready(30)
    server.stop()

    wanted = {
        "kv_cache_config": {"free_gpu_memory_fraction": 0.85, "enable_block_reuse": False},
        "cuda_graph_config": {"batch_sizes": [1, 2, 4]},
    }
    named = Path(server.identity.argv[server.identity.argv.index("--config") + 1])
    assert yaml.safe_load(named.read_text(encoding="utf-8")) == wanted
    assert yaml.safe_load((tmp_path / trtllm_options.FILE_NAME).read_text(encoding="utf-8")) == wanted
    assert engine.argv(build, "/m", flags, 1) == engine.argv(build, "/m", flags, 1)


@pytest.mark.parametrize(
    "flags",
    [
        {"--config.a.b": 1, "--a.b": 2},
        {"--config.a": 1, "--config.a.b": 2},
        {"--config.a.b": 2, "--config.a": 1},
        {"--config.": 1},
        {"--a..b": 1},
    ],
)
def test_options_that_contradict_each_other_are_refused(flags: Flags) -> None:
    with pytest.raises(UsageError):
        trtllm_options.tree(flags)


def test_what_it_says_of_itself_is_its_version_and_its_log(
    engine: Engine, build: EngineBuild, place: Path, tmp_path: Path
) -> None:
    flags: Flags = {"--config.enable_attention_dp": True, "--max_num_tokens": 4096}
    server = started(engine, build, place, flags, tmp_path / "server.log")
    server.wait_ready(30)
    effective, lines = server.effective(), server.fallbacks()
    counters, tokens = server.counters(), server.tokenize("The river bends twice. " * 2000)
    server.stop()

    assert effective["version"] == "1.2.0"
    assert effective["log.kv_cache_tokens"] == 338432
    assert counters["iteration.kvCacheStats.usedNumBlocks"] == 3.0
    assert len(tokens) == 46_000
    assert engine.in_force({"--max_num_tokens": 4096}, effective, lines) is None
    assert "max_num_tokens = 4096" in str(engine.in_force({"--max_num_tokens": 8192}, effective, lines))
    assert "is ignored because" in str(engine.in_force({"--config.enable_attention_dp": True}, effective, lines))


def test_the_tokens_that_the_engine_adds_to_a_limit_do_not_contradict_it(engine: Engine) -> None:
    asked: Flags = {"--max_seq_len": 2304}

    assert engine.in_force(asked, {"log.max_seq_len": 2305}, []) is None
    assert "max_seq_len = 1024" in str(engine.in_force(asked, {"log.max_seq_len": 1024}, []))
    assert "max_seq_len = 8193" in str(engine.in_force(asked, {"log.max_seq_len": 8193}, []))
    assert engine.in_force(asked, {}, []) is None


def test_a_plain_word_in_a_warning_is_not_taken_for_the_option_of_that_name(engine: Engine) -> None:
    asked: Flags = {"--config.moe_config.backend": "CUTLASS"}
    of_another = "Overlap scheduler is not supported for non-CDL or non-TrtllmAttention backend."

    assert engine.in_force(asked, {}, [of_another]) is None
    for of_it in ("Falling back to another MoE backend", "moe_config.backend is ignored"):
        assert of_it in str(engine.in_force(asked, {}, [of_it]))


def test_a_default_of_the_same_name_in_another_line_is_no_limit() -> None:
    text = "max_seq_len=4097, max_num_requests=64, max_num_tokens=2048\nLLM Args: max_num_tokens=8192 max_seq_len=9999"

    assert trtllm_log.facts(text) == {
        "log.max_seq_len": 4097, "log.max_num_requests": 64, "log.max_num_tokens": 2048,
    }  # fmt: skip


def test_an_option_that_the_engine_does_not_know_is_a_failed_launch_with_its_line(
    engine: Engine, build: EngineBuild, place: Path, tmp_path: Path
) -> None:
    server = started(engine, build, place, {"--config.no_such_option": 1}, tmp_path / "server.log")
    with pytest.raises(LaunchFailed) as caught:
        server.wait_ready(30)
    server.stop()

    assert "no_such_option" in caught.value.failure.line
    assert caught.value.failure.exit_code == 1


def test_chatter_is_no_second_thought() -> None:
    log = (
        "[01/02/2026-03:04:05] [TRT-LLM] [W] Implicitly setting LlamaConfig.tie_word_embeddings = False\n"
        "[TRT-LLM] [W] [_torch  ] x not available, falling back to y\n"
        "[TensorRT-LLM][WARNING] Block reuse is disabled\n"
        "[TensorRT-LLM][INFO] Chunked prefill is disabled\n"
    )
    assert fallbacks(log) == ["x not available, falling back to y", "Block reuse is disabled"]
