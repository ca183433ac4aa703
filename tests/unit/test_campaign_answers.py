"""What a comparison of answers can tell, and that it says so where it cannot."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from assay.campaign.answers import judge, untold
from assay.plan.series import A_A
from assay.records.hypothesis import Numerics
from assay.records.run import AnswerCheck, RunIntent, RunOutcome
from assay.records.spec import Quality
from assay.records.state import CampaignState
from assay.rehearsal.world import World
from assay.render.report import report_html, report_markdown
from assay.render.terminal import status_view
from tests.unit.simulated_world import drive, hypothesis, small_spec, start

UNTOLD = "answers under load could not be compared: the baseline keeps only 3% of its own from run to run (24 of 800), "
CHECK = AnswerCheck(probes=48, agreed=48, under_load_probes=400, under_load_agreed=12)


def campaign(kept_under_load: int, *, loaded: int = 400) -> CampaignState:
    """Two A/A runs that compare 48 answers alone and `loaded` under load; a candidate whose check tells so."""

    class Answering(World):
        def answer(self, intent: RunIntent, state: CampaignState) -> RunOutcome:
            found = World.answer(self, intent, state)
            natural = AnswerCheck(probes=48, agreed=48, under_load_probes=loaded, under_load_agreed=kept_under_load)
            own = CHECK.model_copy(update={"untold": untold(CHECK, "reordered", Quality(), state)})
            check = natural if intent.candidate == A_A else own if intent.arm.deltas else None
            return found.model_copy(update={"answers": check})

    journal = start([hypothesis("good", numerics="reordered")], small_spec())
    drive(journal, Answering(effects={"good": 0.3}, run_sd=0.005))
    return journal.state


@pytest.fixture(scope="module")
def forgetful() -> CampaignState:
    return campaign(12)


@pytest.mark.parametrize("numerics", ["exact", "reordered"])
def test_beside_a_baseline_that_keeps_next_to_nothing_a_comparison_says_that_it_tells_nothing(
    forgetful: CampaignState, numerics: Numerics
) -> None:
    assert judge(CHECK, numerics, Quality(), forgetful) is None
    assert untold(CHECK, numerics, Quality(), forgetful) == f"{UNTOLD}400 were asked"
    none_kept = CHECK.model_copy(update={"under_load_agreed": 0})
    assert (judge(none_kept, numerics, Quality(), forgetful) is None) is bool(
        untold(none_kept, numerics, Quality(), forgetful)
    )


def test_beside_a_baseline_that_keeps_a_good_part_of_its_answers_it_tells_what_half_of_them_lost_would_be() -> None:
    state = campaign(200)
    lost = CHECK.model_copy(update={"under_load_agreed": 100})

    assert untold(CHECK, "reordered", Quality(), state) is None
    assert judge(lost, "reordered", Quality(), state) is not None
    assert state.headline is not None
    assert "compared" not in state.headline.sentence


def test_few_answers_tell_nothing_however_steady_the_baseline_is() -> None:
    few = CHECK.model_copy(update={"under_load_probes": 3, "under_load_agreed": 3})

    told = untold(few, "reordered", Quality(), campaign(400))

    assert told is not None
    assert "the baseline keeps 100% of its own from run to run (800 of 800), 3 were asked" in told


def test_verdict_headline_status_and_report_say_it(forgetful: CampaignState) -> None:
    console = Console(file=io.StringIO(), width=400)
    console.print(status_view(forgetful, 0.0))
    assert isinstance(console.file, io.StringIO)
    assert forgetful.headline is not None

    for told in (
        forgetful.verdicts["good"].reason,
        forgetful.headline.sentence,
        console.file.getvalue(),
        report_html(forgetful, launch_commands={}, latencies=None).split("The same answers?")[-1],
        report_markdown(forgetful, launch_commands={}).split("The same answers?")[-1],
    ):
        assert UNTOLD.removeprefix("answers") in told
