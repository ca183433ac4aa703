"""Campaigns, made once; a test that changes one copies it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.records import EVENTS_HALFWAY, write_campaign


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_campaign(tmp_path_factory.mktemp("finished") / "campaign")


@pytest.fixture(scope="session")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_campaign(tmp_path_factory.mktemp("halfway") / "campaign", num_events=EVENTS_HALFWAY)
