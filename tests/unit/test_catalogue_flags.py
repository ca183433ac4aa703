"""Every flag of every entry exists, takes its value and is read, in every recorded version that the entry names."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.catalogue.loader import builtin_folder, load_files
from assay.catalogue.verify import Problem, checked_versions, verify
from tests.unit.entry_files import HEAD


def problems_of(folder: Path, table: str) -> list[Problem]:
    (folder / "mine.toml").write_text(f"{HEAD}{table}\n")
    return verify(load_files([folder]))


def errors_of(folder: Path, table: str) -> list[str]:
    return [str(one) for one in problems_of(folder, table) if one.severity == "error"]


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("""'{"method": "mtp", "num_spec_tokens": 1}'""", "takes no key num_spec_tokens"),
        ("""'{"method": "mtp", "num_speculative_tokens": 1}'""", ""),
    ],
)
def test_a_key_that_a_version_does_not_have_is_an_error_of_its_entry(tmp_path: Path, flag: str, words: str) -> None:
    table = f"""[engines.vllm]\nversions = ">=0.20"\nflags = {{ "--speculative-config" = {flag} }}"""

    found = [one for one in errors_of(tmp_path, table) if "takes no key" in one]

    assert (words in found[0]) if words else not found


def test_no_entry_of_ours_names_a_flag_a_value_or_a_variable_that_a_recorded_version_lacks() -> None:
    found = verify(load_files([builtin_folder()]))

    assert [str(one) for one in found if one.severity == "error"] == []


def test_what_our_entries_leave_out_is_at_most_a_few_versions_before_their_own() -> None:
    """Both ways: a version that would take an entry although the entry does not say so is only a warning, and old."""
    unsaid = [one for one in verify(load_files([builtin_folder()])) if "does not say" in one.what]

    newest = {engine: checked_versions(engine)[-1] for engine in ("sglang", "vllm")}
    assert [str(one) for one in unsaid if one.versions.split()[-1] == newest[one.engine]] == []
    assert len(unsaid) < 20


def test_the_recorded_versions_are_the_thirty_seven_and_twenty_nine_that_were_read() -> None:
    assert (len(checked_versions("sglang")), len(checked_versions("vllm"))) == (37, 29)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('[engines.vllm]\nflags = { "--no-such-flag" = 1 }', "vllm 0.9.0 to 0.33.0: has no --no-such-flag"),
        ('[engines.vllm]\nversions = ">=0.20"\nflags = { "--swap-space" = 4 }', "vllm 0.20.0 to 0.33.0: has no"),
        ('[engines.vllm]\nversions = ">=0.32"\nflags = { "--scheduling-policy" = "lottery" }', "takes one of fcfs"),
        (
            '[engines.sglang]\nversions = ">=0.5"\nflags = { "--num-continuous-decode-steps" = 4 }',
            "sglang 0.5.1 to 0.5.23: --num-continuous-decode-steps is read by no code",
        ),
        ('[engines.vllm]\nversions = ">=0.17"\nenv = { VLLM_ATTENTION_BACKEND = "X" }', "no file names the variable"),
        ('[engines.sglang]\nremove_flags = ["--never"]', "has no --never to remove"),
        ('[engines.sglang]\nversions = ">=0.5"\nflags = { "--enable-mscclpp" = "yes" }', "takes no value, not yes"),
        ('[engines.sglang]\nversions = ">=0.5"\nflags = { "--tp-size" = false }', "cannot be switched off"),
        ('[engines.trtllm]\nflags = { "--cuda_graph" = true }', "has no --cuda_graph"),
        ('[engines.trtllm]\nversions = ">=1.2"\nflags = { "--config.kv_cache_dtype" = "fp8" }', "has no option"),
        ('[engines.trtllm]\nflags = { "--config.attn_backend" = "X" }', "is older than the versions whose options"),
        ('[engines.llamacpp]\nflags = { "--enable-mscclpp" = true }', "has no --enable-mscclpp"),
    ],
)
def test_an_entry_that_a_recorded_version_does_not_bear_out_is_told_with_the_versions(
    tmp_path: Path, table: str, told: str
) -> None:
    (error, *_) = errors_of(tmp_path, table)

    assert error.startswith("mine: ")
    assert told in error


def test_a_dead_flag_may_stand_in_an_entry_that_says_so_and_a_live_one_may_not(tmp_path: Path) -> None:
    table = 'expectation = "known to do nothing"\n[engines.sglang]\nversions = ">=0.5"\nflags = {{ "{}" = 4 }}'

    assert errors_of(tmp_path, table.format("--num-continuous-decode-steps")) == []
    assert "--tp-size is read" in errors_of(tmp_path, table.format("--tp-size"))[0]


def test_a_version_outside_that_takes_the_flags_is_a_warning(tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, '[engines.sglang]\nversions = ">=0.5.9"\nflags = { "--enable-mscclpp" = true }')

    assert (found.severity, found.versions) == ("warning", "0.4.7 to 0.5.8")


def test_of_several_spellings_the_one_that_a_version_has_counts(tmp_path: Path) -> None:
    old = '[[engines.sglang.variants]]\nflags = { "--cuda-graph-max-bs" = 8 }'
    new = '[[engines.sglang.variants]]\nversions = ">=0.5.14"\nflags = { "--cuda-graph-max-bs-decode" = 8 }'

    told = errors_of(tmp_path, f"[engines.sglang]\n{new}\n{old}")

    assert told == ["mine: sglang 0.3.4: has no --cuda-graph-max-bs"]


def test_a_key_inside_of_a_json_flag_is_held_against_the_versions_that_have_it(tmp_path: Path) -> None:
    flags = 'flags = { "--compilation-config.cudagraph_mode" = "FULL" }'

    refused, left_out = errors_of(tmp_path, f"[engines.vllm]\n{flags}")

    assert "0.9.0: --compilation-config.cudagraph_mode takes no key cudagraph_mode; 0.10.1.1 is the first" in refused
    assert "0.9.2 to 0.10.0: --compilation-config.cudagraph_mode takes no key cudagraph_mode, and leaves" in left_out
    assert errors_of(tmp_path, f'[engines.vllm]\nversions = ">=0.11"\n{flags}') == []
