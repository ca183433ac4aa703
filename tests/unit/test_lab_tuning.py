"""The fused-MoE tuner: what it tries, what it finds, what it keeps, what it writes."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from assay.lab.reports import tuned as tuned_points
from assay.lab.tuning import config_files
from assay.lab.tuning.defaults import sglang_default, vllm_default
from assay.lab.tuning.journal import Journal
from assay.lab.tuning.search import Ask, Told, Winner, search
from assay.lab.tuning.space import Config, engine_space, our_space, steps, why_not
from tests.unit.landscapes import EXPERTS, Landscape, problem

BATCHES = (1, 64, 1024)
EIGHT_BITS = 1.0


def tuned(
    seed: int, journal: Journal | None = None, most: int | None = None, batches: tuple[int, ...] = BATCHES
) -> tuple[Landscape, list[Winner]]:
    """A search over a landscape, through a journal where there is one; cut off after `most` measurements."""
    world = Landscape(seed, {tokens: problem(tokens, EIGHT_BITS) for tokens in batches})

    def measure(asks: list[Ask]) -> list[Told]:
        found = []
        for ask in asks:
            told = journal.find(ask) if journal is not None else None
            if told is None:
                if most is not None and len(world.asked) >= most:
                    raise KeyboardInterrupt
                (told,) = world.measure([ask])
                if journal is not None:
                    journal.add(ask, told)
            found.append(told)
        return found

    default = lambda tokens: vllm_default(tokens, EXPERTS, "fp8")  # noqa: E731 - one line
    try:
        winners = list(search(our_space("fp8"), list(world.problems.values()), default, measure))
    except KeyboardInterrupt:
        winners = []
    return world, winners


def test_the_search_comes_within_two_percent_of_the_best_with_a_tenth_of_the_measurements() -> None:
    losses, asked = [], 0
    for seed in range(2):
        world, winners = tuned(seed)
        asked += len(world.asked)
        for one in winners:
            best = min(time for config in our_space("fp8") if (time := world.true_s(one.tokens, config)))
            losses.append((world.true_s(one.tokens, one.config) or 1.0) / best - 1)
    exhaustive = 2 * len(BATCHES) * len(our_space("fp8"))
    assert len(losses) == 2 * len(BATCHES)
    assert statistics.median(losses) < 0.01
    assert statistics.mean(losses) < 0.02
    assert asked < exhaustive / 10


def test_a_winner_is_never_slower_than_the_default_it_was_measured_with() -> None:
    _, winners = tuned(seed=7)
    assert [one.tokens for one in winners] == list(BATCHES)
    assert all(one.default_s is not None and one.time_s <= one.default_s for one in winners)


def test_a_search_that_was_killed_goes_on_with_what_was_measured(tmp_path: Path) -> None:
    path, identity = tmp_path / "journal.jsonl", {"device": "x", "shape": {"experts": 256}}
    whole_world, whole = tuned(3, batches=(1,))
    cut, nothing = tuned(3, Journal(path, identity), most=50, batches=(1,))
    with path.open("a") as file:
        file.write('{"tokens": 1, "config": {"BLOCK_SI')
    again = Journal(path, identity)
    assert (len(cut.asked), nothing, len(again)) == (50, [], 50)
    rest, winners = tuned(3, again, batches=(1,))
    assert {one.tokens for one in winners} == {one.tokens for one in whole}
    assert len(rest.asked) < len(whole_world.asked)
    assert not {(a.tokens, a.config, a.effort) for a in rest.asked} & {
        (a.tokens, a.config, a.effort) for a in cut.asked
    }
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_measurements_of_another_device_are_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    ask = Ask(tokens=1, config=Config(16, 64, 128, 1, 4, 3), effort="quick")
    Journal(path, {"device": "one"}).add(ask, Told(time_s=1e-5))
    other = Journal(path, {"device": "two"})
    assert other.find(ask) is None
    assert other.kept_away is not None
    assert other.kept_away.exists()
    same = Journal(other.kept_away, {"device": "one"})
    assert same.find(ask) == Told(time_s=1e-5)


def test_nothing_that_was_set_aside_is_replaced_and_no_file_of_something_else_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("somebody's notes\n")
    for name in ("one", "two", "three"):
        Journal(path, {"device": name})
    kept = sorted(each.read_text() for each in tmp_path.iterdir() if each != path)
    assert len(kept) == 3
    assert "somebody's notes\n" in kept


def winner(**more: object) -> dict[str, object]:
    found = {"kind": "winner", "tokens": 64, "time_s": 5e-4, "default_s": 6e-4, "measured": 40, "pruned": 900}
    return {**found, "config": Config(16, 64, 128, 1, 4, 4).as_engine(), **more}


def compared(tuned_s: float, default_s: float) -> dict[str, object]:
    configs = {"tuned": winner()["config"], "default": vllm_default(64, EXPERTS, "bf16").as_engine()}
    times = {"tuned": tuned_s, "default": default_s}
    return {"kind": "compared", "tokens": 64, "configs": configs, "time_s": times}


def test_a_gain_is_told_from_the_measurement_that_did_not_choose_the_winner() -> None:
    (found,) = tuned_points([winner(), compared(5.2e-4, 5.9e-4)])
    assert (found.time_s, found.default_s, found.config) == (5.2e-4, 5.9e-4, winner()["config"])
    (alone,) = tuned_points([winner()])
    assert (alone.time_s, alone.default_s) == (5e-4, 6e-4)


def test_a_winner_that_was_only_lucky_gives_way_to_the_engines_default() -> None:
    (found,) = tuned_points([winner(), compared(6.1e-4, 6e-4)])
    assert found.config == vllm_default(64, EXPERTS, "bf16").as_engine()
    assert found.time_s == found.default_s == 6e-4


def test_configurations_that_cannot_win_are_not_tried() -> None:
    few, many = problem(1), problem(4096)
    reasons = {
        why_not(Config(256, 256, 64, 1, 4, 2), many): "sums",
        why_not(Config(128, 256, 256, 1, 8, 4), many): "shared memory",
        why_not(Config(128, 128, 64, 1, 8, 3), few): "rows",
        why_not(Config(16, 32, 64, 1, 4, 3), problem(65_536)): "L2",
    }
    assert all(reason is not None and word in reason for reason, word in reasons.items())


@pytest.mark.parametrize("tokens", [1, 64, 1024])
def test_tiles_of_published_tunings_are_never_pruned(tokens: int) -> None:
    published = {
        1: Config(16, 64, 128, 1, 4, 5),
        64: Config(64, 128, 128, 64, 4, 3),
        1024: Config(64, 128, 128, 32, 4, 4),
    }
    assert why_not(published[tokens], problem(tokens, EIGHT_BITS)) is None


def test_the_engines_grid_has_as_many_configurations_as_their_tuners_walk_through() -> None:
    assert len(engine_space("bf16")) == 5 * 4 * 3 * 4 * 2 * 4
    assert {one.block_k for one in our_space("fp8")} == {128}
    assert {one.block_n for one in our_space("fp8")} > {one.block_n for one in engine_space("fp8")}


def test_a_step_changes_one_value_to_its_neighbour() -> None:
    here = Config(64, 128, 64, 16, 4, 3)
    allowed = set(engine_space("bf16"))
    found = list(steps(here, allowed))
    assert len(found) == 10
    assert Config(32, 128, 64, 16, 4, 3) in found
    assert Config(64, 128, 64, 16, 8, 3) in found
    assert not [one for one in found if one.block_n == 32]


def test_vllm_reads_the_file_under_the_name_it_asks_for() -> None:
    ask = {"experts": 256, "width": 256, "dtype": "fp8"}
    expected = "E=256,N=256,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json"
    assert config_files.file_name("vllm", device="NVIDIA H200", **ask) == expected
    assert config_files.file_name("vllm", device="NVIDIA H200 NVL", **ask) == expected
    spaced = "E=256,N=256,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128, 128].json"
    assert config_files.file_name("sglang", device="NVIDIA H200", **ask) == spaced
    assert config_files.subfolder("sglang", "3.6.0") == "configs/triton_3_6_0"
    plain = config_files.file_name("vllm", experts=128, width=768, device="NVIDIA A100-SXM4-80GB", dtype="bf16")
    assert plain == "E=128,N=768,device_name=NVIDIA_A100-SXM4-80GB.json"


def test_a_written_file_reads_back_and_carries_what_each_engine_can_take() -> None:
    winners = {64: Config(16, 128, 128, 16, 4, 3), 1: Config(16, 64, 128, 1, 4, 5)}
    for engine in ("vllm", "sglang"):
        text = config_files.write(engine, winners, "3.6.0")
        assert config_files.read(text) == winners
        assert list(json.loads(text))[-2:] == ["1", "64"]
        assert ("triton_version" in json.loads(text)) == (engine == "vllm")
    assert config_files.chosen(winners, 40) == winners[64]
    assert config_files.chosen(winners, 30) == winners[1]


@pytest.mark.parametrize("text", ["[]", '{"x": {}}', '{"1": {"BLOCK_SIZE_M": 16}}'])
def test_a_file_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"number of tokens"):
        config_files.read(text)


def test_the_engines_defaults_are_what_they_choose() -> None:
    assert vllm_default(1, 256, "bf16").as_engine() == {
        "BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 1, "num_warps": 4, "num_stages": 4,
    }  # fmt: skip
    assert vllm_default(2048, 8, "bf16").group_m == 16
    assert vllm_default(8, 256, "fp8").told == "16x64x128 g1 w4 s3"
    assert sglang_default(64, 256, "bf16").told == "16x32x64 g1 w4 s3"
    assert sglang_default(512, 256, "fp8").told == "64x128x128 g32 w4 s3"
