"""`assay compare` on servers that are really launched, and on servers that are there already."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from assay import api
from assay.errors import EngineError, UsageError
from assay.ports_bench import Live
from assay.records.bench import Arrival, Lengths, Synthetic
from assay.records.compare import CompareQuestion
from tests.contract.null import Silent, null_server

NULL = f"{sys.executable} -m assay.load.null_server --port 1 --first-token-s 0.02 --tokens-per-s"


def question(**changes) -> CompareQuestion:
    plain = {
        "workload": Synthetic(input=Lengths(kind="fixed", mean=16), output=Lengths(kind="fixed", mean=10)),
        "arrival": Arrival(concurrency=4),
        "window_s": 0.3,
        "windows": 2,
        "warmup_min_s": 0.2,
        "warmup_max_s": 10.0,
        "max_rounds": 3,
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
    found = api.compare([f"{NULL} 50", f"{NULL} 25"], question(max_foreign_cores=2.0), tmp_path, progress)
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


class Stopped(Silent):
    """Presses Ctrl-C in the load of one run."""

    def __init__(self, in_run: int) -> None:
        super().__init__()
        self._left = in_run

    def phase(self, text: str, done_s: float, total_s: float | None) -> None:
        self._left -= ", run " in text

    def tick(self, live: Live) -> None:
        if self._left <= 0:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupted_comparison_is_carried_on_by_the_same_command_and_loses_no_whole_run(tmp_path: Path):
    asked = question(min_rounds=1, max_rounds=1, window_s=0.4, windows=1)
    stopped, later = Stopped(in_run=2), Silent()
    with null_server() as one, null_server() as other:
        sides = [one.url, other.url]
        with pytest.raises(KeyboardInterrupt):
            api.compare(sides, asked, tmp_path, stopped)
        whole = {path: path.read_bytes() for path in tmp_path.glob("*/result.json")}
        found = api.compare(sides, asked, tmp_path, later)

    assert len(whole) == 1
    assert any("1 whole run is kept" in said for said in stopped.results)
    assert any("carried on: 1 whole run is in" in said for said in later.results)
    assert all(path.read_bytes() == content for path, content in whole.items())
    # After the pause the reference comes first: a run is held against neighbours on its side of it. Run 2 was cut.
    assert sorted(path.parent.name for path in tmp_path.glob("*/result.json"))[:3] == ["001-A", "003-A", "004-B"]
    assert len(found.values["A"]) == 3
    assert len(found.values["B"]) == 1


def test_a_comparison_stopped_before_its_first_run_is_whole_leaves_the_folder_to_any_other(tmp_path: Path):
    with null_server() as null, pytest.raises(KeyboardInterrupt):
        api.compare([null.url, null.url], question(), tmp_path, Stopped(in_run=1))
    with null_server() as null, pytest.raises(KeyboardInterrupt):
        api.compare([null.url, null.url], question(min_effect=0.1), tmp_path, Stopped(in_run=1))
