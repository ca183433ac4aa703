"""Whatever is shown of a rehearsal says that it is simulated, and how its scaled numbers are to be read."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from rich.console import Console, RenderableType

from assay.api.rehearse import step_facts
from assay.records.rehearsal import CandidateOutlook, Chance, Outlook, PowerPoint
from assay.records.state import CampaignState
from assay.render import terminal
from assay.render.export import export
from assay.render.rehearsal_view import outlook_view, read_back, scale_sentence, step_view
from assay.render.report import report_html, report_markdown
from assay.testing.sample_state import sample_variants

ARGV = ["server", "--model", "m.json", "--port", "8080"]
FLAGS = {"--box": "8xRTX-PRO-6000", "--tp-size": 8, "--mem-fraction-static": 0.92, "--time-scale": 120,
         "--max-running-requests": 2048}  # fmt: skip


def rehearsed(state: CampaignState) -> CampaignState:
    """The same campaign, as if the rehearsal engine had run it on the founding story's target."""
    target = state.spec.target.model_copy(update={"engine": "rehearsal", "model": "glm-5-nvfp4", "flags": FLAGS})
    return state.model_copy(
        update={
            "spec": state.spec.model_copy(update={"target": target}),
            "build": state.build.model_copy(update={"engine": "rehearsal"}),
            "model": state.model.model_copy(update={"path": "glm-5-nvfp4"}),
        }
    )


REAL = sample_variants()
REHEARSED = {name: rehearsed(state) for name, state in REAL.items()}


def text_of(part: RenderableType) -> str:
    out = StringIO()
    Console(width=160, file=out).print(part)
    return out.getvalue()


@pytest.mark.parametrize("name", REHEARSED)
def test_every_section_of_the_page_is_labelled(name: str) -> None:
    state = REHEARSED[name]

    page = report_html(state, launch_commands={"baseline": "x"}, latencies=None, step=step_facts(state))
    headings = re.findall(r"<h2[^>]*>.*?</h2>", page)

    assert "<title>SIMULATED" in page
    assert headings
    assert all("SIMULATED" in heading for heading in headings)
    assert all("SIMULATED" in figure for figure in re.findall(r"<figcaption>.*?</figcaption>", page, re.DOTALL))


@pytest.mark.parametrize("name", REHEARSED)
def test_every_section_of_the_markdown_report_is_labelled(name: str) -> None:
    state = REHEARSED[name]

    page = report_markdown(state, launch_commands={"baseline": "x"}, step=step_facts(state))
    headings = [line for line in page.splitlines() if line.startswith(("# ", "## "))]

    assert all("SIMULATED" in heading for heading in headings)


@pytest.mark.parametrize("name", REHEARSED)
def test_the_terminal_views_are_labelled(name: str) -> None:
    state = REHEARSED[name]

    for view in (terminal.status_view(state, 0.0), terminal.verdict_table(state), terminal.headline_panel(state)):
        assert "SIMULATED" in text_of(view)


@pytest.mark.parametrize("kind", ["shell", "compose", "kubernetes"])
def test_an_exported_command_is_labelled(kind: str) -> None:
    assert export(kind, ARGV, {}, simulated=True).startswith("# SIMULATED")
    assert "SIMULATED" not in export(kind, ARGV, {})


def test_an_exported_json_document_is_labelled() -> None:
    assert "SIMULATED" in json.loads(export("json", ARGV, {}, simulated=True))["simulated"]
    assert "simulated" not in json.loads(export("json", ARGV, {}))


@pytest.mark.parametrize("name", REAL)
def test_a_real_campaign_is_not_labelled(name: str) -> None:
    state = REAL[name]

    assert step_facts(state) is None
    page = report_html(state, launch_commands={"baseline": "x"}, latencies=None)
    assert "SIMULATED" not in page
    assert "SIMULATED" not in text_of(terminal.status_view(state, 0.0))


def test_scaled_numbers_are_read_back() -> None:
    rows = {row.name: row for row in read_back(REHEARSED["finished"], 96_000.0, 120_000.0)}

    assert rows["baseline"].measured == "96,000 output tokens/s"
    assert rows["baseline"].simulated == "800 output tokens/s"
    assert rows["stack"].simulated == "1,000 output tokens/s"
    assert "120 times" in str(scale_sentence(REHEARSED["finished"]))


def test_the_terminal_headline_says_that_scaled_medians_are_and_how_they_read_in_the_simulated_world() -> None:
    told = " ".join(
        text_of(terminal.headline_panel(REHEARSED["finished"])).replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split()
    )

    assert "Time runs 120 times as fast in the simulated world" in told
    assert "There: baseline 0.718 output tokens/s, stack 1.01 output tokens/s." in told
    assert "Time runs" not in text_of(terminal.headline_panel(REAL["finished"]))


def test_an_unscaled_rehearsal_needs_no_reading_back() -> None:
    state = REHEARSED["finished"]
    target = state.spec.target.model_copy(update={"flags": {"--time-scale": 1}})
    real_time = state.model_copy(update={"spec": state.spec.model_copy(update={"target": target})})

    assert scale_sentence(real_time) is None
    assert read_back(real_time, 1.0, 2.0) == []


def test_the_report_names_what_bounds_the_founding_storys_step() -> None:
    state = REHEARSED["finished"]
    workload = state.spec.workload.model_copy(
        update={"concurrency": 64, "input_tokens": (1024, 1024), "output_tokens": (1024, 1024)}
    )
    founding = state.model_copy(update={"spec": state.spec.model_copy(update={"workload": workload})})

    facts = step_facts(founding)
    view = step_view(facts)

    assert facts is not None
    assert view is not None
    assert facts.step.point.sequences == 64
    assert view["rows"][0][0].startswith("routed_experts")
    assert "routed experts" in view["sentence"]
    assert "The engine's limit of 2,048 would leave" in view["capacity"]
    assert any("MSCCL++" in title for title, _, _ in view["acting"])
    assert any("ingle batch overlap" in title for title, _ in view["inert"])


def test_an_outlook_is_labelled_and_gives_its_advice() -> None:
    one = Chance(share=0.85, low=0.7, high=0.9, campaigns=40)
    outlook = Outlook(
        campaigns=40, seed=1, hours_median=1.5, hours_p90=2.0, runs_median=40, budget_hours=2.0, ended_by_budget=0.1,
        adopted_mean=0.8, adopted_useless=0.0,
        candidates=[CandidateOutlook(id="a", tier=1, predicted=(0.0, 0.1), failing=0.1, verdicts={"adopted": 1.0})],
        power=[PowerPoint(effect=0.06, adopted=one)], detectable=0.06, false_adoption=one, run_sd=0.01,
        run_sd_source="assumed", run_s=60.0, run_s_source="assumed", assumptions=["no drift"], advice=["do this"],
    )  # fmt: skip

    shown = text_of(outlook_view(outlook))

    assert shown.startswith("SIMULATED")
    assert "advice: do this" in shown
    assert "+6.0%" in shown
