"""`assay compare` on servers that are really launched, and on servers that are there already."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from assay import api
from assay.errors import EngineError, UsageError
from assay.records.bench import Arrival, Lengths, Synthetic
from assay.records.compare import CompareQuestion
from tests.contract.null import Silent, null_server

NULL = f"{sys.executable} -m assay.load.null_server --port 1 --first-token-s 0.02 --tokens-per-s"


def question(**changes) -> CompareQuestion:
    plain = {
        "workload": Synthetic(input=Lengths(kind="fixed", mean=16), output=Lengths(kind="fixed", mean=10)),
        "arrival": Arrival(concurrency=4),
        "window_s": 0.5,
        "windows": 2,
        "warmup_max_s": 10.0,
        "max_rounds": 4,
    }
    return CompareQuestion(**{**plain, **changes})


def test_a_server_of_twice_the_pace_is_better_and_the_sentence_says_by_how_much(tmp_path: Path):
    with null_server(tokens_per_s=50.0) as slow, null_server(tokens_per_s=100.0) as quick:
        found = api.compare([slow.url, quick.url], question(labels=["slow", "quick"]), tmp_path, Silent())
    assert found.verdicts == {"quick": "better"}
    assert found.sentences["quick"].startswith("quick is better than slow: +")
    _, low, high = found.percent("quick")
    assert low > 0
    assert high < 200
    assert (tmp_path / "comparison.json").is_file()


def test_a_lower_latency_is_better_and_its_percent_is_negative(tmp_path: Path):
    with null_server(first_token_s=0.1) as slow, null_server(first_token_s=0.05) as quick:
        found = api.compare([slow.url, quick.url], question(metric="ttft_p50_s"), tmp_path, Silent())
    assert found.verdicts == {"B": "better"}
    assert found.percent("B")[0] == pytest.approx(-50, abs=5)


def test_launch_commands_are_started_on_loopback_for_every_run_and_stopped_after_it(tmp_path: Path):
    progress = Silent()
    found = api.compare([f"{NULL} 50", f"{NULL} 25"], question(max_rounds=3), tmp_path, progress)
    assert found.verdicts == {"B": "worse"}
    assert all(side.launched for side in found.sides)
    assert len(found.values["A"]) == len(found.values["B"]) + 1
    logs = sorted(tmp_path.glob("*/server.log"))
    assert len(logs) == len(found.values["A"]) + len(found.values["B"])


def test_a_command_that_does_not_start_is_named_with_its_last_words(tmp_path: Path):
    broken = f"{sys.executable} -c 'raise SystemExit(\"no such model\")' --port 1"
    with null_server() as null, pytest.raises(EngineError, match="no such model"):
        api.compare([null.url, broken], question(), tmp_path, Silent())


def test_a_command_whose_port_is_unclear_is_refused_with_what_to_write(tmp_path: Path):
    with pytest.raises(UsageError) as refused:
        api.compare(["my-server --listen 80", "my-server"], question(), tmp_path, Silent())
    assert "{port}" in (refused.value.hint or "")
