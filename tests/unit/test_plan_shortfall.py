"""A budget that the calibration alone would spend is told by the plan."""

from pathlib import Path

import pytest

from assay.api.plan import plan, shortfall

QUESTION = """
[target]
model = "embedded"
executable = "embedded"
[workload]
warmup_min_s = 1.0
window_s = 2.0
windows = 2
[budget]
total_s = {total_s}
calibration_brackets = 4
[policy]
builtin_catalogue = false
"""


@pytest.mark.parametrize(("total_s", "told"), [(44, True), (45, False)])
def test_nine_runs_of_five_seconds_need_forty_five(tmp_path: Path, total_s: int, *, told: bool) -> None:
    (tmp_path / "assay.toml").write_text(QUESTION.format(total_s=total_s))

    said = shortfall(plan(tmp_path))

    assert (said is not None) == told
    if said:
        assert said.startswith("budget.total_s is 44 s, and the calibration alone takes at least 45 s of load (4 bra")
