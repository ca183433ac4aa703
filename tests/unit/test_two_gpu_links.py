"""Collectives between ranks: their checks and what is written, over two processes without a GPU. Needs PyTorch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the ranks need PyTorch, which Assay does not install")

from benchmarks.gpu import two_gpu_links  # noqa: E402 - after the skip
from torch import distributed  # noqa: E402

from assay.probes.ceilings import gpu_links, gpu_program  # noqa: E402
from assay.records.device import Collective  # noqa: E402
from assay.roofline.communication import volume_factor  # noqa: E402

WORLD = 2


class OnProcessors(gpu_links.Ranks):
    """Timed by wall clock; nothing is captured."""

    device = "cpu"

    def time(self, work: Callable[[], object], calls: int) -> tuple[list[float], str]:
        begun_s = time.perf_counter()
        for _ in range(calls):
            work()
        return self.slowest([(time.perf_counter() - begun_s) / calls]), "by wall clock"


def rank_of_two(rank: int, world: int, folder: str) -> None:
    gpu_links.SIZES = (4096, 65536)
    store = distributed.FileStore(f"{folder}/store", world)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=world)
    ranks = OnProcessors(rank, world, Path(folder) / "readings.jsonl")
    parts = (gpu_links.nccl, two_gpu_links.variant("nccl_ll"), gpu_links.all_to_all, gpu_links.all_gather)
    for part in (*parts, gpu_links.one_shot, gpu_links.reduce_scatter):
        ranks.run(part.__name__, part)
    distributed.destroy_process_group()


def test_two_ranks_check_every_message_and_write_curves(tmp_path: Path) -> None:
    readings, problems = gpu_links.measure_links(WORLD, tmp_path, 60.0, rank_of_two)

    assert set(problems) == {"one_shot"}, "it needs a GPU; what follows is measured all the same"
    assert all(one["correct"] for one in readings)
    curves = {(one["collective"], one["algorithm"]) for one in gpu_program.curves(readings, "two processes")}
    assert curves == {
        ("all_reduce", "nccl"), ("all_reduce", "nccl-ll"), ("all_to_all", "nccl"), ("all_gather", "nccl"),
        ("reduce_scatter", "nccl"),
    }  # fmt: skip


def test_a_variable_of_a_variant_ends_with_its_group() -> None:
    before = os.environ.get("NCCL_PROTO")
    with two_gpu_links.set_to({"NCCL_PROTO": "LL"}):
        assert os.environ["NCCL_PROTO"] == "LL"
    assert os.environ.get("NCCL_PROTO") == before


def test_nccls_log_tells_which_settings_were_read(tmp_path: Path) -> None:
    line = "host:12:13 [0] NCCL INFO {} set by environment to {}\n"
    for rank in range(2):
        text = line.format("NCCL_NVLS_ENABLE", "0.") + "host:12:13 [0] NCCL INFO Channel 00/24 : 0 1\n"
        (tmp_path / f"nccl-{rank}.log").write_text(text + line.format("NCCL_PROTO", "LL"))

    assert two_gpu_links.settings_read(tmp_path) == {"NCCL_NVLS_ENABLE 0": 2, "NCCL_PROTO LL": 2}


@pytest.mark.parametrize("collective", ["all_reduce", "all_to_all", "all_gather", "reduce_scatter"])
def test_a_curve_is_fitted_with_the_volume_that_the_estimate_counts(collective: Collective) -> None:
    assert gpu_program.VOLUMES[collective](8) == pytest.approx(volume_factor(collective, 8))
