"""The rehearsal adapter against its real server process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from assay.campaign.bench import RUN_TOKEN
from assay.engines.rehearsal import VERSION, Rehearsal
from assay.errors import EngineError
from assay.models import load
from assay.ports import LaunchFailed, Server
from assay.probes.devices import box
from assay.process import free_port
from assay.records.base import Flags
from assay.records.estimate import Layout
from assay.records.hypothesis import Requantize
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.spec import Target
from assay.rehearsal import machine, server
from assay.rehearsal.step_times import StepTimes
from assay.testing import engine_conformance as conformance

SCALE = 60
BOX = "1xH100-SXM"
MODEL = "qwen2.5-7b"
WORLD = """
[launch]
weights_s = 1
memory_s = 1
capture_s = 1
[noise]
run_sd = 0
step_sd = 0
[[flags]]
name = "--break-capture"
[[flags.truth]]
fault = { kind = "fails-graph-capture" }
[[flags]]
name = "--break-cache"
[[flags.truth]]
fault = { kind = "fails-kv-allocation" }
[[flags]]
name = "--leak"
[[flags.truth]]
fault = { kind = "leak", leak_bytes = 8388608, leak_limit_bytes = 41943040 }
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    world = tmp_path_factory.mktemp("world") / "world.toml"
    world.write_text(WORLD, encoding="utf-8")
    flags: Flags = {"--world": str(world), "--time-scale": SCALE, "--box": BOX}
    return Target(engine="rehearsal", model=MODEL, flags=flags)


@pytest.fixture(scope="module")
def build(target: Target) -> EngineBuild:
    return Rehearsal().find(target)


@pytest.fixture(scope="module")
def model(target: Target) -> ModelFacts:
    return Rehearsal().model(target)


@pytest.fixture(scope="module")
def running(target: Target, build: EngineBuild, model: ModelFacts, tmp_path_factory: pytest.TempPathFactory
            ) -> Iterator[Server]:  # fmt: skip
    found = launched(build, model, target.flags, tmp_path_factory.mktemp("server"))
    found.wait_ready(30)
    yield found
    found.stop()


def launched(build: EngineBuild, model: ModelFacts, flags: Flags, folder: Path) -> Server:
    engine = Rehearsal()
    return engine.launch(engine.argv(build, model.path, flags, free_port()), {}, folder / "server.log", "server.log")


def asked(server: Server, path: str, body: dict[str, object] | None = None) -> tuple[int, str]:
    connection = HTTPConnection(server.base_url.removeprefix("http://"), timeout=10)
    method, content = ("GET", None) if body is None else ("POST", json.dumps(body))
    connection.request(method, path, content)
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


def test_it_does_what_every_engine_must(target: Target, tmp_path: Path) -> None:
    engine = Rehearsal()

    build = conformance.check_build(engine, target)
    model = conformance.check_model(engine, target)
    conformance.check_unknown_flag(engine, build)
    conformance.check_life(engine, build, model, target.flags, tmp_path)

    assert "simulated" in build.version
    assert "simulated" in build.source
    assert "simulated" in model.name


@pytest.mark.parametrize(
    ("flag", "stage", "cause"),
    [
        ("--break-capture", "graph-capture", "graph-break"),
        ("--break-cache", "kv-cache", "kv-cache-too-small"),
        ("--no-such-flag", "arguments", "unknown-flag"),
    ],
)
def test_a_launch_that_fails_says_so_with_stage_and_cause(
    target: Target, build: EngineBuild, model: ModelFacts, tmp_path: Path, flag: str, stage: str, cause: str
) -> None:
    failure = conformance.check_failed_launch(Rehearsal(), build, model, {**target.flags, flag: True}, tmp_path)

    assert (failure.stage, failure.cause) == (stage, cause)


def test_a_model_that_does_not_fit_has_no_cache(target: Target, build: EngineBuild, tmp_path: Path) -> None:
    large = Rehearsal().model(target.model_copy(update={"model": "llama-3.1-405b"}))

    failure = conformance.check_failed_launch(Rehearsal(), build, large, target.flags, tmp_path)

    assert failure.cause == "kv-cache-too-small"


def test_a_world_that_cannot_be_read_is_an_error_with_the_flag_to_check(target: Target) -> None:
    lost = target.model_copy(update={"flags": {"--world": "nowhere.toml"}})

    with pytest.raises(EngineError, match=r"nowhere\.toml") as error:
        Rehearsal().find(lost)

    assert "--world" in str(error.value.hint)


def test_no_artifact_can_be_made_of_a_simulated_model(model: ModelFacts, tmp_path: Path) -> None:
    with pytest.raises(LaunchFailed):
        Rehearsal().make_artifact(model, Requantize(type="Q8_0"), tmp_path)


def test_it_speaks_the_protocol_and_labels_what_it_says(running: Server) -> None:
    _, models = asked(running, "/v1/models")
    _, info = asked(running, "/get_server_info")
    message = {"messages": [{"role": "user", "content": "one two three"}], "max_tokens": 5}
    _, chat = asked(running, "/v1/chat/completions", message)
    body = {"prompt": [1, 2, 3], "max_tokens": 40, "stream": True, "stream_options": {"include_usage": True}}
    _, stream = asked(running, "/v1/completions", body)
    refused, _ = asked(running, "/v1/completions", {"prompt": ""})
    missing, _ = asked(running, "/nowhere")
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    text = "".join(event["choices"][0]["text"] for event in events if event["choices"])

    assert "simulated" in models
    assert json.loads(info)["simulated"] is True
    assert json.loads(chat)["usage"]["total_tokens"] == 8
    assert len(text.split()) == 40
    assert events[-1]["usage"]["completion_tokens"] == 40
    assert stream.rstrip().endswith("data: [DONE]")
    assert (refused, missing) == (400, 404)


def test_its_counters_count_what_it_made(running: Server) -> None:
    before = running.counters()
    asked(running, "/v1/completions", {"prompt": [9, 9, 9], "max_tokens": 25})
    after = running.counters()

    assert after["sglang:generation_tokens_total"] - before["sglang:generation_tokens_total"] == 25
    assert after["sglang:prompt_tokens_total"] - before["sglang:prompt_tokens_total"] == 3


def test_tokens_take_the_time_of_the_roofline_over_the_time_scale(running: Server) -> None:
    steps = StepTimes(load(MODEL), box(BOX), Layout())
    began = time.monotonic()
    asked(running, "/v1/completions", {"prompt": [5, 6, 7], "max_tokens": 1500})
    took_s = time.monotonic() - began

    # Never less than calculated; how much more depends on what else this machine does.
    assert took_s >= 0.99 * 1500 * steps.decode_s(1, 3) / SCALE


def test_a_leak_takes_memory_for_real_and_ends_in_a_kill(
    target: Target, build: EngineBuild, model: ModelFacts, tmp_path: Path
) -> None:
    server = launched(build, model, {**target.flags, "--leak": True}, tmp_path)
    try:
        server.wait_ready(30)
        before = server.rss_bytes() or 0
        server.next_tokens([[1, 2], [3, 4]])
        grown = (server.rss_bytes() or 0) - before
        with pytest.raises(LaunchFailed) as failed:
            server.next_tokens([[number] for number in range(10)])
    finally:
        server.stop()

    assert grown >= 2 * 8_000_000
    assert (failed.value.failure.stage, failed.value.failure.cause) == ("under-load", "host-oom")


def test_the_server_and_its_adapter_agree_on_names() -> None:
    assert server.VERSION == VERSION
    assert machine.RUN_TOKEN == RUN_TOKEN
