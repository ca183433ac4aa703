"""`assay characterize --trace`: the estimate held against a profiled decode step, as its user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from assay.api.characterize import Question
from assay.api.characterize import characterize as ask
from assay.cli.characterize import characterize
from assay.records.attribution import Characterization
from assay.render.progress import QuietProgress
from tests.cli.test_characterize import shown
from tests.unit.bench_records import distribution, measures, result
from tests.unit.kineto import Tape, decode_tape

ROOT = Path(__file__).parents[2]
LAYERS = 16
CONFIG = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 6144,
    "num_hidden_layers": LAYERS, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128,
    "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 256, "intermediate_size": 1024,
    "decoder_sparse_step": 1, "mlp_only_layers": [],
    "norm_topk_prob": True, "vocab_size": 32768, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


def model(folder: Path) -> str:
    path = folder / "model"
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return str(path)


def load_test(folder: Path, *, gap_s: float, streams: float = 64.0) -> str:
    path = folder / f"bench-{streams:g}"
    path.mkdir()
    gaps = distribution(gap_s, spread=0.02)
    told = measures(tpot_s=1.2 * gap_s, itl=gaps, itl_per_token=gaps, mean_in_flight=streams)
    (path / "result.json").write_text(result(measures=told).model_dump_json(), encoding="utf-8")
    return str(path)


def asked(folder: Path, *, run: str | None = None, tape: Tape | None = None) -> Characterization:
    trace = (tape or decode_tape(layers=LAYERS)).write(folder / "trace.json.gz")
    measured = ROOT / "examples" / "gpu" / "h200" / "ceilings.json"
    question = Question(folder=folder, model=model(folder), on="H200", measured=measured, run=run, trace=trace)
    return ask(question, QuietProgress())


def test_the_estimate_is_of_the_traces_own_point_and_measured_is_the_load_test(tmp_path: Path) -> None:
    held = asked(tmp_path, run=load_test(tmp_path, gap_s=11.5e-3)).held

    assert held is not None
    assert (held.sequences, held.context_tokens) == (64, 320)
    assert held.measured_s == pytest.approx(11.5e-3, rel=0.01)
    assert "median gap between tokens" in held.measured_by
    assert {row.operation for row in held.operations if row.ratio is None} <= {"other"}
    assert held.between_s == pytest.approx(held.measured_s - sum(row.measured_s or 0 for row in held.operations))


def test_the_table_sums_up_and_fits_a_narrow_terminal(tmp_path: Path) -> None:
    found = asked(tmp_path, run=load_test(tmp_path, gap_s=16e-3))
    text = shown(found, 80)
    held = text[text.index("estimate held against the trace") :]

    assert "decode 64 at 320" in held.splitlines()[0]
    assert "not within 20%" in held.splitlines()[1]
    assert "between kernels: nothing runs for" in " ".join(held.split())
    assert max(len(line) for line in held.splitlines()) <= 80
    assert "…" not in held[: held.index("where they differ")]


def test_a_load_test_of_another_load_is_not_held_against_the_trace(tmp_path: Path) -> None:
    found = asked(tmp_path, run=load_test(tmp_path, gap_s=4e-3, streams=16.0))

    assert found.held is not None
    assert "the trace's own steps" in found.held.measured_by
    assert any("16 sequences at a time, the trace 64" in note for note in found.notes)


def test_a_trace_without_marks_of_steps_says_why_there_is_no_table(tmp_path: Path) -> None:
    tape = Tape()
    for _ in range(3):
        tape.step("", [("fused_moe_kernel", 9.0)], annotate=False, graph=False)
    found = asked(tmp_path, tape=tape)

    assert found.held is None
    assert any("no decode steps are told apart" in note for note in found.notes)


def test_a_trace_alone_still_tells_its_operations(tmp_path: Path) -> None:
    trace = decode_tape(layers=2).write(tmp_path / "trace.json.gz")

    found = CliRunner().invoke(
        characterize, ["--folder", str(tmp_path), "--on", "H200", "--trace", str(trace), "--plain"]
    )

    assert found.exit_code == 0, found.output
    line = next(line for line in found.stdout.splitlines() if line.startswith("experts gate-up"))
    assert line.split()[2:4] == ["2", "680"]
