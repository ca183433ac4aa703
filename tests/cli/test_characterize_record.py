"""`assay characterize` on the record of a campaign that ran on another machine, as whoever is sent it would ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.gpu.moe_model import config
from click.testing import CliRunner

from assay.api import plan, status
from assay.api.characterize import Question
from assay.api.characterize import characterize as ask
from assay.api.measured_run import of_campaign
from assay.api.recorded_target import differences, shape_of
from assay.cli.characterize import characterize
from assay.errors import UsageError
from assay.models import load
from assay.records.attribution import Characterization
from assay.records.spec import CampaignSpec, Target
from assay.render.progress import QuietProgress
from assay.roofline.experts import RANDOM_WEIGHTS, UNIFORM
from assay.store.spec_file import write_spec
from tests.cli.test_characterize import shown

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "examples" / "gpu" / "h200-vllm"
CEILINGS = ROOT / "examples" / "ceilings" / "one-h200.json"
LAYERS, COLUMNS, VOCABULARY = 12, 256, 32768
OVERLAPPING_OFF = "r0006"
"""The run of the campaign's control without asynchronous scheduling."""


def model(folder: Path, layers: int = LAYERS) -> str:
    (folder / "config.json").write_text(json.dumps(config(layers, COLUMNS, VOCABULARY)), encoding="utf-8")
    return str(folder)


def asked(**question: Any) -> Characterization:
    return ask(Question(folder=RECORD, **question), QuietProgress())


def test_without_its_model_a_record_still_tells_what_was_measured_and_how_to_get_the_estimate() -> None:
    found = asked(run="r0002")

    assert found.ceilings is None  # this machine's say nothing about that run
    assert found.held_loads == []
    assert found.run is not None
    assert [load.name for load in found.run.loads] == ["main", "c16"]
    assert any("no estimate" in note and "--model" in note and "glm5-slice" in note for note in found.notes)
    assert sum(part.seconds for part in found.attributions[0].parts) == pytest.approx(found.attributions[0].measured_s)


def test_every_operating_point_is_held_against_the_estimate_on_the_machine_of_the_record(tmp_path: Path) -> None:
    found = asked(run="r0002", model=model(tmp_path), measured=CEILINGS)

    assert "H200" in found.machine
    assert [(one.load.name, one.running, one.shared_steps) for one in found.held_loads] == [
        ("main", 64, True),
        ("c16", 16, True),
    ]
    assert [one.load.runs for one in found.held_loads] == [["r0002"], ["r0002"]]
    assert all(one.floor_s < one.step.mid < one.expected_s.mid for one in found.held_loads)
    assert any("agree with the record" in note for note in found.notes)


def test_without_a_run_the_operating_points_are_those_of_all_runs_of_the_baseline(tmp_path: Path) -> None:
    main, few = asked(model=model(tmp_path), measured=CEILINGS).held_loads

    assert main.load.runs[:8] == ["r0001", "r0002", "r0003", "r0004", "r0005", "r0010", "r0016", "r0018"]
    assert len(main.load.runs) == 15
    assert [round(1e3 * one.load.tpot_s, 2) for one in (main, few)] == [6.88, 4.05]
    assert main.load.spread_s is not None
    assert main.load.spread_s[0] < main.load.tpot_s < main.load.spread_s[1]


def test_ceilings_of_the_records_machine_go_before_those_of_its_kind(tmp_path: Path) -> None:
    kind, own = (asked(run="r0002", model=model(tmp_path), measured=file) for file in (None, CEILINGS))

    assert any("fingerprint 489724f96862" in note and "--measured" in note for note in kind.notes)
    assert kind.held_loads[0].expected_s != own.held_loads[0].expected_s


def test_a_model_that_is_not_the_records_is_told_with_the_numbers(tmp_path: Path) -> None:
    found = asked(run="r0002", model=model(tmp_path, layers=6), measured=CEILINGS)

    assert any("not the model of the record" in note and "layers 6, there 12" in note for note in found.notes)


def gap_s(**gaps: float) -> float | None:
    """Of r0002 with these gaps between chunks; its mean time per token is 6.88 ms."""
    state = status(RECORD)
    run = next(run for run in state.runs if run.intent.run_id == "r0002")
    assert run.outcome is not None
    assert run.outcome.measures is not None
    itl = run.outcome.measures.itl.model_copy(update=gaps)
    measures = run.outcome.measures.model_copy(update={"itl": itl})
    changed = run.model_copy(update={"outcome": run.outcome.model_copy(update={"measures": measures})})
    found = of_campaign(state.model_copy(update={"runs": [changed]}), "r0002")
    assert found is not None
    return found.gap_s


def test_a_median_gap_of_chunks_that_come_in_pairs_is_not_taken_for_a_step() -> None:
    assert gap_s(mean_s=6.9e-3, p50_s=6.5e-3) == 6.5e-3
    assert gap_s(mean_s=9.0e-3, p50_s=6.5e-3) is None
    assert gap_s(mean_s=6.9e-3, p50_s=7.0e-3) is None


def test_the_table_names_its_columns_and_fits_a_narrow_terminal(tmp_path: Path) -> None:
    text = shown(asked(model=model(tmp_path), measured=CEILINGS), 80)
    table = text[text.index("estimate held against the run") : text.index("to know")]

    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table
    assert "256+" in table
    assert "computed in steps of decode" in " ".join(table.split())


def test_the_page_tells_what_the_command_tells(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")

    held = [
        (words, one)
        for words, routing in (("baseline", UNIFORM), ("baseline, zipf:1", None))
        for one in asked(model=model(tmp_path), measured=CEILINGS, routing=routing).held_loads
    ]
    for words, one in held:
        times = [one.floor_s, one.step.mid, one.expected_s.mid - one.step.mid, one.expected_s.mid]
        told = [f"{1e3 * each:.2f}" for each in times]
        row = next(line for line in page.splitlines() if line.startswith(f"| {words} | {one.running} | {told[0]}"))
        cells = [cell.strip() for cell in row.split("|")[3:-1]]
        assert [cell.split()[0].strip(",") for cell in cells] == [
            *told,
            f"{1e3 * one.load.tpot_s:.2f}",
            f"{one.ratio:.2f}",
        ]


@pytest.mark.parametrize("streams", [64, 16])
def test_the_page_tells_what_the_traces_of_a_step_tell(tmp_path: Path, streams: int) -> None:
    page = " ".join((ROOT / "docs" / "gpu.md").read_text(encoding="utf-8").split())
    traces = ROOT / "examples" / "gpu" / "h200-step"
    question = Question(
        folder=tmp_path, model=model(tmp_path), on="H200", measured=CEILINGS, routing=RANDOM_WEIGHTS,
        run=str(traces / f"bench_c{streams}"), trace=traces / f"trace_c{streams}.json.gz",
    )  # fmt: skip
    found = ask(question, QuietProgress())
    held = found.held

    assert held is not None
    assert f"{1e3 * held.expected_s.mid:.2f} ms where {1e3 * held.measured_s:.2f}" in page or (
        f"{1e3 * held.expected_s.mid:.2f} where {1e3 * held.measured_s:.2f}" in page
    )
    assert f"({100 * (held.expected_s.mid / held.measured_s - 1):.0f}%)" in page
    assert any("vllm 0.26.0 does it by default" in note for note in found.notes)  # the load test's server said so


def test_with_the_routing_of_its_weights_the_estimate_is_within_20_percent_with_and_without_overlapping(
    tmp_path: Path,
) -> None:
    folder = model(tmp_path)
    held = {
        run: asked(run=run, model=folder, measured=CEILINGS, routing=RANDOM_WEIGHTS).held_loads
        for run in ("r0001", OVERLAPPING_OFF)
    }

    for one in [each for loads in held.values() for each in loads]:
        assert one.ratio == pytest.approx(1.0, abs=0.2)
        assert one.inside
    for used, off in zip(held["r0001"], held[OVERLAPPING_OFF], strict=True):
        expected_s, measured_s = off.expected_s.mid - used.expected_s.mid, off.load.tpot_s - used.load.tpot_s
        assert expected_s == pytest.approx(measured_s, rel=0.1)  # which is what it was set by


def test_scheduling_is_read_from_the_record_and_told(tmp_path: Path) -> None:
    folder = model(tmp_path)

    overlapped = asked(run="r0001", model=folder, measured=CEILINGS).notes
    serial = asked(run=OVERLAPPING_OFF, model=folder, measured=CEILINGS).notes

    assert any(note.startswith("overlapped scheduling (vllm 0.26.0 does it by default)") for note in overlapped)
    assert any(note.startswith("serial scheduling (--no-async-scheduling)") for note in serial)


def test_programs_read_expected_and_measured_of_each_point(tmp_path: Path) -> None:
    words = ["--folder", str(RECORD), "--model", model(tmp_path), "--measured", str(CEILINGS), "--json"]
    done = CliRunner().invoke(characterize, words)

    assert done.exit_code == 0, done.output
    held = json.loads(done.stdout)["held_loads"]
    assert [one["load"]["name"] for one in held] == ["main", "c16"]
    assert all(one["expected_s"]["low"] < one["expected_s"]["mid"] < one["expected_s"]["high"] for one in held)


def test_a_plan_records_the_models_shape_so_that_its_folder_is_not_needed(tmp_path: Path) -> None:
    target = Target(engine="rehearsal", model="qwen2.5-7b", flags={"--box": "1xH100-SXM"})
    folder = tmp_path / "campaign"
    folder.mkdir()
    write_spec(folder / "assay.toml", CampaignSpec(target=target))
    plan(folder)
    state = status(folder)
    gone = state.model_copy(update={"model": state.model.model_copy(update={"path": "/nowhere/model"})})

    assert shape_of(gone, None, []) == load(state.model.path)


def test_a_record_that_was_computed_is_not_held_against_the_estimate_that_computed_it() -> None:
    state = status(RECORD)
    build = state.build.model_copy(update={"engine": "rehearsal"})
    found = of_campaign(state.model_copy(update={"build": build}), "r0002")

    assert found is not None
    assert found.loads == []
    assert found.source.startswith("SIMULATED")


def test_a_simulated_campaign_has_the_roofline_of_its_box_and_no_measured_run() -> None:
    found = ask(Question(folder=ROOT / "examples" / "glm5-rtxpro6000" / "record"), QuietProgress())

    assert "RTX PRO 6000" in found.machine
    assert found.points
    assert (found.run, found.efficiency, found.attributions, found.held_loads) == (None, None, [], [])
    assert any(note.startswith("SIMULATED run") for note in found.notes)


def test_a_model_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"neither config.json nor a GGUF"):
        asked(run="r0002", model=str(tmp_path), measured=CEILINGS)


def test_a_folder_holds_a_little_more_than_its_weights(tmp_path: Path) -> None:
    facts = status(RECORD).model

    assert differences(load(model(tmp_path)), facts) == []
    assert differences(load("qwen2.5-7b"), facts) != []
