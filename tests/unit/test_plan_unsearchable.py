"""A dial that cannot be searched is found out by the plan, not in the middle of the campaign."""

from pathlib import Path

import pytest

from assay.api.plan import plan
from assay.errors import UsageError

ENTRY = """
id = "my-dial"
title = "Mine"
tier = 1
mechanism_id = "batch"
numerics = "reordered"
predicted = [0, 0.8]
mechanism = "m"
rationale = "r"
risk = "k"
[dial]
constraints = [{constraint}]
[[dial.knobs]]
name = "ubatch"
flag = "--ubatch-size"
low = {low}
high = {high}
factor = 2
[engines.llamacpp]
"""
QUESTION = """
[target]
model = "embedded"
executable = "embedded"
[policy]
search_dials = true
builtin_catalogue = false
catalogue = ["mine"]
"""


def question(folder: Path, low: str, high: str, constraint: str = "") -> Path:
    (folder / "mine").mkdir()
    (folder / "mine" / "my-dial.toml").write_text(ENTRY.format(low=low, high=high, constraint=constraint))
    (folder / "assay.toml").write_text(QUESTION)
    return folder


@pytest.mark.parametrize(
    ("low", "high", "constraint"),
    [("512", "32", ""), ("32", "512", '"dial.ubatch < 0"'), ("1", "512", '"1 / 0 > dial.ubatch"')],
)
def test_a_dial_that_has_no_setting_here_is_blocked_with_the_reason(
    tmp_path: Path, low: str, high: str, constraint: str
) -> None:
    (found,) = plan(question(tmp_path, low, high, constraint)).hypotheses

    assert found.status == "blocked"
    assert found.blocked_reason is not None
    assert found.blocked_reason.startswith("its dial cannot be searched: ")


def test_a_dial_of_one_setting_can_be_searched(tmp_path: Path) -> None:
    (found,) = plan(question(tmp_path, "32", "32")).hypotheses

    assert found.status == "planned"


def test_a_number_that_is_none_is_named_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"my-dial\.toml: dial\.knobs\.0\.low is no finite number"):
        plan(question(tmp_path, "nan", "32"))
