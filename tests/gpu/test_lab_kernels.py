"""The lab's own kernel and data, on the CPU by Triton's interpreter, in fp16: it has no product of bf16."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")

from benchmarks.gpu.moe_calls import Task, ours  # noqa: E402 - after the skips

from assay.kernels.device_timing import relative_error  # noqa: E402
from assay.kernels.moe import UnsupportedError  # noqa: E402
from assay.kernels.tiles import MoeConfig, Tile  # noqa: E402
from assay.lab.on_gpu.expert_data import answers, make_batch, make_experts  # noqa: E402
from assay.lab.on_gpu.implementations import cublas_loop  # noqa: E402
from assay.lab.on_gpu.plain_grouped import plain_moe, sorted_pairs  # noqa: E402

SHAPE = {"experts": 16, "top_k": 2, "hidden": 256, "width": 128}


@pytest.mark.parametrize("local", [16, 4])
@pytest.mark.parametrize("tokens", [1, 9, 40])
def test_the_plain_kernel_agrees_with_float64_in_fp8_blocks(local: int, tokens: int) -> None:
    held = make_experts({**SHAPE, "local_experts": local, "dtype": "fp8"}, device="cpu")
    batch = make_batch(held, tokens, 0.5, 0)
    rows, wanted = answers(held, batch)
    scales = {"w13_scale": held.w13_scale, "w2_scale": held.w2_scale}
    found = plain_moe(batch.x, held.w13, held.w2, batch.weights, batch.ids, expert_map=held.expert_map, **scales)
    if wanted.norm() > 0:
        assert relative_error(found[rows], wanted) < 0.08
    else:
        assert not found[rows].any()


def test_a_loop_over_experts_agrees_with_float64() -> None:
    held = make_experts({**SHAPE, "local_experts": 4, "dtype": "bf16"}, device="cpu")
    batch = make_batch(held, 9, 0.0, 1)
    rows, wanted = answers(held, batch)
    assert relative_error(cublas_loop(held, batch)()[rows], wanted) < 0.02


@pytest.mark.parametrize("tokens", [1, 7, 64])
def test_every_local_pair_stands_in_exactly_one_tile_of_its_expert(tokens: int) -> None:
    held = make_experts({**SHAPE, "local_experts": 4, "dtype": "fp8"}, device="cpu")
    batch = make_batch(held, tokens, 1.0, 2)
    table, expert = sorted_pairs(batch.ids, held.expert_map, 4, 16)
    chosen = held.expert_map[batch.ids.flatten().long()]
    seen = []
    for tile, which in enumerate(expert.tolist()):
        pairs = [one for one in table[tile * 16 : tile * 16 + 16].tolist() if one < batch.ids.numel()]
        assert all(int(chosen[pair]) == which for pair in pairs)
        seen += pairs
    assert sorted(seen) == [pair for pair in range(batch.ids.numel()) if chosen[pair] >= 0]


def test_uneven_routing_hits_fewer_experts_than_even_routing() -> None:
    held = make_experts({**SHAPE, "experts": 64, "local_experts": 64, "hidden": 128, "dtype": "fp8"}, device="cpu")
    even, uneven = (make_batch(held, 16, exponent, 0).local_counts(held)[0] for exponent in (0.0, 2.0))
    assert uneven < even


def test_the_benchmark_calls_our_kernel_with_the_tiles_that_it_is_given() -> None:
    held = make_experts({**SHAPE, "local_experts": 4, "dtype": "fp8"}, device="cpu")
    task = Task.of(held, [make_batch(held, 9, 0.0, seed) for seed in (0, 1)])
    tile = Tile(rows=16, columns=128, depth=128, warps=4, stages=2)
    calls = ours(task, MoeConfig(path="sorted", gate_up=tile, down=tile))
    assert len(calls) == 2
    assert relative_error(calls[0]()[task.rows], task.wanted) < 0.16
    shallow = replace(tile, depth=64)
    with pytest.raises(UnsupportedError, match="depth of 128"):
        ours(task, MoeConfig(path="sorted", gate_up=shallow, down=shallow))[0]()
