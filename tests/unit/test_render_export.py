"""The exported command: runs as it is, in every language, and never holds a secret."""

from __future__ import annotations

import json
import shlex

import pytest
import yaml

from assay.render.export import export

KINDS = ["shell", "compose", "kubernetes", "json"]
ARGV = ["llama-server", "--model", "/m/it's a $model.gguf", "--host", "127.0.0.1", "--port", "8080", "--ctx-size", "1"]
SECRET = "hunter2hunter2"  # noqa: S105 - the one that must not come out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("more", "env"),
    [
        (["--api-key", SECRET], {}),
        ([f"--api-key={SECRET}"], {}),
        (["--hf-token", SECRET], {}),
        (["--note", f"hf_{SECRET}"], {}),
        ([], {"HF_TOKEN": SECRET}),
        ([], {"AWS_SECRET": SECRET, "OTHER": f"sk-{SECRET}"}),
    ],
)
def test_no_language_prints_a_secret(kind: str, more: list[str], env: dict[str, str]) -> None:
    text = export(kind, [*ARGV, *more], env)
    assert SECRET not in text
    assert any(name in text for name in ("API_KEY", "HF_TOKEN", "NOTE", "AWS_SECRET"))


@pytest.mark.parametrize("kind", KINDS)
def test_what_only_sounds_like_a_secret_stays(kind: str) -> None:
    words = ["--cache-type-k", "q8_0", "--max-tokens", "77123", "--tokenizer", "unigram"]
    text = export(kind, [*ARGV, *words], {"LLAMA_THREADS": "3"})
    assert all(word in text for word in ("q8_0", "77123", "unigram", "LLAMA_THREADS"))


def test_the_shell_asks_for_a_secret_and_otherwise_says_the_command_word_for_word() -> None:
    text = export("shell", [*ARGV, "--api-key", SECRET], {"N": "a b"})
    words = shlex.split(text.replace("\\\n", ""))
    assert words == ["N=a b", *ARGV, "--api-key", "${API_KEY:?set it first}"]


def test_every_flag_of_the_shell_command_has_a_line_of_its_own() -> None:
    lines = export("shell", ARGV, {}).splitlines()
    assert [line.split()[0] for line in lines] == ["llama-server", "--model", "--host", "--port", "--ctx-size"]
    assert all(line.endswith(" \\") for line in lines[:-1])


def test_a_dollar_in_a_path_is_not_a_variable_to_compose() -> None:
    service = yaml.safe_load(export("compose", ARGV, {"A": "$B"}))["services"]["llama"]
    assert service["command"][1] == "/models/it's a $$model.gguf"
    assert service["environment"]["A"] == "$$B"


def test_a_container_listens_on_its_own_address_and_is_published_on_loopback_only() -> None:
    text = export("compose", ARGV, {})
    service = yaml.safe_load(text)["services"]["llama"]
    assert service["command"][service["command"].index("--host") + 1] == "0.0.0.0"  # noqa: S104 - inside the container
    assert service["ports"] == ["127.0.0.1:8080:8080"]
    assert "proxy with authentication" in text


def test_kubernetes_takes_secrets_from_a_secret_and_can_be_reached_inside_only() -> None:
    deployment, service = yaml.safe_load_all(export("kubernetes", [*ARGV, "--api-key", SECRET], {"HF_TOKEN": SECRET}))
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][-2:] == ["--api-key", "$(API_KEY)"]
    assert {e["name"]: e["valueFrom"]["secretKeyRef"]["name"] for e in container["env"]} == {
        "HF_TOKEN": "llama",
        "API_KEY": "llama",
    }
    assert service["spec"]["type"] == "ClusterIP"


def test_the_program_and_its_interpreter_are_left_out_of_a_container() -> None:
    argv = ["/usr/bin/python3", "-m", "assay.engines.embedded_server", "--model", "/m/a.gguf", "--ctx-size", "9"]
    service = yaml.safe_load(export("compose", argv, {}))["services"]["llama"]
    assert service["command"] == ["--model", "/models/a.gguf", "--ctx-size", "9"]


def test_a_command_without_a_model_file_can_be_exported() -> None:
    service = yaml.safe_load(export("compose", ["llama-server", "--hf-repo", "a/b"], {}))["services"]["llama"]
    assert service["command"] == ["--hf-repo", "a/b"]
    assert "volumes" not in service


@pytest.mark.parametrize("kind", ["shell", "compose", "kubernetes"])
def test_a_note_that_quotes_a_server_stays_in_its_comment(kind: str) -> None:
    noted = export(kind, ARGV, {}, not_shown_stable="3 failed, the first: http-500\r\nrm -rf /\u2028x: \x1b[2J")

    assert noted.splitlines()[1:] == export(kind, ARGV, {}).splitlines()
    assert noted.startswith(
        "# NOT SHOWN TO BE STABLE: 3 failed, the first: http-500 rm -rf / x: \N{REPLACEMENT CHARACTER}[2J\n"
    )


def test_json_says_that_the_server_listens_on_loopback() -> None:
    found = json.loads(export("json", ARGV, {"A": "1"}))
    assert (found["argv"], found["env"]) == (ARGV, {"A": "1"})
    assert "loopback" in found["note"]
