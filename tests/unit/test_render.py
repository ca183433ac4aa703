"""What people look at: the report in every state of a campaign, the charts, the exported commands."""

from __future__ import annotations

import json
import re
import shlex
from html.parser import HTMLParser

import pytest
import yaml

from assay.errors import UsageError
from assay.records.state import CampaignState
from assay.render import svg
from assay.render.export import export
from assay.render.report import report_html, report_markdown
from assay.render.words import duration_words, effect_words, range_words
from tests.unit.simulated_world import World, drive, hypothesis, start

ARGV = [
    "/opt/llama server",
    "--model",
    "/models/a b.gguf",
    "--host",
    "127.0.0.1",
    "--port",
    "8080",
    "--ctx-size",
    "4096",
]
COMMANDS = {"baseline": "llama-server --model <m>.gguf", "stack": "llama-server --parallel 8"}
VOID = {"meta", "link", "br", "hr", "img", "input", "line", "circle", "rect", "polyline"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects ids, links and outside references."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.outside: list[str] = []
        self.badly_closed: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            if name == "href" and value:
                self.links.append(value)
            if name in {"src", "href"} and value and not value.startswith("#"):
                self.outside.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.badly_closed.append(tag)


def page_of(state: CampaignState, **more: object) -> tuple[str, Page]:
    html = report_html(state, launch_commands=COMMANDS, latencies=None, **more)  # type: ignore[arg-type]
    page = Page()
    page.feed(html)
    return html, page


def finished() -> CampaignState:
    journal = start([hypothesis(name, i + 1) for i, name in enumerate(["good", "bad", "null"])])
    drive(journal, World(effects={"good": 0.4, "bad": -0.3}, run_sd=0.02))
    return journal.state


def test_a_finished_report_is_well_formed_self_contained_and_every_run_it_cites_is_in_its_table() -> None:
    html, page = page_of(finished())
    assert page.open == []
    assert page.badly_closed == []
    assert page.outside == []
    assert "http" not in re.sub(r'xmlns="[^"]*"', "", html)
    cited = {link.removeprefix("#") for link in page.links}
    assert cited
    assert cited <= page.ids


def test_the_headline_of_the_report_is_the_recorded_one() -> None:
    state = finished()
    html, _ = page_of(state)
    assert state.headline is not None
    assert state.headline.sentence in html.replace("&#43;", "+")


@pytest.mark.parametrize("events", range(1, 60, 6))
def test_a_report_can_be_written_at_any_moment_of_a_campaign(events: int) -> None:
    from assay.plan.fold import fold

    journal = start([hypothesis(name, i + 1) for i, name in enumerate(["good", "bad", "null"])])
    drive(journal, World(effects={"good": 0.4, "bad": -0.3}, run_sd=0.02))
    state = fold(journal.events[:events])
    _, page = page_of(state)
    assert page.open == []
    assert report_markdown(state, launch_commands=COMMANDS).startswith("# ")


def test_text_from_outside_is_escaped() -> None:
    html, _ = page_of(finished())
    assert "<m>.gguf" not in html
    assert "&lt;m&gt;.gguf" in html


def test_a_simulated_campaign_says_so() -> None:
    html, _ = page_of(finished(), simulated=True)
    assert "SIMULATED" in html
    assert "SIMULATED" not in page_of(finished())[0]


def test_an_interval_chart_keeps_everything_inside_its_frame() -> None:
    rows = [
        svg.Row(label="wide", low=-80, middle=10, high=300, band=(-5, 500)),
        svg.Row(label="none", note="blocked: oom"),
        svg.Row(label="<script>", low=-1, middle=0, high=1),
    ]
    chart = svg.intervals(rows, "title", min_effect=5)
    assert "<script>" not in chart
    for value in re.findall(r'(?:x1|x2|cx|x)="(-?[\d.]+)"', chart):
        assert 0 <= float(value) <= svg.WIDTH


def test_charts_of_nothing_are_empty_and_of_one_value_are_drawn() -> None:
    assert svg.runs([], "t", "u") == ""
    assert svg.cumulative([("a", "a", [])], "t", "ms") == ""
    assert "<polyline" in svg.cumulative([("a", "a", [5.0])], "t", "ms")
    assert "<circle" in svg.runs([svg.Dot(x=0, y=3, kind="baseline", title="r1")], "t", "u")


def test_the_shell_export_is_the_command_word_for_word() -> None:
    text = export("shell", ARGV, {"A": "x y"})
    assert shlex.split(text.replace("\\\n", "")) == ["A=x y", *ARGV]


def test_compose_and_kubernetes_exports_publish_the_model_read_only_and_parse() -> None:
    compose = yaml.safe_load(export("compose", ARGV, {}))["services"]["llama"]
    assert compose["ports"] == ["127.0.0.1:8080:8080"]
    assert compose["volumes"] == ["/models/a b.gguf:/models/a b.gguf:ro"]
    assert "--ctx-size" in compose["command"]
    deployment, service = yaml.safe_load_all(export("kubernetes", ARGV, {"A": "1"}))
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert service["spec"]["ports"][0]["port"] == 8080


def test_the_json_export_is_the_argument_vector() -> None:
    assert json.loads(export("json", ARGV, {}))["argv"] == ARGV


def test_an_unknown_export_names_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        export("helm", ARGV, {})
    assert "compose" in str(caught.value.hint)


def test_missing_numbers_are_a_dash_and_never_zero() -> None:
    assert effect_words(None) == "\N{EM DASH}"
    assert range_words((0.1, 0.8)) == "+10% to +80%"
    assert [duration_words(s) for s in (45, 200, 7500)] == ["45 s", "3 min 20 s", "2 h 05 min"]
