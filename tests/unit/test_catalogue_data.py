"""Assay's own entries, and the messages for entries that people write."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from assay.catalogue.expressions import expressions_of
from assay.catalogue.loader import builtin_folder, load, load_files, null_folder
from assay.catalogue.names import names
from assay.errors import UsageError
from tests.unit.entry_files import HEAD

FILES = sorted([*builtin_folder().glob("*.toml"), *null_folder().glob("*.toml")])
ENGINES = ("llamacpp", "vllm", "sglang", "trtllm")
SOURCE = re.compile(
    r"#\d|^no source|prior|wheels|README|voipmonitor/rtx6kpro|examples/gpu/|alint77/jupiter|SemiAnalysisAI/InferenceX"
)
WHOLE = (
    HEAD
    + """applies_when = "machine.usable_cores > 1"
[engines.llamacpp]
flags = { "--poll" = "= machine.usable_cores" }
"""
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_entrys_file_is_named_after_its_id(path: Path) -> None:
    assert tomllib.loads(path.read_text())["id"] == path.stem


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_claims_and_risks_name_where_they_come_from_or_say_that_nobody_does(path: Path) -> None:
    content = tomllib.loads(path.read_text())
    for claim in content.get("reported", []):
        assert SOURCE.search(claim["source"]), claim
    for risk in content.get("risks", []):
        assert not risk.get("source") or SOURCE.search(risk["source"]), risk


def test_there_are_sixty_entries_and_every_engine_has_some_that_can_be_launched() -> None:
    files = load_files([builtin_folder()])
    served = [one for one in files if any(engine != "llamacpp" for engine in one.engines)]

    assert len(served) >= 60
    for engine, least in {"llamacpp": 40, "vllm": 45, "sglang": 50, "trtllm": 8}.items():
        ready = [one for one in files if engine in one.engines and not one.engines[engine][0].needs_work]
        assert len(ready) >= least, engine


def test_the_eleven_of_the_founding_story_are_there() -> None:
    sglang = {variants[0].id: variants[0] for variants in load([builtin_folder()], "sglang")}
    tiers = {
        "piecewise-cuda-graph": 1, "mscclpp": 1, "single-batch-overlap": 1, "fuse-allreduce-rmsnorm": 1,
        "moe-runner-b12x": 1, "kv-fp8": 1, "continuous-decode-steps": 1, "expert-parallel": 2, "spec-mtp": 2,
        "assay-persistent-moe": 3, "l2-persistence": 3,
    }  # fmt: skip

    assert {name: sglang[name].tier for name in tiers} == tiers


def test_entries_of_the_third_tier_have_a_path_or_say_what_has_to_be_made() -> None:
    for file in load_files([builtin_folder()]):
        for variants in file.engines.values():
            for one in variants:
                assert one.needs_work or one.flags or one.env or one.remove_flags or one.artifact or one.dial, one.id


def test_every_expression_names_only_what_a_target_has() -> None:
    files = load_files([builtin_folder()])
    dials = [one for file in files for variants in file.engines.values() for one in variants if one.dial]

    assert names([*files, *load_files([null_folder()])]) == []
    assert any(expression.knobs for one in dials for expression in expressions_of(one))


def test_every_ceiling_is_one_that_the_roofline_calculates() -> None:
    from typing import get_args

    from assay.models import load as load_model
    from assay.plan.target_step import Served, TargetStep, target_step
    from assay.probes.devices import box
    from assay.records.estimate import Layout
    from assay.records.hypothesis import CeilingId
    from assay.records.spec import Workload

    found = target_step(load_model("qwen3-30b-a3b"), box("h200"), Served(layout=Layout()), Workload())

    assert isinstance(found, TargetStep)
    assert set(get_args(CeilingId)) == set(found.ceilings)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_one_entry_excludes_excludes_it_in_turn(engine: str) -> None:
    entries = {variants[0].id: variants[0] for variants in load([builtin_folder()], engine)}
    pairs = {(one.id, other) for one in entries.values() for other in one.excludes if other in entries}

    assert pairs
    assert [pair for pair in pairs if pair[::-1] not in pairs or pair[0] == pair[1]] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_entry_requires_is_there(engine: str) -> None:
    entries = {variants[0].id: variants[0] for variants in load([builtin_folder()], engine)}

    assert [(one.id, name) for one in entries.values() for name in one.requires if name not in entries] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_entries_that_set_the_same_flag_differently_exclude_each_other(engine: str) -> None:
    entries = [variants[0] for variants in load([builtin_folder()], engine)]
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


def test_the_page_of_all_entries_is_what_the_entries_say() -> None:
    script = Path(__file__).parents[2] / "docs" / "generate_catalogue.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
