"""Every run of a campaign with several operating points plays them all, on one launch of a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay import api
from assay.records.run import RunStatus
from assay.records.spec import LoadPoint
from assay.render.progress import QuietProgress
from tests.contract.campaigns import make_campaign, tiny_spec


@pytest.mark.slow
def test_a_run_measures_each_operating_point_and_its_gates_are_named_by_the_point(tmp_path: Path):
    spec = tiny_spec()
    points = [LoadPoint(name="single", concurrency=1)]
    workload = spec.workload.model_copy(update={"points": points})
    folder = make_campaign(tmp_path / "c", tiny_spec(workload=workload), {"batch": '{ "--batch-size" = 64 }'})
    state = api.run(folder, QuietProgress(), max_runs=1)
    outcome = state.runs[0].outcome
    assert outcome is not None
    assert outcome.status is RunStatus.OK, outcome.reason
    assert outcome.measures is not None
    assert set(outcome.points) == {"single"}
    assert outcome.points["single"].output_tokens_per_s > 0
    assert any(gate.name.startswith("single: ") for gate in outcome.gates)
    assert state.runs[0].intent.host
