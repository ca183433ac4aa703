"""A campaign that several modules look at, carried out once on the real embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay import api
from assay.render.progress import QuietProgress
from tests.contract.campaigns import make_whole_campaign


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_whole_campaign(tmp_path_factory.mktemp("campaign") / "whole")
    with QuietProgress() as progress:
        api.run(folder, progress)
    return folder
