"""The lab: a rank's shape, tiles that fit, floors, verdicts between layouts, prices, and what the screen says."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from assay import models
from assay.errors import UsageError
from assay.lab import floors
from assay.lab.reports import report
from assay.lab.shapes import rank_shape
from assay.lab.tiles import CHIPS, Tile, chip_of
from assay.lab.whatif import Scene, prices
from assay.probes.ceilings.gpu_fit import alpha_beta
from assay.probes.devices import box
from assay.records.device import LinkCurve
from assay.records.estimate import Layout, OperatingPoint, Routing
from assay.records.lab import LabReport, Price
from assay.render.lab_view import lab_view, price_view
from assay.roofline import ceilings, step

TP8, EP8 = Layout(tp=8), Layout(tp=8, ep=8)
LAYOUTS = {"tp8": TP8, "tp8 ep8": EP8}


def shown(part: Any) -> str:
    console = Console(width=120, record=True, file=None, force_terminal=False, quiet=False)
    with console.capture() as captured:
        console.print(part)
    return captured.get()


def made(rows: list[dict[str, Any]]) -> LabReport:
    model = models.load("glm-5")
    shapes = {name: rank_shape(model, layout) for name, layout in LAYOUTS.items()}
    chips = [CHIPS["sm90"], CHIPS["sm120"]]
    return report(model, shapes, LAYOUTS, box("8xh200"), chips, Routing(), (1, 64), rows)


def row(layout: str, tokens: int, time_s: float, **more: Any) -> dict[str, Any]:
    distinct = {"tp8": 222.4, "tp8 ep8": 27.8}[layout]
    found = {"kind": "point", "layout": layout, "tokens": tokens, "implementation": "vllm", "distinct": distinct}
    times = {"time_s": time_s, "low_s": time_s, "high_s": time_s}
    return {**found, **times, "pairs": 512.0, "error": 1e-3, "correct": True, **more}


def test_a_rank_has_a_slice_of_every_expert_under_tp_and_whole_experts_under_ep() -> None:
    model = models.load("glm-5")
    tp, ep = rank_shape(model, TP8), rank_shape(model, EP8)
    assert (tp.local_experts, tp.width) == (256, 256)
    assert (ep.local_experts, ep.width) == (32, 2048)
    assert tp.local_experts * tp.expert_bytes == ep.local_experts * ep.expert_bytes
    assert tp.layers == 75


def test_a_dense_model_and_a_layout_that_does_not_divide_are_refused() -> None:
    with pytest.raises(UsageError, match="no routed experts"):
        rank_shape(models.load("llama-3.1-8b"), TP8)
    with pytest.raises(UsageError, match="does not divide the 256 experts"):
        rank_shape(models.load("glm-5"), Layout(tp=3, ep=3))


def test_the_floor_at_sixty_four_tokens_is_the_one_that_was_measured_against() -> None:
    limits = ceilings.of(box("h200").device)
    floor = floors.at(rank_shape(models.load("glm-5"), TP8), 64, 214, 512, limits)
    assert floor.bound == "memory"
    assert floor.floor_s == pytest.approx(214 * 3 * 6144 * 256 * 2 / 4.294e12, rel=0.01)


def test_a_tile_that_is_fast_on_one_chip_may_not_exist_on_another() -> None:
    fast = Tile(rows=128, columns=128, depth=64, stages=4, warps=8)
    assert fast.problem(CHIPS["sm90"], 2) is None
    assert fast.problem(CHIPS["sm120"], 2) == "128 KiB > 99: 3 stages fit"
    assert fast.problem(CHIPS["sm120"], 1) is None
    heavy = Tile(rows=256, columns=256, depth=64, stages=2, warps=8)
    assert "registers" in (heavy.problem(CHIPS["sm90"], 2) or "")


def test_a_chip_is_named_by_capability_or_by_a_known_device() -> None:
    assert chip_of("sm_120").smem_per_block_bytes == 99 * 1024
    assert chip_of("h200", box("h200").device).smem_per_block_bytes == 232_448
    with pytest.raises(UsageError, match="shared memory of 'abacus'"):
        chip_of("abacus")


def test_the_layout_whose_rank_is_faster_with_communication_wins() -> None:
    found = made([row("tp8", 64, 500e-6), row("tp8 ep8", 64, 800e-6)])
    (verdict,) = found.verdicts
    assert verdict.winner == "tp8"
    assert verdict.busiest["tp8"] == 1.0
    assert verdict.busiest["tp8 ep8"] > 1.0
    assert verdict.times_s["tp8"] == pytest.approx(500e-6 + verdict.communication_s["tp8"])


def test_layouts_that_differ_by_less_than_three_percent_are_not_told_apart() -> None:
    slow = made([row("tp8", 64, 500e-6), row("tp8 ep8", 64, 800e-6)]).verdicts[0]
    even = 500e-6 + slow.communication_s["tp8"] - slow.communication_s["tp8 ep8"]
    (verdict,) = made([row("tp8", 64, 500e-6), row("tp8 ep8", 64, even / slow.busiest["tp8 ep8"])]).verdicts
    assert verdict.winner is None


def test_a_wrong_result_has_no_share_of_the_floor_and_decides_nothing() -> None:
    found = made([row("tp8", 64, 500e-6, correct=False, error=0.7), row("tp8 ep8", 64, 600e-6)])
    assert found.points[0].share_of_floor is None
    assert found.verdicts == []
    assert any("was wrong: relative error 7.0e-01" in words for words in found.missing)
    assert "500.0 (wrong)" in shown(lab_view(found))


def test_without_a_gpu_floors_and_tiles_are_shown() -> None:
    text = shown(lab_view(made([])))
    assert "32 of 256 experts, hidden 6144, width 2048" in text
    assert "128 KiB > 99: 3 stages fit" in text
    assert text.rstrip().splitlines()[-1].split()[0] == "64"


def scene(curves: list[LinkCurve], **times_us: float) -> Scene:
    model = models.load("glm-5")
    point = OperatingPoint(phase="decode", sequences=64, context_tokens=2048)
    estimate = step.estimate(model, box("8xh200"), TP8, point)
    rows = [
        {"name": name.replace("_", "-"), "tokens": None if name == "l2_persistence" else 64, "what": name}
        | dict.fromkeys(("time_s", "low_s", "high_s"), time * 1e-06)
        for name, time in times_us.items()
    ]
    return Scene(
        rows=rows, step=estimate, step_s=0.05, tokens=64, moe_layers=75, layers=78, hidden=6144, world=8, curves=curves
    )


def found_price(scene_: Scene, ident: str) -> Price:
    return next(one for one in prices(scene_) if one.id == ident)


def test_a_persistent_kernel_is_worth_at_most_what_lies_above_reading_the_weights() -> None:
    price = found_price(scene([], experts=540, stream=500, ours=520), "persistent-kernel")
    assert price.saved_s is not None
    assert price.saved_s.high == pytest.approx(75 * 40e-6)
    assert price.saved_s.mid == pytest.approx(75 * 20e-6)
    assert price.gain.mid == pytest.approx(0.05 / (0.05 - 75 * 20e-6) - 1)


def test_two_batches_cost_more_than_they_hide_when_each_half_reads_nearly_all_experts() -> None:
    price = found_price(scene([], experts=540, half=500), "two-batch-overlap")
    assert price.saved_s is not None
    assert price.saved_s.high < 0
    assert price.gain.high < 0


def test_pinning_saves_once_a_step_and_not_once_a_layer() -> None:
    price = found_price(scene([], l2_persistence=4), "l2-persistence")
    assert price.saved_s is not None
    assert price.saved_s.mid == pytest.approx(4e-6)


def test_what_was_not_measured_has_no_price_and_says_why() -> None:
    every = prices(scene([]))
    assert [one.saved_s for one in every] == [None] * 6
    assert "as many GPUs" in (found_price(scene([]), "one-shot-all-reduce").problem or "")


def test_one_shot_is_priced_from_measured_curves_alone() -> None:
    def curve(algorithm: str, latency_s: float, basis: Any = "measured") -> LinkCurve:
        return LinkCurve(
            collective="all_reduce", world=8, algorithm=algorithm, latency_s=latency_s, bus_bytes_per_s=1e15,
            basis=basis, source="test",
        )  # fmt: skip

    measured = found_price(scene([curve("nccl", 20e-6), curve("one-shot", 8e-6)]), "one-shot-all-reduce")
    assert measured.saved_s is not None
    assert measured.saved_s.mid == pytest.approx(2 * 78 * 12e-6, rel=1e-3)
    assumed = found_price(scene([curve("nccl", 20e-6, "assumed"), curve("one-shot", 8e-6)]), "one-shot-all-reduce")
    assert assumed.saved_s is None


def test_prices_are_shown_as_milliseconds_and_percent_with_a_range() -> None:
    from assay.records.lab import PriceReport

    every = prices(scene([], experts=540, stream=500, ours=520))
    text = shown(price_view(PriceReport(model="glm-5", layout="tp8", device="x", step="estimated", prices=every)))
    line = next(line for line in text.splitlines() if line.startswith(" Persistent") and "ms" not in line)
    assert "1.500 (1.500 to 3.000)" in line
    assert "+3.1%" in line


def test_latency_and_bandwidth_are_found_again_from_noisy_times() -> None:
    sizes = [4096.0 * 4**power for power in range(8)]
    times = [(10e-6 + 1.75 * size / 400e9) * (1.02 if place % 2 else 0.98) for place, size in enumerate(sizes)]
    alpha, beta = alpha_beta(sizes, times, 1.75)
    assert alpha == pytest.approx(10e-6, rel=0.03)
    assert beta == pytest.approx(400e9, rel=0.03)


def test_a_link_without_latency_or_without_slope_still_has_a_line() -> None:
    alpha, beta = alpha_beta([1e6, 2e6], [1e-3, 2.2e-3], 1.0)
    assert alpha == 0
    assert beta == pytest.approx(1e9, rel=0.1)
    alpha, beta = alpha_beta([1e3, 2e3], [1e-5, 1e-5], 1.0)
    assert alpha == pytest.approx(1e-5)
    assert beta > 0


def test_layouts_with_the_same_floors_are_told_apart_by_what_the_floors_leave_out() -> None:
    told = " ".join(shown(lab_view(made([]))).split())
    assert "tp8 and tp8 ep8 have the same floors" in told
    assert "at 64 tokens: tp8 256 wide, its busiest rank x 1.00" in told
    assert "tp8 ep8 2,048 wide, its busiest rank x 1.09" in told
    measured = made([row(layout, 64, 1e-3) for layout in LAYOUTS])
    assert measured.verdicts
    assert not measured.notes


def test_a_device_that_is_neither_here_nor_named_is_called_assumed() -> None:
    model, shapes = models.load("glm-5"), {"tp8": rank_shape(models.load("glm-5"), TP8)}
    chips, assumed = [CHIPS["sm90"]], "assumed: no GPU is here"
    found = report(model, shapes, {"tp8": TP8}, box("h200"), chips, Routing(), (64,), [], assumed=assumed)
    assert shown(lab_view(found)).splitlines()[1] == assumed
    assert not found.notes
