"""A short version of benchmarks/fuzz.py: nothing that people hand in crashes, hangs, or is read twice differently."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from assay.catalogue.front_matter import parse
from assay.errors import UsageError
from assay.store.spec_file import read_spec

FUZZ: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "fuzz.py"))


@pytest.mark.parametrize("kind", FUZZ["SHARES"])
def test_mutated_input_is_read_or_refused_with_what_to_do(kind: str) -> None:
    told = FUZZ["fuzz"](60, seed=7, only=kind)[kind]

    assert told.num_inputs == 60
    assert told.num_refused < 60
    assert not told.defects


def test_the_same_seed_makes_the_same_inputs() -> None:
    first, second = (FUZZ["fuzz"](30, seed=11) for _ in range(2))

    assert [(each.num_inputs, each.num_refused) for each in first.values()] == [
        (each.num_inputs, each.num_refused) for each in second.values()
    ]


def test_an_input_that_takes_too_long_and_one_that_crashes_are_told() -> None:
    def hang(text: str, dice: int) -> None:
        while text:
            dice += 1

    def crash(text: str, dice: int) -> None:
        raise KeyError(text, dice)

    told = FUZZ["Told"]()
    with FUZZ["alarms"]():
        results = [FUZZ["try_one"](told, reader, "x", 1, most_s=0.05) for reader in (hang, crash)]

    assert results == [False, False]
    assert dict(told.defects) == {"took too long": 1, "KeyError: ('x', 1)": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[target]\nmodel = 'x'\n[workload]\ninput_tokens = [24]\n", "workload.input_tokens"),
        ("x = " + "[" * 5000, "this is not TOML"),
    ],
)
def test_what_fuzzing_found_in_a_question_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "assay.toml"
    path.write_text(text)

    with pytest.raises(UsageError, match=said):
        read_spec(path)


def test_a_character_that_yaml_does_not_take_is_refused_with_its_line() -> None:
    with pytest.raises(UsageError, match="document:3: a character that YAML does not take"):
        parse("---\nid: x\ntitle: a\x1bb\n---\n", "document")
