"""Predicted ranges beside what earlier verdicts on machines of this class make of them."""

from io import StringIO

from rich.console import Console

from assay.catalogue.about import About
from assay.catalogue.prose import prose
from assay.plan.corrected import corrected
from assay.plan.scoring import score
from assay.plan.todo import todo
from assay.records.reasoning import PlanReasoning, RangeBasis, Reasoning
from assay.records.state import CampaignState
from assay.render.terminal import todo_table
from tests.unit.simulated_world import start
from tests.unit.test_credibility import entry, judged, scored

EARLIER = [scored(f"old{i}", (0.10, 0.30), 0.0) for i in range(8)]
CAPPED = (0.0, 0.05)


def capped_by_the_estimate() -> CampaignState:
    """Its entry claims more than the ceiling allows, so the plan cut the range off."""
    state = start([entry("capped", 1, CAPPED, prior=(0.0, 0.4))]).state
    basis = RangeBasis(low=0.0, high=0.05, low_from="the claims", high_from="the estimate")
    thought = Reasoning(id="capped", title="", tier=1, outcome="planned", prior=(0.0, 0.4), range=basis)
    return state.model_copy(update={"reasoning": PlanReasoning(entries={"capped": thought})})


def test_nothing_is_corrected_before_anything_was_measured() -> None:
    assert corrected(start([entry("new", 1, (0.1, 0.3))]).state) == {}


def test_promises_that_were_not_kept_lower_the_next_one_and_say_from_how_many() -> None:
    found = corrected(start([entry("new", 1, (0.1, 0.3))]).state, EARLIER)["new"]

    assert found.num_scores == len(EARLIER)
    assert found.low + found.high < 0.5 * (0.1 + 0.3)


def test_a_range_that_a_person_wrote_is_printed_as_it_is() -> None:
    found = corrected(start([entry("mine", 1, (0.1, 0.3), prior=(0.0, 0.1))]).state, EARLIER)["mine"]

    assert (round(found.low, 9), round(found.high, 9)) == (0.1, 0.3)


def test_a_range_cut_off_at_the_ceiling_is_assays_own_and_is_learned_from() -> None:
    state = capped_by_the_estimate()

    (own,) = score(judged(state, "capped", 0.0))

    assert not own.edited
    assert corrected(state, EARLIER)["capped"].high < CAPPED[1]


def test_the_todo_shows_both_ranges_and_what_the_second_rests_on() -> None:
    state = start([entry("new", 1, (0.1, 0.3))]).state.model_copy(update={"earlier_scores": EARLIER})
    console = Console(file=StringIO(), width=80)

    console.print(todo_table(todo(state)))

    text = console.file.getvalue()  # type: ignore[attr-defined] # a StringIO
    assert "+10..+30%" in text
    assert "=> " in text
    assert "8 effects measured on" in text


def test_the_document_says_the_corrected_range_below_the_one_that_is_scored() -> None:
    new = entry("new", 1, (0.1, 0.3))
    known = corrected(start([new]).state, EARLIER)["new"]

    text = prose(new, About(corrected=known))

    assert text.index("Predicted: +10% to +30%") < text.index("Corrected by 8 effects measured on")
