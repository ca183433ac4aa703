"""The MoE kernel against float32, into outputs filled with NaN.

Without a GPU the kernels run in Triton's interpreter. It multiplies bf16 as if its bits were integers, so fp16 stands
for it; and it cuts fp8 off where a GPU rounds it, so errors of fp8 are about twice as large here as there.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: kernels cannot be run")
pytest.importorskip("triton", reason="triton is not installed: kernels cannot be run")

from assay.kernels.moe import UnsupportedError, fused_moe  # noqa: E402 - after the skips
from assay.kernels.tiles import MoeConfig, Tile  # noqa: E402
from tests.gpu.layers import (  # noqa: E402
    DEVICE,
    FP8,
    Layer,
    by_blocks,
    by_experts,
    by_rows,
    error,
    layer,
    narrowed,
    reference,
)

CLOSE = 2e-3
"""fp16 keeps 11 bits: an error of 5e-4 a rounding, of the activated products and of each slot's sum."""
CLOSE_FP8 = 0.16 if DEVICE == "cpu" else 0.08
"""4 bits of mantissa, cut off (interpreter) or rounded (GPU), twice."""


def config(path: str, depth: int = 32, columns: int = 32, **more: object) -> MoeConfig:
    rows = 1 if path == "pairs" else 16
    tile = Tile(rows=rows, columns=columns, depth=depth, warps=4, stages=2)
    return MoeConfig(path=path, gate_up=tile, down=replace(tile, columns=64), **more)


HALF = {
    "pairs": config("pairs", columns=32, depth=64),
    "scan": config("scan"),
    "scan by descriptors": config("scan", descriptors=True),
    "scan, swapped": config("scan", columns=64, swapped=True, down_span=2),
    "sorted": config("sorted"),
    "sorted, swapped, three blocks a loop": config("sorted", swapped=True, down_span=3, descriptors=True),
    "sorted by descriptors": config("sorted", descriptors=True, group=2),
}
NARROW = {
    "pairs": config("pairs", depth=128, columns=64),
    "pairs, two groups a step": config("pairs", depth=256, columns=64, overlap_launches=False),
    "scan, wide h": config("scan", depth=128, columns=64),
    "scan, fp8 h": config("scan", depth=128, columns=128),
    "sorted, fp8 h by descriptors": config("sorted", depth=128, columns=128, descriptors=True),
    "scan, fp8 h, swapped": config("scan", depth=128, columns=128, swapped=True, down_span=4),
    "scan, wide h, swapped": config("scan", depth=128, columns=64, swapped=True, down_span=2),
    "sorted, two blocks a loop": config("sorted", depth=128, columns=128, down_span=2, descriptors=True),
    "sorted, scales of two blocks": config("sorted", depth=128, columns=256, swapped=True),
}


def run(one: Layer, chosen: MoeConfig, **more: object) -> torch.Tensor:
    out = torch.full(one.x.shape, float("nan"), dtype=torch.float16, device=DEVICE)
    fused_moe(*one.arguments(), **one.options(), config=chosen, out=out, **more)
    return out


@pytest.mark.parametrize("tokens", [1, 3, 21])
@pytest.mark.parametrize("name", HALF)
def test_every_path_gives_the_layer_for_odd_numbers_of_tokens(name: str, tokens: int) -> None:
    if name == "pairs" and tokens > 3:
        pytest.skip("the pairs path is for a handful of tokens")
    one = layer(tokens)
    assert error(run(one, HALF[name]), reference(one)) < CLOSE


@pytest.mark.parametrize("name", HALF)
def test_all_tokens_may_go_to_one_expert_and_leave_the_others_empty(name: str) -> None:
    one = layer(3 if name == "pairs" else 37, slots=1)
    one.ids[:] = 5
    assert error(run(one, HALF[name]), reference(one)) < CLOSE


@pytest.mark.parametrize("name", HALF)
def test_experts_of_other_ranks_contribute_nothing_and_cost_no_unwritten_output(name: str) -> None:
    one = layer(4 if name == "pairs" else 19, experts=4)
    one.expert_map = torch.tensor([-1, 0, -1, 1, 2, -1, 3, -1], dtype=torch.int32, device=DEVICE)
    one.ids = (one.ids * 7 + 1) % 8
    one.ids[0] = torch.tensor([0, 7], device=DEVICE)
    found = run(one, HALF[name])
    assert not found[0].any()
    assert error(found, reference(one)) < CLOSE


@pytest.mark.parametrize("name", HALF)
def test_sizes_that_no_tile_divides_are_padded_inside(name: str) -> None:
    one = layer(3, experts=3, intermediate=40, hidden=88)
    assert error(run(one, HALF[name]), reference(one)) < CLOSE


@pytest.mark.parametrize("name", ["pairs", "scan", "sorted"])
def test_rows_may_be_parts_of_wider_tensors(name: str) -> None:
    one = layer(3)
    wide = torch.full((3, 200), float("nan"), dtype=torch.float16, device=DEVICE)
    wide[:, :128] = one.x
    weights = torch.full((8, 128, 160), float("nan"), dtype=torch.float16, device=DEVICE)
    weights[:, :, :128] = one.w13
    strided = replace(one, x=wide[:, :128], w13=weights[:, :, :128])
    outs = torch.full((3, 300), float("nan"), dtype=torch.float16, device=DEVICE)
    fused_moe(*strided.arguments(), config=HALF[name], out=outs[:, :128])
    assert error(outs[:, :128], reference(one)) < CLOSE
    assert outs[:, 128:].isnan().all()


@pytest.mark.parametrize("quantize", [by_blocks, by_rows, by_experts])
@pytest.mark.parametrize("name", NARROW)
def test_fp8_weights_are_scaled_by_blocks_rows_or_experts(name: str, quantize) -> None:
    one = narrowed(layer(3, experts=4, intermediate=128, hidden=256), quantize)
    limit = CLOSE if name.startswith("pairs") else CLOSE_FP8
    assert error(run(one, NARROW[name]), reference(one)) < limit


@pytest.mark.parametrize("name", ["pairs", "scan, wide h"])
def test_activations_may_come_as_fp8_with_their_scales(name: str) -> None:
    one = narrowed(layer(3, experts=4, intermediate=128, hidden=256), by_blocks)
    groups = one.x.float().reshape(3, 2, 128)
    scale = groups.abs().amax(2) / 448
    narrow = (groups / scale[:, :, None]).reshape(3, 256).to(FP8)
    wide = (narrow.float().reshape(3, 2, 128) * scale[:, :, None]).reshape(3, 256)
    wanted = reference(replace(one, x=wide))
    given = replace(one, x=narrow)
    limit = CLOSE if name.startswith("pairs") else CLOSE_FP8
    assert error(run(given, NARROW[name], x_scale=scale), wanted) < limit


@pytest.mark.parametrize("name", HALF)
def test_equal_inputs_give_equal_bits(name: str) -> None:
    one = layer(4)
    assert torch.equal(run(one, HALF[name]), run(one, HALF[name]))


def test_a_given_scratch_is_used_and_may_share_memory_with_the_output() -> None:
    one = layer(3)
    shared = torch.full((6 * 128,), float("nan"), dtype=torch.float16, device=DEVICE)
    other = torch.full((6 * 128,), float("nan"), dtype=torch.float16, device=DEVICE)
    out = shared[: 3 * 128].view(3, 128)
    for name in ("pairs", "scan", "sorted"):
        fused_moe(*one.arguments(), config=HALF[name], out=out, scratch=(shared, other))
        assert error(out, reference(one)) < CLOSE
    assert not other.isnan().all()


def test_no_tokens_are_an_empty_result() -> None:
    one = layer(1)
    empty = replace(one, x=one.x[:0], ids=one.ids[:0], weights=one.weights[:0])
    assert fused_moe(*empty.arguments()).shape == (0, 128)


def test_what_the_kernel_cannot_do_is_refused_with_the_values() -> None:
    one = layer(2)
    with pytest.raises(UnsupportedError, match="last dimension"):
        fused_moe(one.x, one.w13.transpose(1, 2).contiguous().transpose(1, 2), one.w2, one.weights, one.ids)
    with pytest.raises(UnsupportedError, match="x's type"):
        fused_moe(one.x.float(), one.w13, one.w2, one.weights, one.ids)
    with pytest.raises(UnsupportedError, match="a row for each of x's 2"):
        fused_moe(one.x, one.w13, one.w2, one.weights[:1], one.ids[:1])
    with pytest.raises(UnsupportedError, match="cannot carry 100 x 2"):
        fused_moe(*layer(100).arguments(), config=HALF["pairs"])
    with pytest.raises(UnsupportedError, match="depth of 128"):
        run(narrowed(layer(2, experts=4, intermediate=128, hidden=256), by_blocks), HALF["scan"])
