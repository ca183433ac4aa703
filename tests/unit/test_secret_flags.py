"""Secrets in flags would reach the record, or the server as a mask: they are refused with what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.api.init import init, init_from_command
from assay.api.plan_elsewhere import plan_elsewhere
from assay.api.plan_elsewhere_target import Question
from assay.api.secret_flags import refuse_secret_flags, refuse_secret_target, refuse_secrets_of
from assay.errors import UsageError
from assay.records.base import Flags
from assay.records.hypothesis import Optimization
from assay.records.spec import CampaignSpec, Target

SECRET = "hf_made0up0secret0value"  # noqa: S105 - made up


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        ({"--hf-token": SECRET}, "export HF_TOKEN=..."),
        ({"--api-key": "word"}, "need no API key"),
        ({"--threads": 2, "--ssl-keyfile-password": "word"}, "export the variable"),
    ],
)
def test_a_flag_with_a_secret_is_refused_with_the_variable_to_use(flags: Flags, hint: str) -> None:
    with pytest.raises(UsageError, match=r"target\.flags: --.* holds a secret") as caught:
        refuse_secret_flags(flags, "target.flags")

    assert hint in str(caught.value.hint)
    assert SECRET not in f"{caught.value.message}{caught.value.hint}"


def test_flags_that_only_speak_of_tokens_and_keys_pass() -> None:
    refuse_secret_flags({"--max-num-batched-tokens": 8192, "--cache-type-k": "q8_0", "--special-tokens": True}, "flags")


def test_a_variable_with_a_secret_in_an_entry_is_refused() -> None:
    fields = {"id": "x", "title": "t", "tier": 1, "numerics": "exact", "predicted": (0.0, 0.1), "mechanism": "m"}
    entry = Optimization.model_validate({**fields, "engine": "vllm", "env": {"HF_TOKEN": SECRET}})

    with pytest.raises(UsageError, match="x: env: HF_TOKEN holds a secret"):
        refuse_secrets_of([entry])


SERVE = "vllm serve Qwen/Qwen3-30B-A3B"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"{SERVE} --hf-token {SECRET}", "target.flags: --hf-token"),
        (f"{SERVE} --hf-tok word", "target.flags: --hf-token"),
        (f"{SERVE} --ssl-keyfile-password word", "target.flags: --ssl-keyfile-password"),
        (f"{SERVE} --speculative-config.api_key word", "target.flags: --speculative-config.api_key"),
        (f"""{SERVE} --kv-transfer-config '{{"password": "word"}}'""", "target.flags: --kv-transfer-config"),
        (f"""{SERVE} --kv-transfer-config '{{"a": {{"password": 1234567}}}}'""", "target.flags: --kv-transfer-config"),
        ("vllm serve s3://user:word@host/model", "target.model"),
        (f"HTTP_PROXY=http://user:word@host {SERVE}", "target.env: HTTP_PROXY"),
        ("llama-server -m x.gguf -hft word", "target.flags: --hf-token"),
        ("llama-server -m s3://user:word@host/x.gguf", "target.model"),
    ],
)
def test_no_secret_of_a_launch_command_is_written_into_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no engine here

    with pytest.raises(UsageError, match="holds a secret") as caught:
        init_from_command(tmp_path / "new", command)

    assert caught.value.message.replace("-hft", "--hf-token").startswith(words)
    assert not (tmp_path / "new").exists()


def test_a_variable_with_a_secret_is_left_to_the_shell_that_runs_assay(tmp_path: Path) -> None:
    for name, command in {"python": SERVE, "llama": "llama-server -m x.gguf"}.items():
        written = init_from_command(tmp_path / name, f"HF_TOKEN={SECRET} {command}").read_text()
        assert SECRET not in written
        assert "HF_TOKEN" not in written


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"engine": "openai", "url": "http://127.0.0.1:9", "api_key_env": SECRET}, "target.api_key_env"),
        (
            {"engine": "vllm", "launch": {"kind": "docker", "image": "v", "options": ["-e", "HF_TOKEN=word"]}},
            "target.launch",
        ),
        ({"model": "https://user:word@host/x.gguf"}, "target.model"),
    ],
)
def test_every_part_of_a_target_is_looked_at(target: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=f"{words} holds a secret") as caught:
        refuse_secret_target(Target.model_validate(target))

    assert SECRET not in f"{caught.value.message}{caught.value.hint}"


def test_an_address_with_a_password_is_planned_neither(tmp_path: Path) -> None:
    init(tmp_path, CampaignSpec(target=Target(engine="vllm", model="org/model")))
    question = tmp_path / "assay.toml"
    question.write_text(question.read_text().replace('"org/model"', '"s3://user:word@host/model"'))

    with pytest.raises(UsageError, match=r"target\.model holds a secret"):
        plan_elsewhere(tmp_path, Question(on="H200", model="qwen3-0.6b"))
