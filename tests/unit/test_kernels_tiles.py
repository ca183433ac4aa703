"""Tile choices of the MoE kernel: arithmetic and tables, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from benchmarks.gpu import moe_tables
from benchmarks.gpu.moe_rule import choices
from benchmarks.gpu.moe_tables import KERNEL, merged, points

from assay.kernels.candidates import families, neighbours, rows_for
from assay.kernels.choose import (
    SHIPPED,
    VARIABLE,
    Device,
    Shape,
    allowed,
    choose,
    engine_is_faster,
    parse,
    rule,
)
from assay.kernels.tiles import MoeConfig, Tile, as_json, from_json, tiles_that_fit

TP8 = Shape(experts=256, intermediate=256, hidden=6144, dtype="bf16")
RECORDED = Path(__file__).parents[2] / "examples/gpu/h200"
BATCHES = [1, 2, 8, 9, 64, 128, 129, 1024, 8192]
WIDE = Tile(rows=64, columns=128, depth=64, warps=8, stages=4)


def test_shared_memory_is_the_operand_tiles_of_every_stage() -> None:
    one_stage = 64 * (64 * 2 + 2 * 128 * 2)
    assert WIDE.shared_bytes(weights=2, row_bytes=2, weight_bytes=2) == 4 * one_stage + 1024


def test_the_fast_tile_of_a_hopper_does_not_fit_a_workstation_blackwell() -> None:
    config = MoeConfig(path="sorted", gate_up=WIDE, down=WIDE)
    assert config.fits("sm90", row_bytes=2, weight_bytes=2)
    assert not config.fits("sm120", row_bytes=2, weight_bytes=2)
    assert replace(config, gate_up=replace(WIDE, stages=2)).fits("sm120", row_bytes=2, weight_bytes=2)


def test_a_chip_with_less_shared_memory_has_a_subset_of_the_tiles() -> None:
    large, small = (tiles_that_fit(chip, weights=2, row_bytes=2, weight_bytes=2) for chip in ("sm90", "sm120"))
    assert WIDE in large
    assert set(small) < set(large)


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
@pytest.mark.parametrize("tokens", BATCHES)
def test_the_rule_gives_every_batch_a_config_that_can_carry_it_and_fits_a_hopper(tokens: int, dtype: str) -> None:
    size = 1 if dtype == "fp8" else 2
    config = rule(replace(TP8, dtype=dtype), tokens=tokens, slots=8, global_experts=256)
    assert allowed(config, tokens=tokens, slots=8)
    assert config.fits("sm90", row_bytes=size, weight_bytes=size)


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
@pytest.mark.parametrize("tokens", BATCHES)
def test_on_a_chip_with_less_shared_memory_the_rule_gives_what_fits(tokens: int, dtype: str) -> None:
    size = 1 if dtype == "fp8" else 2
    small = Device(name="NVIDIA RTX PRO 6000 Blackwell Server Edition", capability="12.0")
    config = rule(replace(TP8, dtype=dtype), tokens=tokens, slots=8, global_experts=256, device=small)
    assert config.fits("sm120", row_bytes=size, weight_bytes=size)


def test_before_hopper_the_rule_asks_for_neither_overlapped_launches_nor_descriptors() -> None:
    for capability, modern in (("8.0", False), ("9.0", True)):
        config = rule(TP8, tokens=32, slots=8, global_experts=256, device=Device(name="any", capability=capability))
        assert (config.overlap_launches, config.descriptors) == (modern, modern)


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
@pytest.mark.parametrize("tokens", BATCHES)
def test_candidates_can_carry_their_batch_and_differ(tokens: int, dtype: str) -> None:
    groups = list(families(replace(TP8, dtype=dtype), tokens=tokens, slots=8, global_experts=256))
    assert groups
    for family in groups:
        assert len(set(family)) == len(family)
        assert all(allowed(config, tokens=tokens, slots=8) for config in family)
        around = neighbours(family[0], family)
        assert family[0] not in around
        assert set(family[1:]) <= set(around)


@pytest.mark.parametrize("tokens", [1, 256, 1024, 2048])
def test_rows_cover_an_experts_mean_and_stay_within_the_kernels_tiles(tokens: int) -> None:
    found = rows_for(tokens, 8, 256)
    assert max(found) >= min(tokens * 8 / 256, 128)
    assert all(16 <= rows <= 128 for rows in found)


def test_configs_survive_json_and_a_foreign_key_is_refused() -> None:
    config = MoeConfig(path="sorted", gate_up=WIDE, down=replace(WIDE, columns=256), swapped=True)
    told = json.loads(json.dumps(as_json(config)))
    assert from_json(told) == config
    with pytest.raises(ValueError, match="BLOCK_SIZE_M"):
        from_json({**told, "BLOCK_SIZE_M": 64})


def test_a_table_of_an_earlier_version_is_read_unless_it_asks_for_what_the_kernel_no_longer_has() -> None:
    config = MoeConfig(path="sorted", gate_up=WIDE, down=WIDE)
    assert from_json({**as_json(config), "sum_in_down": False}) == config
    with pytest.raises(ValueError, match="faster nowhere"):
        from_json({**as_json(config), "sum_in_down": True})


def test_the_sorted_path_has_one_row_count_for_both_products() -> None:
    with pytest.raises(ValueError, match="64 != 32"):
        MoeConfig(path="sorted", gate_up=WIDE, down=replace(WIDE, rows=32))


FEW = MoeConfig(path="pairs", gate_up=replace(WIDE, rows=1), down=replace(WIDE, rows=1))
MANY = MoeConfig(path="sorted", gate_up=WIDE, down=WIDE)
CHIP = Device(name="NVIDIA H200", capability="9.0")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table in force: 8 tokens by ours, 512 by ours, 2,048 by the engine."""
    batches = {
        "8": {"by": "ours", "config": as_json(FEW)},
        "512": {"by": "ours", "config": as_json(MANY)},
        "2048": {"by": "engine", "config": as_json(replace(MANY, group=4))},
    }
    entry = {"device": asdict(CHIP), "shape": asdict(TP8), "batches": batches}
    file = tmp_path / "tiles.json"
    file.write_text(json.dumps({"entries": [entry]}))
    monkeypatch.setenv(VARIABLE, str(file))
    return file


def chosen(tokens: int, shape: Shape = TP8, device: Device | None = CHIP) -> MoeConfig:
    return choose(shape, tokens=tokens, slots=8, global_experts=256, device=device)


@pytest.mark.usefixtures("table")
def test_a_measured_table_wins_for_the_nearest_batch_it_can_carry() -> None:
    assert chosen(6) == FEW
    assert chosen(400) == MANY
    assert chosen(16) == rule(TP8, tokens=16, slots=8, global_experts=256, device=CHIP)
    other = replace(TP8, hidden=4096)
    assert chosen(400, other) == rule(other, tokens=400, slots=8, global_experts=256, device=CHIP)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("device", [None, replace(CHIP, name="NVIDIA H100"), replace(CHIP, capability="10.0")])
def test_what_was_measured_on_one_chip_says_nothing_of_another(device: Device | None) -> None:
    assert chosen(400, device=device) == rule(TP8, tokens=400, slots=8, global_experts=256, device=device)
    assert not engine_is_faster(TP8, tokens=2048, device=device)


@pytest.mark.usefixtures("table")
def test_a_batch_that_was_no_faster_is_the_engines_inside_it_and_has_tiles_outside() -> None:
    left = [tokens for tokens in (1, 8, 512, 1500, 2048, 8192) if engine_is_faster(TP8, tokens=tokens, device=CHIP)]
    assert left == [1500, 2048, 8192]
    assert chosen(2048) == replace(MANY, group=4)


def test_a_table_must_say_whose_kernel_a_batch_is(table: Path) -> None:
    told = json.loads(table.read_text())
    told["entries"][0]["batches"]["8"]["by"] = "nobody"
    with pytest.raises(ValueError, match="nobody"):
        parse(told)


def test_the_shipped_table_is_of_one_chip_and_every_batch_of_it_can_be_carried() -> None:
    for (device, shape), batches in parse(json.loads(SHIPPED.read_text())).items():
        assert device == CHIP
        size = 1 if shape.dtype == "fp8" else 2
        for tokens, found in batches.items():
            assert allowed(found.config, tokens=tokens, slots=8)
            assert found.config.fits("sm90", row_bytes=size, weight_bytes=size)


def test_a_table_that_is_named_and_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/tiles.json")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        chosen(1)


def test_a_plugin_that_nobody_named_imports_nothing() -> None:
    program = """
import sys
from assay.kernels.vllm_plugin import register
register()
print([name for name in ("torch", "triton", "vllm", "numpy", "pydantic") if name in sys.modules])
"""
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, env={"PATH": "/usr/bin"}, stdout=subprocess.PIPE, check=True, text=True)
    assert done.stdout.strip() == "[]"


def _cell(tokens: int, ours_s: float, engine_s: float | None) -> dict[str, object]:
    theirs = {"problem": "vLLM is not installed"} if engine_s is None else {"median_s": engine_s}
    ours = {"median_s": ours_s, "config": as_json(MANY)}
    return {
        "slice": "GLM-5 TP8", "dtype": "bf16", "tokens": tokens, "routing": "uniform", "ours": ours, "vllm": theirs,
    }  # fmt: skip


def _run(*cells: dict[str, object], device: Device = CHIP, **more: object) -> dict[str, object]:
    return {"device": asdict(device), "cells": list(cells), **more}


def test_a_batch_is_the_engines_unless_ours_gains_one_percent() -> None:
    cells = [_cell(1, 1e-4, 1.011e-4), _cell(2, 1e-4, 1.009e-4), _cell(4, 1e-4, 0.9e-4), _cell(8, 1e-4, None)]
    (entry,) = merged([_run(*cells)])["entries"]
    assert [entry["batches"][batch]["by"] for batch in "1248"] == ["ours", "engine", "engine", "ours"]


def test_one_run_that_disagrees_leaves_a_batch_to_the_engine_whatever_the_order() -> None:
    runs = [_run(_cell(8, 1e-4, 3e-4)), _run(_cell(8, 2e-4, 2.01e-4)), _run(_cell(8, 1e-4, 2e-4))]
    for order in (runs, runs[::-1]):
        (entry,) = merged(order)["entries"]
        batch = entry["batches"]["8"]
        assert batch["by"] == "engine"
        assert (batch["ours_s"], batch["engine_s"]) == (1e-4, 2e-4)
        assert [one["engine_s"] for one in batch["runs"]] == [2.01e-4, 2e-4, 3e-4]


def test_tiles_are_those_that_won_beside_the_others_in_one_run_where_there_is_one() -> None:
    wide = replace(MANY, blocks_per_sm=4)
    first, second = _cell(8, 1e-4, 3e-4), _cell(8, 1e-4, 2e-4)
    tried = [{"config": as_json(one), "median_s": 1e-4} for one in (MANY, wide)]
    second["ours"] = {"median_s": 1e-4, "config": as_json(wide), "tried": tried}
    third = _cell(8, 1e-4, 1.5e-4)
    found = {
        number: merged([_run(one) for one in runs]) for number, runs in {2: (first, second), 1: (first, third)}.items()
    }
    chosen = {number: from_json(value["entries"][0]["batches"]["8"]["config"]) for number, value in found.items()}
    assert chosen == {2: wide, 1: MANY}


def test_of_two_runs_the_one_where_ours_did_worse_is_told_with_the_spread_of_both() -> None:
    shown = {"distinct_experts": 8.0, "floor_s": 5e-5, "torch": {"problem": "none"}}
    runs = [_run({**_cell(8, 1e-4, 1.5e-4), **shown}), _run({**_cell(8, 1.2e-4, 1.5e-4), **shown})]
    assert list(moe_tables.table(points(runs)))[-1].split(" | ")[4:8] == [
        "120.0 (42%)",
        "150.0 (33%)",
        "-",
        "1.25 (1.250-1.500, 2 runs)",
    ]


def test_runs_of_an_earlier_kernel_and_of_other_devices_say_nothing_of_this_one() -> None:
    narrow = {**_cell(8, 1e-4, 0.5e-4), "dtype": "fp8"}
    other = replace(CHIP, name="NVIDIA H100")
    runs = [
        _run(narrow),
        _run({**narrow, "vllm": {"median_s": 2e-4}}, kernel=KERNEL),
        _run(_cell(8, 1e-4, 3e-4)),
        _run(_cell(8, 1e-4, 0.5e-4), device=other),
    ]
    found = {
        (entry["device"]["name"], entry["shape"]["dtype"]): entry["batches"]["8"] for entry in merged(runs)["entries"]
    }
    assert {key: batch["by"] for key, batch in found.items()} == {
        ("NVIDIA H200", "fp8"): "ours",
        ("NVIDIA H200", "bf16"): "ours",
        ("NVIDIA H100", "bf16"): "engine",
    }
    assert len(found["NVIDIA H200", "fp8"]["runs"]) == 1


def recorded() -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted(RECORDED.glob("moe_kernel_*.json"))]


def test_the_shipped_table_is_what_the_recorded_runs_say() -> None:
    assert json.loads(SHIPPED.read_text()) == merged(recorded())


def test_the_tables_of_the_page_are_what_the_recorded_runs_say() -> None:
    page = (RECORDED.parents[2] / "docs/gpu.md").read_text(encoding="utf-8").splitlines()
    rows = list(moe_tables.table(points(recorded())))
    assert len(rows) == 2 + 60
    assert [row for row in rows if row not in page] == []


def test_in_fp8_on_a_hopper_the_rule_stays_within_four_percent_of_the_best_tiles_that_were_tried() -> None:
    sets = ("second", "third", "fourth")
    runs = [path for number in sets for path in RECORDED.glob(f"moe_kernel_fp8_*_{number}.json")]
    losses = [one.loss for run in runs for one in choices(json.loads(run.read_text()))]
    assert len(losses) == 31
    assert all(loss is not None and loss < 0.04 for loss in losses)


@pytest.mark.parametrize("capability", ["8.9", "12.0"])
@pytest.mark.parametrize("tokens", [64, 256])
def test_weights_are_the_left_operand_only_where_a_hoppers_instructions_ask_for_it(
    tokens: int, capability: str
) -> None:
    narrow = replace(TP8, dtype="fp8")
    other = replace(CHIP, capability=capability)
    here, there = (rule(narrow, tokens=tokens, slots=8, global_experts=256, device=one) for one in (CHIP, other))
    assert (here.swapped, there.swapped) == (True, False)
    assert (here.down_span, there.down_span) == (4, 1)
