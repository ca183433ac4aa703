"""A command is shown as a person would type it, not as Assay starts it."""

from __future__ import annotations

import shlex

from assay.engines.launch_prefix import serving
from assay.engines.launch_prefix_shown import typed
from assay.process.guardian import VARIABLE
from assay.records.launch import LaunchPrefix
from assay.records.machine import EngineBuild

WORDS = ["vllm", "serve", "/models/my model", "--host", "127.0.0.1", "--port", "8000"]


def command(launch: dict[str, object] | None, variables: tuple[str, ...] = ()) -> list[str]:
    prefix = LaunchPrefix.model_validate(launch) if launch else None
    build = EngineBuild(
        engine="vllm", argv=["vllm"], version="1", source="", flags=[], launch=prefix, variables=[*variables, VARIABLE]
    )
    return serving(build, WORDS, "/models/my model", 8000)


def test_behind_ssh_the_engines_own_command_stands_with_its_variables_over_there() -> None:
    argv = command({"kind": "ssh", "host": "me@box", "options": ["-p", "2222"]})

    shown = typed(argv, {"VLLM_X": "1 2", "HF_TOKEN": "[redacted]"})

    forward = ["-L", "127.0.0.1:8000:127.0.0.1:8000"]
    assert shown.argv[:7] == ["ssh", *forward, "-p", "2222", "me@box", "env"]
    assert shlex.split(" ".join(shown.argv[7:])) == ["VLLM_X=1 2", "HF_TOKEN=[redacted]", *WORDS]
    assert shown.env == {}
    assert "killpg" in " ".join(argv)
    assert "killpg" not in " ".join(shown.argv)


def test_behind_ssh_without_variables_nothing_stands_before_the_command() -> None:
    shown = typed(command({"kind": "ssh", "host": "box"}), {})
    assert shlex.split(" ".join(shown.argv[4:])) == WORDS
    assert shown.argv[3] == "box"


def test_a_container_is_shown_without_assays_name_and_marker() -> None:
    argv = command({"kind": "docker", "image": "vllm/vllm-openai:v1"}, ("VLLM_X",))

    shown = typed(argv, {"VLLM_X": "1"})

    assert "--name" in argv
    assert "--name" not in shown.argv
    assert VARIABLE not in shown.argv
    assert shlex.join(shown.argv[:3]) == "docker run --rm"
    assert "--env VLLM_X" in shlex.join(shown.argv)
    assert shown.env == {"VLLM_X": "1"}


def test_a_plain_command_stays_as_it_is() -> None:
    assert typed(command(None), {"A": "b"}).argv == WORDS
    assert typed(command(None), {"A": "b"}).env == {"A": "b"}
