"""The llama.cpp adapter against the real embedded server."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest

from assay import wiring
from assay.errors import EngineError, UsageError
from assay.ports import Engine, LaunchFailed, Server
from assay.process import free_port
from assay.process.children import is_ours
from assay.records.base import Flags
from assay.records.hypothesis import Requantize
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.spec import EMBEDDED, Target
from assay.testing import engine_conformance as conformance

pytestmark = pytest.mark.slow
TARGET = Target(model=EMBEDDED, executable=EMBEDDED)
SMALL: Flags = {"--ctx-size": 1024, "--parallel": 2, "--threads": 1}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return wiring.engine("llamacpp")


@pytest.fixture(scope="module")
def build(engine: Engine) -> EngineBuild:
    return engine.find(TARGET)


@pytest.fixture(scope="module")
def model(engine: Engine) -> ModelFacts:
    return engine.model(TARGET)


def launched(engine: Engine, build: EngineBuild, path: str, flags: Flags, log: Path, port: int | None = None) -> Server:
    return engine.launch(engine.argv(build, path, flags, port or free_port()), {}, log, "server.log")


@pytest.fixture(scope="module")
def server(
    engine: Engine, build: EngineBuild, model: ModelFacts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("server") / "server.log"
    running = launched(engine, build, model.path, SMALL, log)
    running.wait_ready(60)
    yield running
    running.stop()


def test_the_build_tells_its_version_and_its_flags(build: EngineBuild) -> None:
    assert build.version.startswith("llama.cpp ")
    assert len(build.flags) > 150
    context = build.flag("-c")
    assert context is build.flag("--ctx-size")
    assert context is not None


def test_the_embedded_model_is_what_its_licence_says(model: ModelFacts) -> None:
    assert (model.architecture, model.quantization, model.license) == ("llama", "Q4_1", "apache-2.0")
    assert (model.num_layers, model.context_length) == (30, 8192)


def test_what_the_server_says_of_itself_agrees_with_its_flags(engine: Engine, server: Server) -> None:
    effective = server.effective()
    assert effective["total_slots"] == 2
    assert engine.in_force(SMALL, effective, server.fallbacks()) is None
    reason = engine.in_force({"--parallel": 7}, effective, [])
    assert reason is not None
    assert "total_slots = 2" in reason


def test_greedy_tokens_are_the_same_when_asked_twice(server: Server) -> None:
    prompt = server.tokenize("The capital of France is the city of")
    first = server.next_tokens([prompt, prompt[:4]])
    assert first == server.next_tokens([prompt, prompt[:4]])


def test_its_counters_count_what_was_generated(server: Server) -> None:
    name = "llamacpp:tokens_predicted_total"
    before = server.counters()[name]
    server.next_tokens([[1, 2, 3]])
    assert server.counters()[name] >= before + 1


def test_a_stopped_server_is_gone_and_stopping_again_is_harmless(
    engine: Engine, build: EngineBuild, model: ModelFacts, tmp_path: Path
) -> None:
    running = launched(engine, build, model.path, SMALL, tmp_path / "server.log")
    running.wait_ready(60)
    assert running.rss_bytes()
    running.stop()
    running.stop()
    assert not is_ours(running.identity.pid, running.identity.create_time)


@pytest.mark.parametrize(
    ("flags", "stage", "cause", "words"),
    [
        ({"--no-such-flag": True}, "arguments", "unknown-flag", "--no-such-flag"),
        ({"--cache-type-k": "q9_9"}, "arguments", "bad-value", "q9_9"),
        ({"--cache-type-v": "q8_0", "--flash-attn": "off"}, "load", "incompatible-combination", "V cache"),
        ({"--ctx-size": 20_000_000}, "kv-cache", "oom-at-load", "allocate"),
    ],
)
def test_a_launch_that_fails_says_where_why_and_with_which_line(
    engine: Engine,
    build: EngineBuild,
    model: ModelFacts,
    tmp_path: Path,
    flags: Flags,
    stage: str,
    cause: str,
    words: str,
) -> None:
    running = launched(engine, build, model.path, flags, tmp_path / "server.log")
    with pytest.raises(LaunchFailed) as caught:
        running.wait_ready(60)
    running.stop()
    failure = caught.value.failure
    assert (failure.stage, failure.cause) == (stage, cause)
    assert words in failure.line


def test_a_port_that_somebody_else_holds_is_not_taken_for_our_server(
    engine: Engine, build: EngineBuild, model: ModelFacts, tmp_path: Path
) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        running = launched(engine, build, model.path, SMALL, tmp_path / "server.log", port)
        with pytest.raises(LaunchFailed) as caught:
            running.wait_ready(60)
        running.stop()
    assert caught.value.failure.cause == "port-in-use"


def test_a_model_that_is_cut_short_is_refused_before_anything_is_launched(
    engine: Engine, model: ModelFacts, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(Path(model.path).read_bytes()[:5000])
    with pytest.raises(UsageError, match="cut short or damaged"):
        engine.model(Target(model=str(cut)))


@pytest.mark.parametrize(("content", "words"), [(b"not a model at all", "not a GGUF file"), (None, "no model file")])
def test_a_file_that_is_no_model_is_refused(engine: Engine, tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        engine.model(Target(model=str(path)))


def test_a_program_that_is_not_llama_server_is_refused_with_what_it_said(engine: Engine) -> None:
    with pytest.raises(EngineError):
        engine.find(Target(executable="/bin/false"))
    with pytest.raises(EngineError, match="not an executable"):
        engine.find(Target(executable="/no/such/program"))


@pytest.mark.parametrize("flag", ["--host", "--port", "--model", "--api-key"])
def test_flags_that_assay_owns_are_refused(engine: Engine, build: EngineBuild, flag: str) -> None:
    with pytest.raises(UsageError, match=flag):
        engine.argv(build, "m.gguf", {flag: "x"}, 1)


def test_flags_are_checked_against_the_build_with_the_nearest_spelling(engine: Engine, build: EngineBuild) -> None:
    assert engine.check_flags(build, {"--ctx-size": 5, "--flash-attn": "on"}) is None
    assert "--ctx-size" in str(engine.check_flags(build, {"--ctxsize": 5}))
    assert "removed" in str(engine.check_flags(build, {"--draft-max": 5}))
    assert "on, off, auto" in str(engine.check_flags(build, {"--flash-attn": "perhaps"}))


def test_a_switch_set_to_false_takes_its_negative_spelling(engine: Engine, build: EngineBuild) -> None:
    assert engine.argv(build, "m.gguf", {"--repack": False}, 1)[-1] == "--no-repack"


def test_an_artifact_is_made_once_and_served(
    engine: Engine, build: EngineBuild, model: ModelFacts, tmp_path: Path
) -> None:
    path = conformance.check_artifact(engine, model, Requantize(type="Q8_0"), tmp_path / "artifacts")
    running = launched(engine, build, path, SMALL, tmp_path / "server.log")
    running.wait_ready(60)
    assert running.effective()["model_ftype"] == "Q8_0"
    running.stop()


def test_an_artifact_that_cannot_be_made_fails_at_its_own_stage_and_leaves_nothing(
    engine: Engine, model: ModelFacts, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF and no more")
    facts = model.model_copy(update={"path": str(broken)})
    with pytest.raises(LaunchFailed) as caught:
        engine.make_artifact(facts, Requantize(type="Q8_0"), tmp_path / "artifacts")
    assert (caught.value.failure.stage, caught.value.failure.cause) == ("artifact", "artifact")
    assert list((tmp_path / "artifacts").iterdir()) == []


def test_the_adapter_does_what_every_adapter_must(engine: Engine, model: ModelFacts, tmp_path: Path) -> None:
    build = conformance.check_build(engine, TARGET)
    assert conformance.check_model(engine, TARGET) == model
    conformance.check_unknown_flag(engine, build)
    conformance.check_life(engine, build, model, {**SMALL, "--threads": 2, "--numa": "distribute"}, tmp_path)
    failure = conformance.check_failed_launch(engine, build, model, {conformance.NO_SUCH_FLAG: True}, tmp_path)
    assert (failure.cause, failure.exit_code) == ("unknown-flag", 1)


@pytest.mark.parametrize(
    ("kind", "words"), [("ngram-simple", None), ("ngram-mod", None), ("draft-simple", "draft-simple requires a draft")]
)
def test_speculation_is_in_force_where_the_slots_say_so(
    engine: Engine, build: EngineBuild, model: ModelFacts, tmp_path: Path, kind: str, words: str | None
) -> None:
    flags: Flags = {"--spec-type": kind}
    running = launched(engine, build, model.path, {**SMALL, **flags}, tmp_path / "server.log")
    running.wait_ready(60)
    reason = engine.in_force(flags, running.effective(), running.fallbacks())
    running.stop()
    assert reason is None if words is None else words in str(reason)


def test_a_closed_endpoint_is_no_error(engine: Engine, build: EngineBuild, model: ModelFacts, tmp_path: Path) -> None:
    running = launched(engine, build, model.path, {**SMALL, "--no-slots": True}, tmp_path / "server.log")
    running.wait_ready(60)
    effective = running.effective()
    running.stop()
    assert "total_slots" in effective
    assert not any(key.startswith("slots.") for key in effective)


def test_a_server_that_still_loads_is_ended_by_the_first_signal(
    engine: Engine, build: EngineBuild, model: ModelFacts, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    running = launched(engine, build, model.path, {"--ctx-size": 20_000_000}, log)
    while "loading model" not in log.read_text():
        assert running.failure() is None
    running.stop()
    failure = running.failure()
    assert failure is not None
    assert (failure.cause, failure.exit_code) == ("killed", -signal.SIGINT)


def test_a_server_that_is_killed_under_load_says_so(
    engine: Engine, build: EngineBuild, model: ModelFacts, tmp_path: Path
) -> None:
    running = launched(engine, build, model.path, SMALL, tmp_path / "server.log")
    running.wait_ready(60)
    psutil.Process(running.identity.pid).kill()
    with pytest.raises(LaunchFailed) as caught:
        running.next_tokens([[1, 2, 3]] * 100_000)
    running.stop()
    assert (caught.value.failure.stage, caught.value.failure.cause) == ("under-load", "killed")


class Healthy(BaseHTTPRequestHandler):
    """Somebody else's server that answers every request as a healthy one does."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


def test_a_healthy_answer_of_somebody_elses_server_is_not_ours(
    engine: Engine, build: EngineBuild, model: ModelFacts, tmp_path: Path
) -> None:
    with HTTPServer(("127.0.0.1", 0), Healthy) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        running = launched(engine, build, model.path, SMALL, tmp_path / "server.log", stranger.server_port)
        with pytest.raises(LaunchFailed) as caught:
            running.wait_ready(60)
        running.stop()
        stranger.shutdown()
    assert caught.value.failure.cause == "port-in-use"


def test_short_and_negative_spellings_become_the_long_ones(engine: Engine, build: EngineBuild) -> None:
    assert engine.canonical(build, {"-np": 4, "-c": 8, "-nocb": True, "--what": 1}) == {
        "--parallel": 4,
        "--ctx-size": 8,
        "--cont-batching": False,
        "--what": 1,
    }


def test_variables_that_set_flags_behind_our_back_do_not_reach_the_server(
    engine: Engine, build: EngineBuild, model: ModelFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_ARG_N_PARALLEL", "7")
    running = launched(engine, build, model.path, {"--ctx-size": 1024}, tmp_path / "server.log")
    running.wait_ready(60)
    slots = running.effective()["total_slots"]
    running.stop()
    assert slots != 7
