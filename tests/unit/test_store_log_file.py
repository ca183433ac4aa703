"""A server's log is masked before it becomes part of the record."""

from __future__ import annotations

import json
from pathlib import Path

from assay.api.explain import explain
from assay.store.files import CampaignFolder
from assay.store.log_file import mask_log
from assay.store.redact import secret_values

KEY = "Zq7-not-for-you"
HUB = "hf_abcdefghijklmnopqrstuvwxyz"
LOG = f"""INFO 01-01 [utils.py:233] non-default args: {{'model': 'x', 'api_key': ['{KEY}'], 'hf_token': '{HUB}'}}
server_args=ServerArgs(model_path='/m', api_key='{KEY}', max_total_tokens=4096, tokenizer_path='/m')
print_info: EOS token        = 2 '</s>'
X-Api-Key: {KEY}9
RuntimeError: the key {KEY} is refused by the hub
"""


def test_what_an_engine_says_of_its_keys_is_masked_and_the_rest_stays(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(LOG)

    assert mask_log(log, secret_values({"env": {"MY_API_KEY": KEY}}))

    told = log.read_text()
    assert KEY not in told
    assert HUB not in told
    for kept in ("'model': 'x'", "max_total_tokens=4096", "tokenizer_path='/m'", "EOS token        = 2", "by the hub"):
        assert kept in told


def test_a_log_without_secrets_stays_as_it_is_byte_for_byte(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    content = b"srv  init: model loaded\r\n\xff\xfe not text\n" + b"x" * 3_000_000
    log.write_bytes(content)
    before = log.stat()

    assert not mask_log(log, {KEY})

    assert log.read_bytes() == content
    assert log.stat().st_ino == before.st_ino


def test_a_log_that_is_no_text_is_masked_all_the_same(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"\xff\xfe " + KEY.encode() + b" \xff\n")

    assert mask_log(log, {KEY})

    assert log.read_bytes() == b"\xff\xfe [redacted] \xff\n"


def test_a_runs_log_is_masked_before_it_is_hashed_with_the_values_of_its_command(tmp_path: Path) -> None:
    files = CampaignFolder(tmp_path)
    folder = files.folder("r0001")
    files.write_json("r0001", "command.json", {"argv": ["serve", "--api-key", KEY], "env": {"HF_TOKEN": HUB}})
    (folder / "server.log").write_text(LOG)

    hashes = files.hashes("r0001")

    assert set(hashes) == {"command.json", "server.log"}
    assert hashes == files.hashes("r0001")
    assert not [path for path in folder.iterdir() if KEY in path.read_text() or HUB in path.read_text()]


def test_a_line_quoted_from_the_log_goes_into_the_record_without_the_key(tmp_path: Path) -> None:
    files = CampaignFolder(tmp_path)
    files.write_json("r0001", "command.json", {"argv": ["serve", f"--api-key={KEY}"], "env": {}})
    outcome = {"failure": {"line": f"RuntimeError: the key {KEY} is refused", "implies": [{"value": KEY}]}}

    told = files.masked("r0001", outcome)

    assert KEY not in json.dumps(told)
    assert files.masked("r0002", outcome) == outcome


def test_an_explanation_is_made_to_be_passed_on(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"{LOG}vllm serve: error: unrecognized arguments: --api-keyy {KEY}\n")

    told = explain([log]).model_dump_json()

    assert KEY not in told
    assert "--api-keyy [redacted]" in told


def test_values_are_known_by_their_names_their_flags_and_their_shapes() -> None:
    given = {
        "env": {"HF_TOKEN": HUB, "PATH": "/bin"},
        "argv": ["--api-key", KEY, "--hf-token=Zq8-made-up", "--port", "1"],
    }

    assert secret_values(given) == {HUB, KEY, "Zq8-made-up"}


def test_a_short_value_is_masked_by_its_name_and_not_sought_everywhere() -> None:
    assert secret_values({"MY_KEY": "1"}) == frozenset()


def test_the_targets_secrets_are_masked_in_a_log_that_an_earlier_assay_left_open(tmp_path: Path) -> None:
    log = tmp_path / "runs" / "r0001" / "server.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"refused: {KEY}\n")

    CampaignFolder(tmp_path, secret_values({"env": {"MY_API_KEY": KEY}})).hashes("r0001")

    assert KEY not in log.read_text()
