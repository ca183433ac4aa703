"""Secrets inside of the JSON of a launch command: neither the flags that are echoed nor a finding repeats one."""

from __future__ import annotations

import pytest

from assay.api.doctor import Question, doctor
from assay.api.doctor_inside import masked_inside
from assay.store.redact import MASK

SECRET = "abcd1234hidden"  # noqa: S105 - made up


def said(*words: str) -> str:
    command = ["vllm", "serve", "M", *words]
    return doctor(Question(words=command, engine_version="0.33.0", ask_installed=False)).model_dump_json()


@pytest.mark.parametrize(
    "words",
    [
        ["--kv-transfer-config", f'{{"kv_connector_extra_config":{{"token":"{SECRET}"}}}}'],
        ["--kv-transfer-config", f'{{"my-secret-key":{{"a":["{SECRET}"]}}}}'],
        ["--kv-transfer-config", f'{{"kv_connector":"{{\\"token\\":\\"{SECRET}\\"}}"}}'],
        ["--kv-transfer-config", f'{{"token":"{SECRET}","token":null}}'],
        ["--kv-transfer-config", f'{{"token":"{SECRET}"'],
        ["--kv-transfer-config", f"{{token:{SECRET},a:1}}"],
        ["--kv-transfer-config.kv_connector_extra_config.my-secret-key.a", SECRET],
        ["--speculative-config", f'{{"method":"Bearer {SECRET}"}}'],
        ["--speculative-config", f'{{"num_speculative_tokens":"{SECRET}","clientSecret":"{SECRET}"}}'],
        ["--limit-mm-per-prompt", f"token={SECRET}"],
        ["--kv-transfer-config", f'{{"a.token.b":"{SECRET}"}}'],
    ],
)
def test_a_secret_inside_of_json_is_neither_echoed_nor_quoted(words: list[str]) -> None:
    assert SECRET not in said(*words)


def test_a_number_under_the_name_of_a_secret_is_not_echoed() -> None:
    assert "12345678901" not in said("--watermark-config", '{"key":12345678901}')


def test_credentials_that_are_the_whole_of_a_value_are_masked_without_a_digit_in_them() -> None:
    assert "abcdefghijklmnop" not in said("--speculative-config", '{"method":"Bearer abcdefghijklmnop"}')


@pytest.mark.parametrize(
    "text",
    [
        '{"method": "ngram", "num_speculative_tokens": 3}',
        "{level: 3}",
        "image=2,video=1",
        "tokenizer.ggml.add_bos_token=bool:false",
        '{"token": null}',
        "",
    ],
)
def test_what_holds_no_secret_stays_as_it_was_written(text: str) -> None:
    taken: set[str] = set()

    assert (masked_inside(text, taken), taken) == (text, set())


def test_json_that_is_nested_too_deeply_is_not_shown() -> None:
    text = '{"a":' * 5000 + f'{{"token":"{SECRET}"}}' + "}" * 5000
    taken: set[str] = set()

    assert (masked_inside(text, taken), taken) == (MASK, {SECRET})
    assert "recursion" not in said("--kv-transfer-config", text)
