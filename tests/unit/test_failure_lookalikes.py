"""Logs in the shapes of public reports, written before anybody looked whether a rule matches them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from assay.failures import Log, explain
from assay.records.failure import Cause, Explanation, Stage

FILES = sorted(Path(__file__).parent.glob("failure_lookalikes*.toml"))
LOOKALIKES: list[dict[str, Any]] = [
    log for path in FILES for log in tomllib.loads(path.read_text(encoding="utf-8"))["logs"]
]


def explained(log: dict[str, Any]) -> Explanation:
    return explain([Log(log["id"], log["text"].strip("\n").splitlines())])


@pytest.mark.parametrize("log", LOOKALIKES, ids=lambda log: log["id"])
def test_the_cause_of_a_look_alike_is_told(log: dict[str, Any]) -> None:
    found = explained(log)

    assert found.cause == log["cause"], found.rule


@pytest.mark.parametrize(("kind", "least"), [("stage", 0.94), ("quote", 0.97)])
def test_stage_and_quote_are_told_of_nearly_all(kind: str, least: float) -> None:
    def is_right(log: dict[str, Any]) -> bool:
        found = explained(log)
        return found.stage == log["stage"] if kind == "stage" else log["quote"] in (found.quote or "")

    right = sum(is_right(log) for log in LOOKALIKES)

    assert right / len(LOOKALIKES) >= least


def test_they_cover_the_engines_and_most_causes() -> None:
    assert len(LOOKALIKES) >= 450
    assert {log["engine"] for log in LOOKALIKES} == {"vllm", "sglang", "tensorrt-llm", "llamacpp"}
    assert {log["stage"] for log in LOOKALIKES} <= set(get_args(Stage))
    assert len({Cause(log["cause"]) for log in LOOKALIKES}) >= 28
    assert len({log["id"] for log in LOOKALIKES}) == len(LOOKALIKES)
