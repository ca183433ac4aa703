"""A server that somebody else runs is measured and left as it was; a rehearsal server and a strict one play it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest
from pydantic import ValidationError

from assay import api, wiring
from assay.engines.openai_client import OpenAiClient
from assay.engines.openai_server import NOBODY, SomebodysServer
from assay.errors import EngineError, MeasurementError, UsageError
from assay.models import library
from assay.ports import Engine, LaunchFailed
from assay.process import end_recorded, free_port
from assay.records.spec import CampaignSpec, Gates, Target
from assay.store.spec_file import read_spec

pytestmark = pytest.mark.slow
KEY_NAME, KEY = "THEIR_API_KEY", "made0up"
WORLD = "[launch]\nweights_s = 0\nmemory_s = 0\ncapture_s = 0\n"


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that was not started by Assay."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "world.toml").write_text(WORLD, encoding="utf-8")
    port = free_port()
    words = ["--model", str(library.find("qwen2.5-7b")), "--box", "1xH100-SXM", "--world", str(folder / "world.toml")]
    words += ["--host", "127.0.0.1", "--port", str(port), "--time-scale", "1"]
    with (folder / "log").open("w+b") as log:
        process = subprocess.Popen([sys.executable, "-m", "assay.rehearsal.server", *words], stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        wiring.engine("openai").launch(
            ["assay", "bench", url, "--model", "model"], {}, folder / "ours.log", "ours.log"
        ).wait_ready(60)
        yield url
        process.terminate()
        process.wait(timeout=20)


class Strict(BaseHTTPRequestHandler):
    """Wants a key, lists two models with an adapter, tells no tokens, redirects one path."""

    def do_GET(self) -> None:
        if self.headers.get("authorization") != f"Bearer {KEY}":
            self.answer(401, {"error": "no key"})
        elif self.path == "/team/v1/models":
            self.answer(200, {"data": [{"id": "a"}, {"id": "b"}, {"id": "b-lora", "parent": "b"}]})
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        self.do_GET()

    def answer(self, status: int, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    monkeypatch.setenv(KEY_NAME, KEY)
    with strict_server() as target:
        yield target


@contextmanager
def strict_server() -> Iterator[Target]:
    with HTTPServer(("127.0.0.1", 0), Strict) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/team/v1"
        yield Target(engine="openai", url=url, api_key_env=KEY_NAME, model="b")
        server.shutdown()
        thread.join()


@pytest.fixture
def engine() -> Engine:
    return wiring.engine("openai")


def measured(engine: Engine, target: Target, log: Path) -> SomebodysServer:
    argv = engine.argv(engine.find(target), engine.model(target).path, {}, 1)
    server = engine.launch(argv, {}, log, log.name)
    assert isinstance(server, SomebodysServer)
    return server


def test_it_is_known_by_what_it_says_of_itself(engine: Engine, theirs: str) -> None:
    target = Target(engine="openai", url=f"{theirs}/v1")

    build, model = engine.find(target), engine.model(target)

    assert "rehearsal" in build.version
    assert build.argv == ["assay", "bench", theirs]
    assert (model.name, model.size_bytes) == ("model", None)
    assert engine.model(target) == model


def test_it_answers_and_is_left_running(engine: Engine, theirs: str, tmp_path: Path) -> None:
    server = measured(engine, Target(engine="openai", url=theirs), tmp_path / "server.log")

    assert server.wait_ready(10) < 10
    tokens = server.tokenize("The river bends twice.")
    assert tokens
    assert server.next_tokens([tokens, tokens[:2]]) == server.next_tokens([tokens, tokens[:2]])
    assert server.effective()["model"] == "model"
    assert all(isinstance(value, float) for value in server.counters().values())
    assert server.failure() is None
    assert server.rss_bytes() is None
    server.stop()
    assert OpenAiClient(theirs).is_ok("/health")


def test_what_is_recorded_of_it_can_never_end_a_process(engine: Engine, theirs: str, tmp_path: Path) -> None:
    identity = measured(engine, Target(engine="openai", url=theirs), tmp_path / "server.log").identity

    assert identity.pid == NOBODY
    assert not psutil.pid_exists(identity.pid)
    assert end_recorded(identity) is False


def test_flags_are_refused_since_the_server_is_not_ours(engine: Engine, theirs: str) -> None:
    build = engine.find(Target(engine="openai", url=theirs))

    assert engine.check_flags(build, {}) is None
    assert f"the server is not ours: {theirs}" in str(engine.check_flags(build, {"--max-num-seqs": 8}))
    with pytest.raises(UsageError, match="not ours"):
        engine.argv(build, "model", {"--max-num-seqs": 8}, 1)


def test_a_campaign_measures_it_and_blocks_what_would_change_it(theirs: str, tmp_path: Path) -> None:
    spec = CampaignSpec.model_validate(
        {
            "target": {"engine": "openai", "url": theirs},
            "workload": {"concurrency": 2, "window_s": 0.5, "windows": 2, "warmup_min_s": 0.2, "warmup_max_s": 20},
            "budget": {"calibration_brackets": 2, "total_s": 120},
            "gates": {"max_foreign_cores": 1000, "max_steal_share": 1},
            "policy": {"catalogue": ["own"]},
        }
    )
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "more-slots.toml").write_text(ENTRY, encoding="utf-8")
    api.init(tmp_path, spec)

    state = api.run(tmp_path, Quiet(), max_runs=1)

    run, hypothesis = state.runs[0], state.hypotheses[0]
    assert run.outcome is not None
    assert run.outcome.effective["model"] == "model"
    assert run.server is not None
    assert run.server.pid == NOBODY
    assert (hypothesis.id, hypothesis.status) == ("more-slots", "blocked")
    assert "the server is not ours" in str(hypothesis.blocked_reason)
    assert (tmp_path / "report" / "index.html").is_file()
    assert OpenAiClient(theirs).is_ok("/health")


def test_a_key_is_named_sent_and_stored_nowhere(engine: Engine, strict: Target, tmp_path: Path) -> None:
    build, model = engine.find(strict), engine.model(strict)
    server = measured(engine, strict, tmp_path / "server.log")

    assert server.wait_ready(5) >= 0
    assert server.api_key_env == KEY_NAME
    stored = [build.model_dump_json(), model.model_dump_json(), server.identity.model_dump_json()]
    assert not any(KEY in text for text in [*stored, (tmp_path / "server.log").read_text()])


def test_a_missing_key_is_said_before_anything_is_sent(
    engine: Engine, strict: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_NAME)
    with pytest.raises(UsageError, match=f"{KEY_NAME} holds no usable API key"):
        engine.find(strict)


def test_a_model_must_be_named_where_several_are_served(engine: Engine, strict: Target) -> None:
    assert engine.model(strict).name == "b"
    with pytest.raises(UsageError, match="serves 2 models"):
        engine.model(Target(engine="openai", url=strict.url, api_key_env=KEY_NAME))
    with pytest.raises(UsageError, match="does not serve 'c'"):
        engine.model(strict.model_copy(update={"model": "c"}))


def test_a_question_is_made_from_the_address_alone_where_one_model_is_served(theirs: str, tmp_path: Path) -> None:
    target = read_spec(api.init_from_url(tmp_path, f"{theirs}/v1")).target

    assert (target.engine, target.url, target.model, target.api_key_env) == ("openai", theirs, "model", None)


def test_a_question_names_the_model_and_the_keys_variable_where_they_are_needed(strict: Target, tmp_path: Path) -> None:
    url = str(strict.url)
    with pytest.raises(UsageError, match="did not answer as an OpenAI-compatible server does"):
        api.init_from_url(tmp_path, url)
    with pytest.raises(UsageError, match="serves 2 models"):
        api.init_from_url(tmp_path, url, api_key_env=KEY_NAME)
    target = read_spec(api.init_from_url(tmp_path, url, model="b", api_key_env=KEY_NAME)).target

    assert (target.model, target.api_key_env) == ("b", KEY_NAME)
    assert KEY not in (tmp_path / "assay.toml").read_text(encoding="utf-8")


def test_a_server_that_tells_no_tokens_can_be_benched_but_not_campaigned(
    engine: Engine, strict: Target, tmp_path: Path
) -> None:
    with pytest.raises(MeasurementError, match="tells no tokens") as caught:
        measured(engine, strict, tmp_path / "server.log").tokenize("a text")
    assert "assay bench" in str(caught.value.hint)


def test_nobody_at_the_address_is_an_engine_error_and_a_failed_run(engine: Engine, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(EngineError, match="refused"):
        engine.find(Target(engine="openai", url=url))
    server = engine.launch(["assay", "bench", url, "--model", "m"], {}, tmp_path / "server.log", "server.log")
    with pytest.raises(LaunchFailed) as caught:
        server.wait_ready(0.1)
    assert "does not answer" in caught.value.failure.line


def test_one_that_was_waited_for_in_vain_is_looked_at_once_the_next_time(engine: Engine, tmp_path: Path) -> None:
    argv = ["assay", "bench", f"http://127.0.0.1:{free_port()}", "--model", "m"]
    with pytest.raises(LaunchFailed):
        engine.launch(argv, {}, tmp_path / "server.log", "server.log").wait_ready(0.1)
    began = time.monotonic()

    with pytest.raises(LaunchFailed) as caught:
        engine.launch(argv, {}, tmp_path / "server.log", "server.log").wait_ready(300)

    assert time.monotonic() - began < 10
    assert "it is not Assay's to start" in caught.value.failure.line


def test_a_server_that_is_gone_is_said_to_be_before_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(KEY_NAME, KEY)
    with strict_server() as target:
        soon = target.model_copy(update={"start_timeout_s": 0.1})
        api.init(tmp_path, CampaignSpec(target=soon, gates=Gates(max_foreign_cores=1000, max_steal_share=1)))
        api.plan(tmp_path)
    progress = Told()

    state = api.run(tmp_path, progress, max_runs=1)

    assert state.runs[0].outcome is not None
    assert state.runs[0].outcome.status == "failed"
    assert "refused" in progress.results[0]
    assert "waiting for it, at most 0.1 s (target.start_timeout_s)" in progress.results[0]


@pytest.mark.parametrize(
    "target",
    [
        {"engine": "openai"},
        {"engine": "openai", "url": "ftp://x"},
        {"engine": "openai", "url": "http://user:secret@host:1"},
        {"engine": "openai", "url": "http://x", "flags": {"--a": 1}},
        {"engine": "openai", "url": "http://x", "api_key_env": "sk-123 4"},
        {"engine": "sglang", "url": "http://x"},
        {"engine": "llamacpp", "api_key_env": "KEY"},
    ],
)
def test_a_target_that_mixes_theirs_and_ours_is_refused(target: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Target.model_validate(target)


ENTRY = """
id = "more-slots"
title = "More slots"
tier = 1
mechanism = "none: their server"
predicted = [0.0, 0.1]
numerics = "exact"
risk = "none"
[engines.openai]
flags = { "--parallel" = 8 }
"""


class Quiet:
    """Implements `assay.ports.Progress`."""

    def step(self, text: str, *, done_s: float, total_s: float) -> None:
        """Nothing."""

    def phase(self, text: str) -> None:
        """Nothing."""

    def result(self, text: str, *, good: bool | None = None) -> None:
        """Nothing."""


class Told(Quiet):
    """Keeps what was concluded."""

    def __init__(self) -> None:
        self.results: list[str] = []

    def result(self, text: str, *, good: bool | None = None) -> None:
        """A line of the terminal."""
        self.results.append(text)
