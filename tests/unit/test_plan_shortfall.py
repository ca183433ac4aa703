"""A budget that the calibration alone would spend is told by the plan."""

from pathlib import Path

import pytest

from assay.api.plan import plan
from assay.api.plan_budget import shortfall

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
soak_s = {soak_s}
[policy]
builtin_catalogue = false
"""


@pytest.mark.parametrize(
    ("total_s", "soak_s", "told"),
    [
        (44, 0, "budget.total_s is 44 s, and the calibration alone takes at least 45 s of load (4 brackets)"),
        (45, 0, "the calibration alone is expected to take"),
        (90, 0, "the time kept for composition and confirmation (about"),
        (
            90,
            60,
            "probably no candidate will be tried; raise budget.total_s, or lower budget.confirmation_brackets (6)",
        ),
        (600, 0, None),
        (3600, 7200, "soaks of budget.soak_s (2 h 00 min) of a candidate and of the baseline do not fit"),
        (3600, 60, None),
    ],
)
def test_nine_runs_of_five_seconds_need_forty_five_and_their_launches_and_a_soak_has_to_fit_beside_them(
    tmp_path: Path, total_s: int, soak_s: int, told: str | None
) -> None:
    (tmp_path / "assay.toml").write_text(QUESTION.format(total_s=total_s, soak_s=soak_s))

    said = shortfall(plan(tmp_path))

    assert (said is None) == (told is None)
    if said and told:
        assert told in said
