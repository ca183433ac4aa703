"""The catalogue is data: complete, consistent, and checked against the installed build."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.catalogue.loader import builtin_folder, load, null_folder
from assay.errors import UsageError

ENTRY = """
id = "{id}"
title = "A title"
tier = 1
mechanism = "m"
predicted = [0.0, 0.1]
numerics = "exact"
risk = "r"
{more}
[engines.llamacpp]
flags = {{ "--poll" = 1 }}
"""


def entry(folder: Path, name: str, more: str = "", entry_id: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(ENTRY.format(id=entry_id or name, more=more))
    return path


def test_the_builtin_catalogue_holds_at_least_twenty_entries_each_with_mechanism_risk_and_prediction() -> None:
    entries = load([builtin_folder()], "llamacpp")
    assert len(entries) >= 20
    for optimization in (variants[0] for variants in entries):
        assert len(optimization.mechanism) > 10, optimization.id
        assert len(optimization.risk) > 3 or optimization.risks, optimization.id
        assert optimization.predicted[0] <= optimization.predicted[1], optimization.id
        tried = optimization.flags or optimization.artifact or optimization.dial
        assert tried or optimization.needs_work, optimization.id


def test_families_exclude_each_other_on_both_sides() -> None:
    entries = {variants[0].id: variants[0] for variants in load([builtin_folder()], "llamacpp")}
    for optimization in entries.values():
        for other in optimization.excludes:
            assert other in entries, f"{optimization.id} excludes {other}, which is not there"


def test_there_are_flags_known_to_fail_to_do_nothing_and_to_lose() -> None:
    expectations = " ".join(variants[0].expectation for variants in load([builtin_folder()], "llamacpp"))
    for word in ("known to fail", "known to do nothing", "should be worse", "gone from newer builds"):
        assert word in expectations


def test_the_null_catalogue_holds_only_defaults() -> None:
    entries = load([null_folder()], "llamacpp")
    assert len(entries) >= 6
    assert all(variants[0].expectation.startswith("null") for variants in entries)


def test_two_entries_with_one_id_are_refused_and_both_files_named(tmp_path: Path) -> None:
    first, second = entry(tmp_path / "a", "x"), entry(tmp_path / "b", "y", entry_id="x")
    with pytest.raises(UsageError) as caught:
        load([tmp_path / "a", tmp_path / "b"], "llamacpp")
    assert str(first) in caught.value.message
    assert str(second) in caught.value.message


def test_an_entry_may_replace_another_when_it_says_so(tmp_path: Path) -> None:
    entry(tmp_path / "a", "x")
    entry(tmp_path / "b", "x", more="override = true")
    assert len(load([tmp_path / "a", tmp_path / "b"], "llamacpp")) == 1


@pytest.mark.parametrize("more", ["tier = 7", "nonsense = 1", "this is not toml"])
def test_a_broken_entry_is_refused_with_its_file(tmp_path: Path, more: str) -> None:
    path = entry(tmp_path, "x", more=more)
    with pytest.raises(UsageError) as caught:
        load([tmp_path], "llamacpp")
    assert str(path) in caught.value.message


@pytest.mark.parametrize("reserved", ["baseline", "stack"])
def test_the_names_of_arms_are_refused_as_ids(tmp_path: Path, reserved: str) -> None:
    entry(tmp_path, "x", entry_id=reserved)
    with pytest.raises(UsageError, match="names an arm"):
        load([tmp_path], "llamacpp")


@pytest.mark.parametrize("versions", [">=5,<2", "==1.0,!=1.0", ">2,<=2"])
def test_a_range_in_which_no_version_lies_is_refused(tmp_path: Path, versions: str) -> None:
    path = entry(tmp_path, "x")
    path.write_text(path.read_text() + f'versions = "{versions}"\n')
    with pytest.raises(UsageError) as caught:
        load([tmp_path], "llamacpp")
    assert f"no version lies in {versions!r}" in caught.value.message
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('constraints = ["dial.slots <"]', "dial.constraints"),
        ('estimate = "dial.slots ?"', "dial.estimate"),
        ('flags = { "--batch" = "= (dial.slots" }', "dial.flags.--batch"),
    ],
)
def test_an_expression_of_a_dial_that_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, line: str, key: str
) -> None:
    dial = f'[dial]\n{line}\n[[dial.knobs]]\nname = "slots"\nflag = "--parallel"\nlow = 1\nhigh = 4\nstep = 1'
    path = entry(tmp_path, "x", more=dial)
    with pytest.raises(UsageError) as caught:
        load([tmp_path], "llamacpp")
    assert caught.value.message.startswith(f"{path}: {key}: ")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no catalogue folder"):
        load([tmp_path / "nowhere"], "llamacpp")
