"""The report in every state a campaign can be in, from the sample campaign that has every kind of verdict."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from assay.records.machine import GpuIdentity
from assay.records.run import Gate, RunStatus
from assay.records.state import CampaignState
from assay.records.verdict import VerdictKind
from assay.render.report import report_html, report_markdown
from assay.render.report_facts import references
from assay.render.words import effect_words, headline_words, span_words
from assay.testing.sample_state import sample_commands, sample_latencies, sample_state, sample_variants

VARIANTS = sample_variants()
VOID = {"meta"}


class Page(HTMLParser):
    """Collects ids, links, outside references, and what is not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.outside: list[str] = []
        self.wrong: list[str] = []
        self.words: list[str] = []
        self.glued = False
        """Whether what follows stands right behind the words before it: a flag is marked, and breaks no sentence."""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "srcset", "data", "action"}:
                (self.links if (value or "").startswith("#") else self.outside).append(value or "")
        self.glued = ("class", "flag") in attrs
        if tag not in VOID:
            self.stack.append("flag" if self.glued else tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        ended = self.stack.pop() if self.stack else ""
        self.glued = ended == "flag"
        if ended != ("flag" if self.glued and tag == "span" else tag):
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if "style" not in self.stack:
            before = self.words.pop() if self.glued and self.words else ""
            self.words.append(before + data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def html_of(state: CampaignState, *, simulated: bool = False) -> str:
    latencies = sample_latencies() if state.headline else None
    return report_html(state, launch_commands=sample_commands(), latencies=latencies, simulated=simulated)


@pytest.mark.parametrize("name", VARIANTS)
def test_at_every_moment_the_page_is_whole_self_contained_and_every_link_leads_somewhere(name: str) -> None:
    html = html_of(VARIANTS[name])
    page = Page(html)
    assert (page.stack, page.wrong, page.outside) == ([], [], [])
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert re.findall(r'<h2 id="([^"]*)"', html) == re.findall(
        r'href="#([^"]*)"', html.split("<nav")[1].split("</nav>")[0]
    )
    assert not re.search(r"https?:|url\(|@import|<script", html)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_section_is_there_at_every_moment(name: str) -> None:
    ids = Page(html_of(VARIANTS[name])).ids
    wanted = ["answer", "question", "baseline", "todo", "predictions", "latency", "failures", "answers", "validity"]
    assert [i for i in ids if i in {*wanted, "method", "reproduce", "all-runs"}] == [
        *wanted, "method", "reproduce", "all-runs",
    ]  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_the_table_of_runs_has_every_run_of_the_record(name: str) -> None:
    state = VARIANTS[name]
    html, markdown = html_of(state), report_markdown(state, launch_commands=sample_commands())
    for run in state.runs:
        assert f'<tr id="run-{run.intent.run_id}">' in html
        assert f"\n| {run.intent.run_id} |" in markdown


@pytest.mark.parametrize("name", VARIANTS)
def test_every_row_of_a_markdown_table_has_as_many_cells_as_its_heading(name: str) -> None:
    tables = re.findall(r"(?:^\|.*\n)+", report_markdown(VARIANTS[name], launch_commands={}), re.MULTILINE)
    assert tables
    for table in tables:
        widths = {len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table


def test_the_sample_has_every_kind_of_verdict() -> None:
    assert {verdict.kind for verdict in sample_state().verdicts.values()} == set(VerdictKind)


def test_the_headline_comes_first_with_its_interval_and_its_runs() -> None:
    state = sample_state()
    page = Page(html_of(state))
    assert state.headline is not None
    assert page.text.index(headline_words(state)) < page.text.index("The question")
    assert "in output tokens/s" in headline_words(state)
    assert "output_tokens_per_s" not in page.text
    assert "+40.2% [+31.9, +49.1]" in page.text
    assert "r0085\N{EN DASH}r0095" in page.text


def test_a_stack_that_is_not_confirmed_is_nowhere_called_confirmed() -> None:
    text = Page(html_of(VARIANTS["not-confirmed"])).text
    assert "NOT confirmed gain" in text
    assert "fresh runs: NOT confirmed" in text
    assert "confirmed on fresh runs" not in text


def test_a_failure_shows_stage_cause_the_engines_line_and_where_its_log_is() -> None:
    text = Page(html_of(sample_state())).text
    assert "kv-q8-0-without-flash-attention: blocked: incompatible" in text
    assert "At stage load. Exit code: 1. Log: runs/r0060/server.log" in text
    assert text.count("llama_init_from_model: quantized V cache requires flash_attn to be enabled") >= 3


def test_what_next_tells_questions_obstacles_and_where_its_link_leads() -> None:
    page = Page(html_of(sample_state()))
    assert "#next" in page.links
    assert "next" in page.ids
    told = page.text[page.text.index("What next", page.text.index("What failed or did nothing")) :]
    assert "Measured, and not decided" in told
    assert "In the way, and what would change that" in told
    assert "## What next" in report_markdown(sample_state(), launch_commands={})


def test_a_campaign_that_leaves_nothing_to_try_has_no_such_section() -> None:
    state = sample_state().model_copy(update={"verdicts": {}, "hypotheses": []})
    assert "What next" not in Page(html_of(state)).text


def test_time_that_was_waited_is_told_where_time_is_told() -> None:
    state = sample_state()
    runs = [
        run.model_copy(update={"outcome": run.outcome.model_copy(update={"waited_s": 100.0})})
        if run.outcome and run.intent.run_id in {"r0002", "r0003"}
        else run
        for run in state.runs
    ]
    waited = state.model_copy(update={"runs": runs})
    text = Page(html_of(waited)).text
    assert "of measuring, and 3 min 20 s waited for a quiet machine; each is listed" in text
    assert "Beside the measuring time: 3 min 20 s waited for a quiet machine ( r0002 , r0003 )." in text
    assert "3 min 20 s waited for a quiet machine" in report_markdown(waited, launch_commands={})
    assert "waited for a quiet machine" not in Page(html_of(state)).text


def test_what_was_not_measured_is_a_dash_and_never_a_zero() -> None:
    html = html_of(sample_state())
    row = html[html.index('<tr id="h-lock-memory"') :].split("</tr>")[0]
    assert "\N{EM DASH}" in row
    invalid = html[html.index('<tr id="run-r0010"') :].split("</tr>")[0]
    assert invalid.count("\N{EM DASH}") == 4
    assert ">0<" not in invalid


def test_invalid_runs_are_named_with_the_gate_that_stopped_them() -> None:
    state = sample_state()
    stopped = [r.intent.run_id for r in state.runs if r.outcome and r.outcome.status is RunStatus.INVALID]
    text = Page(html_of(state)).text
    assert stopped == ["r0010"]
    assert "machine-quiet: other processes used 1.06 cores; remedy: stop what else runs" in text


def test_assays_own_cost_is_the_largest_of_all_runs() -> None:
    state = sample_state()
    shares = [r.outcome.measures.client_cpu_share for r in state.runs if r.outcome and r.outcome.measures]
    assert f"at most {100 * max(shares):.1f}% of one core" in Page(html_of(state)).text


def test_the_score_of_the_predictions_counts_those_that_were_measured() -> None:
    held = [v.prediction_held for v in sample_state().verdicts.values() if v.prediction_held is not None]
    assert f"{sum(held)} of {len(held)} predicted ranges" in Page(html_of(sample_state())).text


def test_every_section_and_chart_of_a_simulated_campaign_says_so() -> None:
    html = html_of(sample_state(), simulated=True)
    headings = re.findall(r"<h2.*?</h2>", html)
    charts = re.findall(r"<svg[^>]*>", html)
    captions = re.findall(r"<figcaption>.*?</figcaption>", html, re.DOTALL)
    assert len(headings) == 15
    assert len(charts) == 2 * len(captions) == 2 * 6
    assert all("SIMULATED" in part for part in [*headings, *charts, *captions])
    assert "SIMULATED" not in html_of(sample_state())


def test_a_simulating_engine_is_labelled_whatever_the_caller_says() -> None:
    state = sample_state()
    rehearsed = state.model_copy(update={"build": state.build.model_copy(update={"engine": "rehearsal"})})
    assert "SIMULATED" in html_of(rehearsed)
    assert "SIMULATED" in report_markdown(rehearsed, launch_commands={}).splitlines()[0]


def test_text_from_outside_is_neither_markup_nor_a_new_column() -> None:
    state = sample_state()
    verdict = state.verdicts["ubatch-large"].model_copy(update={"reason": "<img src=x> | and\nmore"})
    hostile = state.model_copy(update={"verdicts": {**state.verdicts, "ubatch-large": verdict}})
    assert "<img" not in html_of(hostile)
    assert "<NUMA>" not in html_of(hostile)
    markdown = report_markdown(hostile, launch_commands={})
    assert "&lt;img src=x&gt; \\| and more" in markdown


def test_a_link_or_image_in_a_servers_words_is_none_in_markdown_and_no_control_code_is_kept() -> None:
    state = sample_state()
    said = "![a](javascript:alert(1)) [b][c] \\[d](x) \x1b[2J +4.4% [+0.8, +8.1] [+1, 2](x)"
    verdict = state.verdicts["ubatch-large"].model_copy(update={"reason": said})
    hostile = state.model_copy(update={"verdicts": {**state.verdicts, "ubatch-large": verdict}})
    markdown = report_markdown(hostile, launch_commands={})

    assert r"!\[a\](javascript:alert(1)) \[b\]\[c\] \\\[d\](x)" in markdown
    assert r"+4.4% [+0.8, +8.1] \[+1, 2\](x)" in markdown
    assert "![a]" not in markdown
    assert "\x1b" not in markdown


def test_what_stands_between_back_ticks_copies_as_it_is_and_nothing_outside_of_them_becomes_code() -> None:
    state = sample_state()
    reason = 'set `only = ["a|b"]`, then ``x` [c](d)'
    verdict = state.verdicts["ubatch-large"].model_copy(update={"reason": reason})
    headline = sample_state().headline
    assert headline is not None
    said = {"verdicts": {**state.verdicts, "ubatch-large": verdict},
            "headline": headline.model_copy(update={"sentence": reason})}  # fmt: skip
    markdown = report_markdown(state.model_copy(update=said), launch_commands={})
    outside = r", then \`\`x\` \[c\](d)"

    assert 'set `only = ["a\\|b"]`' + outside in markdown  # in a table, where a bar is a column's end even in code
    assert 'set `only = ["a|b"]`' + outside in markdown


def test_a_command_in_a_gates_remedy_is_code_on_the_page() -> None:
    state = sample_state()
    gate = Gate(name="machine-quiet", passed=False, evidence="0.4 cores", remedy="`assay assess` names it")
    index = next(i for i, run in enumerate(state.runs) if run.outcome and run.outcome.status is RunStatus.INVALID)
    run = state.runs[index]
    assert run.outcome is not None
    noisy = run.model_copy(update={"outcome": run.outcome.model_copy(update={"gates": [gate]})})
    html = html_of(state.model_copy(update={"runs": [*state.runs[:index], noisy, *state.runs[index + 1 :]]}))

    assert "remedy: <code>assay assess</code> names it" in html


def test_how_many_ranges_held_is_said_once() -> None:
    assert report_markdown(sample_state(), launch_commands={}).count("predicted ranges meet the measured interval") == 1


def test_runs_in_a_row_are_one_link_and_many_scattered_ones_are_counted() -> None:
    state = sample_state()
    row = references(state, ["r0003", "r0001", "r0002", "r0007"])
    assert [(r.words, r.target) for r in row] == [("r0001\N{EN DASH}r0003", "run-r0001"), ("r0007", "run-r0007")]
    scattered = [f"r{number:04d}" for number in range(1, 40, 2)]
    (counted,) = references(state, scattered)
    assert counted.words == "20 runs, r0001 to r0039"
    assert counted.title.split(", ") == scattered
    assert references(state, []) == []


def test_what_is_on_trial_has_its_effect_so_far_in_every_place_marked_as_not_final() -> None:
    state = open_campaign()
    name = next(iter(state.screened))
    effect = effect_words(state.screened[name].effect)
    html, markdown = html_of(state), report_markdown(state, launch_commands={})
    row = next(line for line in markdown.splitlines() if line.startswith("|") and f"| {name} |" in line)
    assert f"{effect}, not final" in row
    assert "goes on to composition" in row
    assert f"{effect}, not final" in html
    chart = html[html.index('id="effects"') :]
    assert f'<g class="open"><a href="#h-{name}">' in chart
    assert name not in re.findall(r'<g class="unmeasured">.*?>([a-z0-9-]+)</text>', chart)


def open_campaign() -> CampaignState:
    """The sample before the composition of what was adopted first."""
    state = sample_state()
    first = state.stack[0]
    verdicts = {name: verdict for name, verdict in state.verdicts.items() if name != first}
    runs = [run for run in state.runs if run.intent.series == "main"]
    update = {"verdicts": verdicts, "stack": [], "headline": None, "ablations": {}, "runs": runs}
    return state.model_copy(update=update | {"screened": {first: state.screened[first]}})


def test_the_machine_is_named_with_its_gpus() -> None:
    state = sample_state()
    machine = state.machine.model_copy(update={"gpus": [GpuIdentity(name="NVIDIA H200")] * 2})
    with_gpus = state.model_copy(update={"machine": machine})
    assert "2 x NVIDIA H200" in html_of(with_gpus)
    assert "2 x NVIDIA H200" in report_markdown(with_gpus, launch_commands={})


def test_lengths_that_do_not_vary_are_one_number() -> None:
    assert (span_words((256, 256)), span_words((160, 288))) == ("256", "160 to 288")


def test_the_key_names_the_stack_only_where_there_is_one() -> None:
    state = sample_state()
    bare = state.model_copy(update={"stack": [], "headline": None})

    assert 'class="key stack"' in report_html(state, launch_commands=sample_commands(), latencies=None)
    assert 'class="key stack"' not in report_html(bare, launch_commands=sample_commands(), latencies=None)
