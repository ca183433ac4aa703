"""A budget that contradicts itself is refused with both its numbers; a record that holds one stays readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.errors import UsageError
from assay.records.spec import Budget, CampaignSpec
from assay.store.spec_file import read_spec


def question(tmp_path: Path, budget: str) -> Path:
    path = tmp_path / "assay.toml"
    path.write_text(f'[target]\nmodel = "embedded"\n[budget]\n{budget}\n')
    return path


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("min_brackets = 4\nmax_brackets = 3", "4 brackets are wanted before any verdict, and max_brackets allows 3"),
        ("min_brackets = 7", "max_brackets allows 6"),
        ("max_brackets = 1", "one disturbed run may then decide by itself"),
        ("composition_brackets = 1", "raise composition_brackets, or set min_brackets = 1"),
    ],
)
def test_more_brackets_before_a_verdict_than_there_may_be_are_refused(tmp_path: Path, budget: str, told: str) -> None:
    with pytest.raises(UsageError, match=r"assay\.toml.*budget\.min_brackets") as refused:
        read_spec(question(tmp_path, budget))
    assert told in refused.value.message


def test_as_many_as_there_may_be_are_not(tmp_path: Path) -> None:
    assert read_spec(question(tmp_path, "min_brackets = 2\nmax_brackets = 2")).budget.max_brackets == 2


def test_a_campaign_that_exists_goes_on_as_it_was_declared(tmp_path: Path) -> None:
    declared = CampaignSpec(budget=Budget(min_brackets=2, max_brackets=1))
    assert read_spec(question(tmp_path, "max_brackets = 1"), declared=declared).budget.max_brackets == 1
