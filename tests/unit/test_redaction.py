"""Secrets are masked; everything that Assay itself writes down stays as it is."""

import importlib
import inspect
import pkgutil
import random
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

import assay.records
from assay.records.spec import CampaignSpec, Target
from assay.store.redact import MASK, is_secret_name, redact

SECRET = "Zq7-not-for-you"  # noqa: S105 - made up


@pytest.mark.parametrize(
    "name",
    [
        *(
            "HF_TOKEN",
            "HUGGING_FACE_HUB_TOKEN",
            "OPENAI_API_KEY",
            "LLAMA_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_PAT",
        ),
        *(
            "AWS_ACCESS_KEY_ID",
            "DB_PASSWORD",
            "TOKEN",
            "KEY",
            "GOOGLE_CREDENTIALS",
            "APIKEY",
            "API_KEYS",
            "ASSAY_RUN_TOKEN",
        ),
        *("--api-key", "--hf-token", "-hft", "--token", "--ssl-key-password", "--auth_token"),
        *("Authorization", "authorization", "Proxy-Authorization", "X-Api-Key", "Cookie", "Set-Cookie"),
        *(
            "hf_token",
            "api_key",
            "apiKey",
            "password",
            "clientSecret",
            "server_args.api_key",
            "db_password",
            "credentials",
        ),
    ],
)
def test_what_goes_by_a_secret_name_is_masked(name):
    assert redact({name: SECRET}) == {name: MASK}
    assert redact({"deep": [{name: [SECRET, f"{SECRET}2"]}]}) == {"deep": [{name: [MASK, MASK]}]}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "tokens",
            "output_tokens",
            "input_tokens",
            "cached_tokens",
            "answer_tokens",
            "output_tokens_per_s",
            "key",
            "keys",
        ),
        *("n_keep", "eos_token", "bos_token", "token", "default_generation_settings.n_ctx", "tokenizer", "num_tokens"),
        *(
            "--cache-type-k",
            "--keep",
            "--max-tokens",
            "--tokenizer",
            "--api-key-file",
            "--ssl-key-file",
            "--keep-alive",
        ),
        *("TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS", "MONKEY", "KEYBOARD", "PATH", "XAUTHORITY", "Content-Type"),
        *("spec_hash", "secretary", "keystone", "monkey", "author", "basic"),
    ],
)
def test_what_only_sounds_secret_stays(name):
    value = {name: "4096 of something", "list": [{name: ["a", 1]}]}
    assert redact(value) == value


def test_counts_of_tokens_in_the_environment_stay_and_tokens_do_not():
    env = {"MAX_TOKENS": "4096", "MAX_KEYS": 12, "HF_TOKENS": SECRET, "PIN_PASSWORD": 4096, "EMPTY_TOKEN": ""}
    assert redact(env) == {**env, "HF_TOKENS": MASK, "PIN_PASSWORD": MASK}


def test_a_switch_with_a_secret_name_stays_and_tables_below_one_are_looked_into():
    value = {"--api-key": True, "api_key": None, "credentials": {"user": "me", "password": SECRET}}
    assert redact(value) == {"--api-key": True, "api_key": None, "credentials": {"user": "me", "password": MASK}}


@pytest.mark.parametrize(
    ("argv", "masked"),
    [
        (["s", "--api-key", SECRET, "-c", "1"], ["s", "--api-key", MASK, "-c", "1"]),
        (["s", "-hft", SECRET], ["s", "-hft", MASK]),
        (["s", f"--api-key={SECRET}"], ["s", f"--api-key={MASK}"]),
        (["docker", "-e", f"HF_TOKEN={SECRET}", "x"], ["docker", "-e", f"HF_TOKEN={MASK}", "x"]),
        (["s", "--api-key", "--port", "80"], ["s", "--api-key", "--port", "80"]),
        (["-hft", "--hf-token"], ["-hft", "--hf-token"]),
        (["s", "--ctx-size", "4096", "--keep", "2"], ["s", "--ctx-size", "4096", "--keep", "2"]),
        (["s", "--api-key"], ["s", "--api-key"]),
    ],
)
def test_the_value_after_a_secret_flag_is_masked(argv, masked):
    assert redact(argv) == masked
    assert redact(tuple(argv)) == tuple(masked)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abc123def", f"Authorization: Bearer {MASK}"),
        ("-H 'authorization: bearer ABCDEFGHIJKLMNOPQRSTUVWX'", f"-H 'authorization: bearer {MASK}'"),
        ("token hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345 used", f"token {MASK} used"),
        ("hf_abc123", MASK),
        ("key sk-proj-4Tq9_ab-CD", f"key {MASK}"),
        ("ghp_0123456789abcdefABCD and AKIA0123456789ABCDEF", f"{MASK} and {MASK}"),
        ("postgresql://me:p4ss:w@rd@db.example:5432/assay", f"postgresql://me:{MASK}@db.example:5432/assay"),
        ("https://tok3n@github.com/x", f"https://{MASK}@github.com/x"),
        ("GET /v1?api_key=abc&n=2 HTTP/1.1", f"GET /v1?api_key={MASK}&n=2 HTTP/1.1"),
        ("llama-server --api-key hunter2 --port 80", f"llama-server --api-key {MASK} --port 80"),
        ("export OPENAI_API_KEY=hunter2; serve", f"export OPENAI_API_KEY={MASK} serve"),
    ],
)
def test_secrets_inside_a_text_are_masked(text, masked):
    assert redact(text) == masked
    assert redact({"line": [text]}) == {"line": [masked]}


@pytest.mark.parametrize(
    "text",
    [
        "--api-key KEY  API key to use for authentication (default: none) (env: LLAMA_API_KEY)",
        "-hft, --hf-token TOKEN   Hugging Face access token (default: value from HF_TOKEN environment variable)",
        "set --api-key to protect the server; basic authentication and bearer tokens are described elsewhere",
        "HuggingFaceTB/SmolLM2-135M-Instruct, hf_transfer, sk-learn, risk-1234567, task-20260101",
        "http://127.0.0.1:8080/v1/completions?stream=true",
        "git clone ssh://git@example.org/x.git, mail me@example.org at 12:30",
        "n_tokens = 512, cache-type-k=q8_0, keep=3, MAX_TOKENS=4096, tokens=7, key: value",
        "0" * 64,
        "3f8a" * 16,
    ],
)
def test_harmless_text_stays(text):
    assert redact(text) == text


def test_masking_twice_is_masking_once():
    value = {"HF_TOKEN": SECRET, "argv": ["--api-key", SECRET, f"--api-key={SECRET}"], "url": f"https://u:{SECRET}@h/"}
    assert redact(redact(value)) == redact(value)
    assert SECRET not in repr(redact(value))


def test_a_long_text_is_read_in_one_pass():
    """A quadratic pattern would need minutes here, and meet the suite's timeout."""
    for unit in ("x", "a-", "-", "x ", "://", "--a=b ", "bearer ", "hf_", "a:b@"):
        text = unit * (800_000 // len(unit))
        assert isinstance(redact(text), str)


def record_types() -> list[type[BaseModel]]:
    modules = [
        importlib.import_module(f"assay.records.{found.name}") for found in pkgutil.iter_modules(assay.records.__path__)
    ]
    classes = {cls for module in modules for _, cls in inspect.getmembers(module, inspect.isclass)}
    return sorted((cls for cls in classes if issubclass(cls, BaseModel)), key=lambda cls: cls.__name__)


def test_no_field_of_a_record_has_a_secret_name():
    names = {name for cls in record_types() for name in cls.model_fields}
    assert len(names) > 100
    assert not [name for name in names if is_secret_name(name)]


WORDS = [
    *("--ctx-size", "--cache-type-k", "--keep", "-fa", "q8_0", "tokens", "output_tokens", "eos_token", "</s>", "key"),
    *(
        "n_keep",
        "4096",
        "0.05",
        "embedded",
        "runs/r0001",
        "llama-server",
        "http://127.0.0.1:8080",
        "unknown",
        "argument:",
    ),
    *("default", "value", "tokens/s", "prompt_tokens=12", "--verbose"),
]


def dumped(annotation: Any, draw: random.Random) -> Any:
    """JSON of the shape that a field's annotation describes (its constraints do not matter to redaction)."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if annotation is str or annotation is Any:
        return " ".join(draw.choices(WORDS, k=draw.randint(0, 5)))
    if annotation in {int, float, bool}:
        return annotation(draw.randint(0, 9000))
    if annotation is type(None):
        return None
    if origin is Literal:
        return draw.choice(inside)
    if origin is list:
        return [dumped(inside[0], draw) for _ in range(draw.randint(0, 3))]
    if origin is dict:
        return {name: dumped(inside[1], draw) for name in draw.sample(WORDS, 3)}
    if origin is tuple:
        return [dumped(item, draw) for item in inside]
    if inside:
        return dumped(draw.choice(inside), draw)
    if issubclass(annotation, Enum):
        return draw.choice(list(annotation)).value
    return {name: dumped(field.annotation, draw) for name, field in annotation.model_fields.items()}


@pytest.mark.parametrize("record_type", record_types(), ids=lambda cls: cls.__name__)
def test_records_stay_as_they_are(record_type):
    draw = random.Random(record_type.__name__)
    for _ in range(30):
        payload = dumped(record_type, draw)
        assert redact(payload) == payload


def test_a_secret_in_the_target_is_all_that_a_spec_loses():
    spec = CampaignSpec(target=Target(flags={"--api-key": SECRET, "--keep": 3}, env={"HF_TOKEN": SECRET, "A": "b"}))
    masked = CampaignSpec.model_validate(redact(spec.model_dump(mode="json")))
    assert masked.target.flags == {"--api-key": MASK, "--keep": 3}
    assert masked.target.env == {"HF_TOKEN": MASK, "A": "b"}
    assert masked.model_copy(update={"target": spec.target}) == spec


@pytest.mark.parametrize(
    "text",
    [
        '{"extra": {"hf_token": "zz0secret"}}',
        "{'extra': {'api_key': 'zz0secret'}}",
        '{"one": {"two": {"api_key": "zz0secret", "other": 1}}}',
        '{"list": [{"password": "zz0secret"}]}',
        '{"plain": "word", "deep": [["x", {"api_key": "zz0secret"}]]}',
    ],
)
def test_a_secret_that_is_the_first_within_another_object_is_masked(text: str):
    assert "zz0secret" not in redact(text)
    assert redact(redact(text)) == redact(text)
