"""Servers behind docker, podman, ssh and srun: stand-in programs on PATH, with real processes behind them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pydantic import ValidationError

from assay import api
from assay.engines import launch_prefix, launch_prefix_container, launch_prefix_ssh
from assay.engines.sglang import Sglang
from assay.engines.sglang_server import SglangServer
from assay.errors import UsageError
from assay.ports import LaunchFailed
from assay.process import free_port
from assay.process.guardian import VARIABLE
from assay.records.launch import LaunchPrefix
from assay.records.machine import EngineBuild
from assay.records.spec import CampaignSpec, Target
from assay.store.spec_file import read_spec
from tests.contract.standins import environment, put, recorded
from tests.contract.test_sglang_engine import CONFIG

pytestmark = pytest.mark.slow
SECRET = "hf_made0up0secret0value"  # noqa: S105 - made up
DOCKER = {"kind": "docker", "image": "lmsysorg/sglang:v0.5.9", "gpus": "all", "options": ["--ipc", "host"]}
SSH = {"kind": "ssh", "host": "gpu-box"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """PATH with the stand-ins, an "image" and a "remote" that have SGLang, and a model with a blank in its name."""
    root = tmp_path_factory.mktemp("prefix")
    model = root / "my model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    inside = environment(root / "env") / "bin"
    (root / "bin").mkdir()
    for name, source in {"docker": "docker", "podman": "docker", "ssh": "ssh", "srun": "srun"}.items():
        put(name, root / "bin", source)
    for name in ("image", "remote"):
        (root / name).write_text(f"{inside}:/usr/bin:/bin", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{root / 'bin'}:{os.environ['PATH']}")
        patch.setenv("STANDIN_STATE", str(root))
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        yield root


def target(place: Path, launch: object, **env: str) -> Target:
    return Target.model_validate({"engine": "sglang", "model": str(place / "my model"), "launch": launch, "env": env})


def started(place: Path, wanted: Target, log: Path, env: dict[str, str]) -> SglangServer:
    engine = Sglang()
    argv = engine.argv(engine.find(wanted), engine.model(wanted).path, {"--context-length": 4096}, free_port())
    return engine.launch(argv, env, log, log.name)


def family(server: SglangServer) -> list[psutil.Process]:
    """Every process that serves, wherever: those that hold the port's number in their command, and what is below."""
    port = str(server.identity.port)
    own = [
        process
        for process in psutil.process_iter(["cmdline"])
        if port in (process.info["cmdline"] or []) and "--mem-fraction-static" not in process.info["cmdline"]
    ]
    return [*own, *(child for process in own for child in process.children(recursive=True))]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize(
    "launch",
    [DOCKER, {**DOCKER, "kind": "podman"}, SSH, {"kind": "srun", "options": ["--gpus=1"]}],
    ids=lambda x: x["kind"],
)
def test_a_server_behind_a_prefix_becomes_ready_answers_and_is_gone_after_stop(
    place: Path, launch: dict[str, object], tmp_path: Path
) -> None:
    wanted = target(place, launch, STANDIN_ECHO=SECRET)
    if launch["kind"] == "srun":
        wanted = wanted.model_copy(update={"executable": str(place / "env" / "bin" / "python3")})
    server = started(place, wanted, tmp_path / "server.log", {**wanted.env, VARIABLE: "run-1"})
    try:
        assert server.wait_ready(30) > 0
        assert server.next_tokens([[1, 2, 3]]) == [6]
        assert server.effective()["context_length"] == 4096
        assert f"STANDIN_ECHO is {SECRET}" in (tmp_path / "server.log").read_text()
        assert not any(SECRET in word for word in server.identity.argv)
        assert server.rss_bytes() is None
        processes = family(server)
        assert len(processes) > 1
    finally:
        server.stop()
    assert not alive(processes)
    server.stop()


def test_a_container_sees_named_variables_the_model_and_loopback_only(place: Path) -> None:
    engine, wanted = Sglang(), target(place, DOCKER, HF_TOKEN=SECRET)
    argv = engine.argv(engine.find(wanted), str(place / "my model"), {}, 4321)

    command = shlex.join(argv)
    model = place / "my model"
    assert argv[:4] == ["docker", "run", "--rm", "--name"]
    assert launch_prefix_container.name_in(argv) == argv[4]
    assert f"--gpus all --network host --mount 'type=bind,source={model},target={model},readonly'" in command
    assert f"--env {VARIABLE} --env HF_TOKEN --ipc host --entrypoint python3 lmsysorg/sglang:v0.5.9 -m" in command
    assert "--host 127.0.0.1 --port 4321" in command
    assert "0.0.0.0" not in command  # noqa: S104 - refused here
    assert SECRET not in command


def test_some_gpus_are_named_as_each_program_wants_them() -> None:
    docker = LaunchPrefix(kind="docker", image="a/b", gpus="0,2")
    build = EngineBuild(engine="sglang", argv=["x"], version="1", source="", flags=[], launch=docker)
    podman = build.model_copy(update={"launch": LaunchPrefix(kind="podman", image="a/b", gpus="0,2")})

    assert '"device=0,2"' in launch_prefix.serving(build, ["x"], "m", 1)
    assert launch_prefix.serving(podman, ["x"], "m", 1)[6:10] == [
        "--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=2",
    ]  # fmt: skip


def test_a_folder_of_links_is_mounted_with_what_they_lead_to(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "hub" / "blobs", tmp_path / "hub" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (blobs / "1").write_text("weights", encoding="utf-8")
    (snapshot / "model.safetensors").symlink_to(blobs / "1")

    argv = launch_prefix_container.serving(LaunchPrefix(kind="docker", image="a/b"), ["x"], [str(snapshot)], [])

    assert f"type=bind,source={tmp_path / 'hub'},target={tmp_path / 'hub'},readonly" in argv
    (snapshot / "other").symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match="would have to be mounted"):
        launch_prefix_container.serving(LaunchPrefix(kind="docker", image="a/b"), ["x"], [str(snapshot)], [])


def test_an_orphaned_container_is_found_by_the_recorded_command_and_ended(place: Path, tmp_path: Path) -> None:
    server = started(place, target(place, DOCKER), tmp_path / "server.log", {})
    server.wait_ready(30)
    processes = family(server)
    os.kill(server.identity.pid, signal.SIGKILL)  # the client dies, the container goes on
    psutil.wait_procs([process for process in processes if process.pid == server.identity.pid], timeout=10)

    assert alive([process for process in processes if process.pid != server.identity.pid])
    assert launch_prefix.end_orphan(server.identity)
    assert not alive([process for process in processes if process.pid != server.identity.pid])
    assert not launch_prefix.end_orphan(server.identity)
    server.stop()


def test_an_adapter_that_starts_plain_processes_only_refuses_a_prefix(tmp_path: Path) -> None:
    spec = CampaignSpec.model_validate({"target": {"engine": "rehearsal", "model": "qwen2.5-7b", "launch": DOCKER}})
    api.init(tmp_path, spec)
    with pytest.raises(UsageError, match=r"target\.launch: the rehearsal adapter"):
        api.plan(tmp_path)


def test_a_daemon_that_is_down_is_a_failed_launch_with_its_own_words(place: Path, tmp_path: Path) -> None:
    engine, wanted = Sglang(), target(place, DOCKER)
    argv = engine.argv(engine.find(wanted), str(place / "my model"), {}, free_port())
    (place / "down").touch()
    try:
        server = engine.launch(argv, {}, tmp_path / "server.log", "server.log")
        with pytest.raises(LaunchFailed) as caught:
            server.wait_ready(20)
        server.stop()
    finally:
        (place / "down").unlink()

    assert "Cannot connect to the Docker daemon" in caught.value.failure.line
    assert caught.value.failure.exit_code == 125


def test_a_container_that_is_not_ours_is_never_named_to_be_stopped(place: Path, tmp_path: Path) -> None:
    server = started(place, target(place, DOCKER), tmp_path / "server.log", {})
    server.wait_ready(30)
    server.stop()
    name = launch_prefix_container.name_in(server.identity.argv)

    named = [words[-1] for words in recorded(place / "commands.jsonl") if words[0] in {"stop", "rm"}]
    assert name in named
    assert all(launch_prefix_container.NAME.match(each) for each in named)
    for foreign in (
        ["docker", "run", "--name", "database", "x"],
        ["docker", "run", "x"],
        ["python", "--name", name],
        [],
    ):
        assert launch_prefix_container.name_in(foreign) is None


def test_words_reach_the_other_machine_as_they_are_and_no_shell_reads_them(place: Path, tmp_path: Path) -> None:
    words = ["printf", "%s\\n", "two words", "$HOME", "$(touch /tmp/never)", "a'b\"c", "; echo no"]

    said = launch_prefix.ask(LaunchPrefix(kind="ssh", host="me@gpu-box"), words, timeout_s=20)

    assert said.exit_code == 0
    assert said.output.splitlines() == words[2:]


STARTS_AND_WAITS = """
import json, sys, time
from pathlib import Path
from assay.engines.sglang import Sglang
server = Sglang().launch(json.loads(sys.argv[1]), {}, Path(sys.argv[2]), "server.log")
server.wait_ready(30)
print(server.identity.pid, flush=True)
time.sleep(600)
"""


def test_when_assay_is_killed_the_other_machines_server_ends_with_the_connection(place: Path, tmp_path: Path) -> None:
    engine, wanted, port = Sglang(), target(place, SSH), free_port()
    argv = engine.argv(engine.find(wanted), str(place / "my model"), {}, port)
    words = [sys.executable, "-c", STARTS_AND_WAITS, json.dumps(argv), str(tmp_path / "server.log")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as assay:
        assert assay.stdout is not None
        root = psutil.Process(int(assay.stdout.readline()))
        processes = [root, *root.children(recursive=True)]
        assay.kill()

    gone, left = psutil.wait_procs(processes, timeout=20)
    assert not left
    assert len(gone) > 2


def test_a_host_that_cannot_be_reached_is_a_failed_launch_with_sshs_own_words(place: Path, tmp_path: Path) -> None:
    engine, port = Sglang(), free_port()
    build = engine.find(target(place, SSH))
    unreachable = LaunchPrefix(kind="ssh", host="unreachable")
    argv = engine.argv(build.model_copy(update={"launch": unreachable}), "/m", {}, port)
    server = engine.launch(argv, {}, tmp_path / "server.log", "server.log")
    with pytest.raises(LaunchFailed) as caught:
        server.wait_ready(20)
    server.stop()

    assert "No route to host" in caught.value.failure.line
    assert caught.value.failure.exit_code == 255


def test_the_forward_is_from_loopback_to_loopback(place: Path) -> None:
    argv = launch_prefix_ssh.serving(LaunchPrefix(kind="ssh", host="gpu-box", options=["-p", "2222"]), ["x"], 4321)

    at = argv.index("-L")
    assert argv[at + 1] == "127.0.0.1:4321:127.0.0.1:4321"
    assert argv[argv.index("--") - 2 : argv.index("--") + 2] == ["-p", "2222", "--", "gpu-box"]
    assert "BatchMode=yes" in argv


@pytest.mark.parametrize(
    "launch",
    [
        {"kind": "docker"},
        {"kind": "docker", "image": "--privileged"},
        {"kind": "docker", "image": "a/b; rm -rf /"},
        {"kind": "docker", "image": "a/b", "host": "x"},
        {"kind": "docker", "image": "a/b", "gpus": "0;1"},
        {"kind": "docker", "image": "a/b", "options": ["-p", "8000:8000"]},
        {"kind": "docker", "image": "a/b", "options": ["--publish=8000:8000"]},
        {"kind": "docker", "image": "a/b", "options": ["--network=bridge"]},
        {"kind": "docker", "image": "a/b", "options": ["-p8000:8000"]},
        {"kind": "docker", "image": "a/b", "options": ["-d"]},
        {"kind": "podman", "image": "a/b", "options": ["--name", "x"]},
        {"kind": "ssh"},
        {"kind": "ssh", "host": "-oProxyCommand=touch /tmp/x"},
        {"kind": "ssh", "host": "a b"},
        {"kind": "ssh", "host": "gpu", "gpus": "all"},
        {"kind": "ssh", "host": "gpu", "options": ["-o", "ProxyCommand=touch /tmp/x"]},
        {"kind": "ssh", "host": "gpu", "options": ["-oProxyCommand=touch /tmp/x"]},
        {"kind": "ssh", "host": "gpu", "options": ["-4oProxyCommand=touch /tmp/x"]},
        {"kind": "ssh", "host": "gpu", "options": ["-o", ' "ProxyCommand" touch /tmp/x']},
        {"kind": "ssh", "host": "gpu", "options": ["-o", "LocalForward=0.0.0.0:80 localhost:80"]},
        {"kind": "ssh", "host": "gpu", "options": ["-oGatewayPorts=yes"]},
        {"kind": "ssh", "host": "gpu", "options": ["-6N"]},
        {"kind": "ssh", "host": "gpu", "options": ["-R", "0.0.0.0:80:localhost:80"]},
        {"kind": "ssh", "host": "gpu", "options": ["-f"]},
        {"kind": "srun", "options": ["--pty"]},
        {"kind": "srun", "host": "gpu"},
        {"kind": "srun", "options": ["a\nb"]},
    ],
)
def test_a_prefix_that_is_incomplete_or_would_undo_what_assay_sets_is_refused(launch: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LaunchPrefix.model_validate(launch)


@pytest.mark.parametrize(
    "launch",
    [
        {"kind": "docker", "image": "nvcr.io/nvidia/tensorrt-llm/release:1.2.0", "gpus": "all"},
        {"kind": "docker", "image": "lmsysorg/sglang@sha256:0123abcd", "options": ["--ipc", "host", "--shm-size=32g"]},
        {"kind": "docker", "image": "a/b", "options": ["-v", "/data:/data:ro", "--ulimit", "memlock=-1"]},
        {"kind": "ssh", "host": "user@10.0.0.7", "options": ["-p", "2222", "-i", "/home/me/.ssh/key", "-J", "jump"]},
        {"kind": "ssh", "host": "gpu", "options": ["-oStrictHostKeyChecking=no", "-Jjump-host", "-Fmy_config"]},
        {"kind": "docker", "image": "a/b", "options": ["-eNCCL_P2P_LEVEL=SYS"]},
        {"kind": "srun", "options": ["--gpus=8", "--cpus-per-task=32", "--overlap"]},
    ],
)
def test_what_people_need_is_taken(launch: dict[str, object]) -> None:
    assert LaunchPrefix.model_validate(launch).options == launch.get("options", [])


def test_a_prefix_is_written_into_assay_toml_and_read_back(tmp_path: Path) -> None:
    spec = CampaignSpec.model_validate({"target": {"engine": "sglang", "model": "/m", "launch": DOCKER}})

    assert read_spec(api.init(tmp_path, spec)) == spec


def test_a_wrong_key_of_a_prefix_is_named_with_the_one_that_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "assay.toml"
    path.write_text('[target.launch]\nkind = "docker"\nimages = "a/b"\n', encoding="utf-8")

    with pytest.raises(UsageError, match=r"target\.launch\.images: unknown key; did you mean 'image'"):
        read_spec(path)
