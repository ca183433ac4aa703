"""Assay's own entries, and the messages for entries that people write."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from assay.catalogue.loader import builtin_folder, load, null_folder
from assay.errors import UsageError

FILES = sorted([*builtin_folder().glob("*.toml"), *null_folder().glob("*.toml")])
WHOLE = """
id = "mine"
title = "Mine"
tier = 1
numerics = "exact"
predicted = [0.0, 0.1]
applies_when = "machine.usable_cores > 1"
mechanism = "m"
risk = "r"
[engines.llamacpp]
flags = { "--poll" = "= machine.usable_cores" }
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_entrys_file_is_named_after_its_id(path: Path) -> None:
    assert tomllib.loads(path.read_text())["id"] == path.stem


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_claims_name_where_they_come_from(path: Path) -> None:
    for claim in tomllib.loads(path.read_text()).get("reported", []):
        assert "prior" in claim["source"] or "#" in claim["source"]


def test_what_one_entry_excludes_excludes_it_in_turn() -> None:
    entries = {variants[0].id: variants[0] for variants in load([builtin_folder()], "llamacpp")}
    pairs = {(one.id, other) for one in entries.values() for other in one.excludes}

    assert pairs
    assert [pair for pair in pairs if pair[::-1] not in pairs or pair[0] == pair[1]] == []


def test_entries_that_set_the_same_flag_differently_exclude_each_other() -> None:
    entries = [variants[0] for variants in load([builtin_folder()], "llamacpp")]
    clashes = [
        (one.id, other.id)
        for one in entries
        for other in entries
        if one.id < other.id
        and any(one.flags[name] != other.flags[name] for name in one.flags.keys() & other.flags.keys())
        and other.id not in one.excludes
    ]

    assert clashes == []


def test_texts_may_be_wrapped_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE.replace('"m"', '"""\none line\nand another\n"""'))

    ((entry,),) = load([tmp_path], "llamacpp")

    assert entry.mechanism == "one line and another"


def test_an_entry_for_another_engine_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE.replace("engines.llamacpp", "engines.vllm"))

    assert load([tmp_path], "llamacpp") == []


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ("mechanism =", "mechanisms =", "mechanisms is no key", "did you mean mechanism"),
        ("flags =", "flgs =", "engines.llamacpp.flgs is no key", "did you mean flags"),
        ("tier = 1", "", "tier: Field required", "docs/catalogue-entry.md"),
        ('"exact"', '"precise"', "found 'precise'", "docs/catalogue-entry.md"),
        ("[0.0, 0.1]", "[0.1, 0.0]", "predicted: 0.1 is above 0.0", "[low, high]"),
        ("usable_cores > 1", "usable_cores >", "applies_when: expected a value before the end", "names, literals"),
        ('"= machine.usable_cores"', '"= 2 *"', "flags.--poll: expected a value", "names, literals"),
        ('{ "--poll" = "= machine.usable_cores" }', "{}", "mine changes nothing", "give flags"),
        ("[engines.llamacpp]\n", "[engines]\nllamacpp = 1\n[zzz]\n", "zzz is no key", "keys are"),
        ("[engines.llamacpp]\n", "[engines.llamacpp]\nvariants = 1\n", "engines.llamacpp.variants: want", "docs/"),
    ],
)
def test_a_mistake_in_an_entry_is_named_with_file_key_and_remedy(
    tmp_path: Path, old: str, new: str, message: str, hint: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE)
    assert len(load([tmp_path], "llamacpp")) == 1
    path.write_text(WHOLE.replace(old, new))

    with pytest.raises(UsageError) as caught:
        load([tmp_path], "llamacpp")

    assert str(path) in caught.value.message
    assert message in caught.value.message
    assert hint in str(caught.value.hint)


def test_the_entry_in_the_guide_is_a_valid_one(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "catalogue-entry.md").read_text()
    (tmp_path / "entry.toml").write_text(guide.split("```toml\n")[1].split("```")[0])

    ((entry,),) = load([tmp_path], "llamacpp")

    assert entry.flags == {"--ubatch-size": 256}
