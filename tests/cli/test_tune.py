"""`assay tune moe`, and where a tuned file goes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from assay import models
from assay.api.tune import TuneQuestion, _report, _write
from assay.cli import run_command
from assay.lab.shapes import rank_shape
from assay.lab.tuning import config_files
from assay.lab.tuning.space import Config
from assay.records.estimate import Layout, Routing

TILES = Config(16, 64, 128, 1, 4, 4)
ROWS = [
    {"kind": "device", "device": "NVIDIA H200", "triton": "3.6.0", "version": "0.26.0"},
    {
        "kind": "winner", "tokens": 64, "config": TILES.as_engine(), "time_s": 5e-4, "default_s": 6e-4, "measured": 40,
        "pruned": 900,
    },
    {"kind": "search", "took_s": 61.0},
]  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "place"),
    [
        ("vllm", "E=256,N=256,device_name=NVIDIA_H200.json"),
        ("sglang", "configs/triton_3_6_0/E=256,N=256,device_name=NVIDIA_H200.json"),
    ],
)
def test_the_tuned_file_lies_where_the_engine_looks(engine: config_files.Engine, place: str, tmp_path: Path) -> None:
    question = TuneQuestion(
        model="glm-5", layout=Layout(tp=8), engine=engine, folder=tmp_path, routing=Routing(), tokens=(64,)
    )
    shape = rank_shape(models.load("glm-5"), question.layout)
    found = _report(question, shape, ROWS)
    path = _write(question, shape, found, ROWS)
    assert path.relative_to(tmp_path).as_posix() == place
    assert config_files.read(path.read_text()) == {64: TILES}
    assert found.points[0].default_s == 6e-4


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is here")
def test_without_a_gpu_tuning_says_where_to_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["tune", "moe", "glm-5", "--layout", "tp8"]) == 5
    assert "nothing was measured" in capsys.readouterr().err


def test_a_dense_model_has_nothing_to_tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["tune", "moe", "llama-3.1-8b"]) == 2
