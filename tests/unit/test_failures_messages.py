"""Messages that no rule was written for one by one: a cause that a person would accept is named for nearly each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from assay.failures import Log, explain
from assay.records.failure import Cause, Stage

MESSAGES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "failure_messages.toml").read_text(encoding="utf-8")
)["messages"]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["says"][:60])
def test_a_cause_that_a_person_would_accept_is_named(message: dict[str, Any]) -> None:
    path, _, function = message.get("at", "").rpartition(":")
    raised = ["Traceback (most recent call last):", f'  File "{path}", line 7, in {function}', "    raise"]

    found = explain([Log("server.log", [*(raised if path else []), message["says"]])])

    assert found.cause in message["causes"], found.rule
    assert found.stage in get_args(Stage)


def test_they_ask_for_causes_that_there_are() -> None:
    assert {cause for each in MESSAGES for cause in each["causes"]} <= {str(cause) for cause in Cause}
    assert len(MESSAGES) >= 300
