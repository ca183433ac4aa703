"""A question that contradicts itself is refused with its numbers; a record that holds one stays readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.errors import UsageError
from assay.records.spec import Budget, CampaignSpec, Workload
from assay.store.spec_file import read_spec, write_spec


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


def of_workload(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "assay.toml"
    path.write_text(text)
    return path


def test_many_prefixes_of_no_tokens_are_refused_in_a_new_question_and_read_in_an_old_one(tmp_path: Path) -> None:
    path = of_workload(tmp_path, "[workload]\nshared_prefix_groups = 7\n")

    with pytest.raises(UsageError, match=r"assay\.toml:2: workload\.shared_prefix_groups: 7 prefixes of no tokens"):
        read_spec(path)
    declared = CampaignSpec(workload=Workload(shared_prefix_groups=7))
    assert read_spec(path, declared=declared) == declared


def test_losses_and_effects_may_be_percentages(tmp_path: Path) -> None:
    found = read_spec(of_workload(tmp_path, '[objective]\nmax_loss = "2%"\nmin_effect = "2.5%"\n')).objective

    assert (found.max_loss, found.min_effect) == (0.02, 0.025)


@pytest.mark.parametrize("wrong", ["2", "two%", "200%", "-1%", "nan%"])
def test_what_is_no_percentage_is_refused_with_its_place(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UsageError, match=r"assay\.toml:2: objective\.max_loss"):
        read_spec(of_workload(tmp_path, f'[objective]\nmax_loss = "{wrong}"\n'))


def test_the_sample_of_a_loss_is_one_that_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "assay.toml"
    write_spec(path, CampaignSpec())
    text = path.read_text()
    path.write_text(text.replace("# max_loss =", "max_loss ="))

    assert read_spec(path).objective.max_loss == 0.02
    assert "absent: only the mean counts." in " ".join(text.replace("\n#", "").split())
    assert "\n# counts." not in text
