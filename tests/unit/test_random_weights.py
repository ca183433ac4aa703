"""Where the weights are random, everything that speaks of answers says that they tell nothing about quality."""

from __future__ import annotations

import io
import re
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks.gpu import sglang_campaign, vllm_campaign
from rich.console import Console

from assay import api
from assay.campaign import answers
from assay.catalogue.about import About
from assay.catalogue.prose import prose
from assay.errors import UsageError
from assay.records.run import AnswerCheck
from assay.records.spec import RANDOM_WEIGHTS, CampaignSpec, Quality, Target
from assay.records.state import CampaignState
from assay.render.report import report_html, report_markdown
from assay.render.terminal import status_view
from assay.store.reader import read_events
from assay.store.spec_declared import differences
from assay.store.spec_file import read_spec, write_spec
from assay.testing.sample_state import sample_state
from tests.cli.records import write_campaign

TOLD = "nothing about quality"


def random_state() -> CampaignState:
    state = sample_state()
    target = state.spec.target.model_copy(update={"random_weights": True})
    return state.model_copy(update={"spec": state.spec.model_copy(update={"target": target})})


@pytest.mark.parametrize(
    ("target", "is_random"),
    [
        (Target(), False),
        (Target(random_weights=True), True),
        (Target(engine="vllm", flags={"--load-format": "dummy"}), True),
        (Target(engine="sglang", flags={"--load-format": "safetensors"}), False),
    ],
)
def test_weights_are_random_where_it_is_declared_or_the_engine_is_asked_for_it(target: Target, is_random: bool) -> None:
    assert target.has_random_weights is is_random


@pytest.mark.parametrize("campaign", [vllm_campaign, sglang_campaign])
def test_the_campaigns_of_a_made_up_model_declare_it(campaign: ModuleType) -> None:
    assert campaign.spec(Path("model"), "python").target.has_random_weights


def test_a_reason_for_wrong_output_says_what_the_difference_means() -> None:
    check = AnswerCheck(probes=64, agreed=10)

    plain = answers.judge(check, "reordered", Quality(), sample_state())
    told = answers.judge(check, "reordered", Quality(), random_state())

    assert plain is not None
    assert told == f"{plain}; {RANDOM_WEIGHTS}"
    assert answers.judge(AnswerCheck(probes=64, agreed=64), "reordered", Quality(), random_state()) is None


def test_the_report_says_it_beside_the_answers_and_only_then() -> None:
    def pages(state: CampaignState) -> list[str]:
        html = report_html(state, launch_commands={}, latencies=None)
        return [html, report_markdown(state, launch_commands={})]

    for text in pages(random_state()):
        assert TOLD in text.split("The same answers?")[-1].split("What made a run count")[0]
        assert ", random weights" in text
    assert not any(TOLD in text or "random weights" in text for text in pages(sample_state()))


def test_the_status_says_it() -> None:
    def shown(state: CampaignState) -> str:
        stream = io.StringIO()
        Console(file=stream, width=80, no_color=True).print(status_view(state, 0.0))
        return " ".join(stream.getvalue().split())

    assert TOLD in shown(random_state())
    assert TOLD not in shown(sample_state())


def test_an_improvement_document_says_it_where_it_compares_the_answers() -> None:
    hypothesis = sample_state().hypotheses[0]

    assert f"Here {RANDOM_WEIGHTS}." in prose(hypothesis, About(random_weights=True))
    assert TOLD not in prose(hypothesis)


def test_a_question_of_an_earlier_assay_goes_on_without_the_key(tmp_path: Path) -> None:
    recorded = CampaignSpec().model_dump(mode="json")
    del recorded["target"]["random_weights"]
    earlier = CampaignSpec.model_validate(recorded)
    (tmp_path / "assay.toml").write_text('[target]\nmodel = "embedded"\n')

    assert differences(read_spec(tmp_path / "assay.toml", declared=earlier), earlier) == []


def test_it_survives_assay_toml(tmp_path: Path) -> None:
    write_spec(tmp_path / "assay.toml", CampaignSpec(target=Target(random_weights=True)))

    assert read_spec(tmp_path / "assay.toml").target.random_weights


def begun(folder: Path) -> Path:
    """A finished campaign whose question did not say that the weights are random."""
    return write_campaign(folder)


def declare(folder: Path, value: str) -> None:
    spec = folder / "assay.toml"
    text = re.sub(r"\nrandom_weights = \w+", f"\nrandom_weights = {value}", spec.read_text(encoding="utf-8"))
    assert f"random_weights = {value}" in text
    spec.write_text(text, encoding="utf-8")


def test_a_campaign_that_has_begun_takes_the_word_that_its_weights_are_random(tmp_path: Path) -> None:
    folder = begun(tmp_path / "campaign")
    before = api.status(folder)
    declare(folder, "true")

    api.plan(folder)
    after = api.status(folder)

    assert not before.spec.target.has_random_weights
    assert after.spec.target.has_random_weights
    assert (after.verdicts, after.headline, after.spec_hash) == (before.verdicts, before.headline, before.spec_hash)
    assert api.verify(folder).ok
    api.plan(folder)
    assert sum("random_weights" in event.payload for event in read_events(folder / "assay.db")) == 1


def test_what_was_declared_of_the_weights_is_not_taken_back(tmp_path: Path) -> None:
    folder = begun(tmp_path / "campaign")
    declare(folder, "true")
    api.plan(folder)
    declare(folder, "false")

    with pytest.raises(UsageError, match=r"target\.random_weights = false \(recorded: true\)"):
        api.plan(folder)
