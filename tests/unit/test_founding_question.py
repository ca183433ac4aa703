"""The founding question's answer: the page says what the code says, and what the page claims in words holds."""

from __future__ import annotations

import pytest
from benchmarks import founding_question
from benchmarks.founding_question import Answer, by_part


@pytest.fixture(scope="module")
def found() -> Answer:
    return founding_question.answer()


def test_the_page_is_what_the_code_answers_today(found: Answer) -> None:
    assert founding_question.PAGE.read_text(encoding="utf-8") == founding_question.page(found), (
        "run: python benchmarks/founding_question.py --write, and read what changed"
    )


def test_the_cache_holds_what_the_server_reported_within_three_percent(found: Answer) -> None:
    assert found.memory.cache_bytes_per_token == 576 * 2 * 78 + 132 * 78
    assert found.memory.cache_tokens == pytest.approx(founding_question.POOL_PUBLISHED, rel=0.03)


def test_capacity_binds_before_the_flag_of_2048_is_reached(found: Answer) -> None:
    assert found.fits < 256 < founding_question.ASKED
    assert found.each_if_all < 200


def test_experts_are_the_largest_part_at_what_fits_and_the_wire_at_2048(found: Answer) -> None:
    fits, everyone = by_part(found.steps["fits"]), by_part(found.steps["all"])
    assert max(fits, key=fits.__getitem__) == "routed_experts"
    assert max(everyone, key=everyone.__getitem__) == "communication"
    assert found.fits < found.crossing < founding_question.ASKED
    assert found.steps["all"].tokens_per_expert == pytest.approx(64, rel=0.01)


def test_the_floors_agree_with_the_arithmetic_by_hand(found: Answer) -> None:
    """51 GB of experts a GPU at 1.792 TB/s; 156 all-reduces of 25 MB; 150 tokens of cache for 2,048 streams."""
    floors = by_part(found.steps["all"], floor=True)
    assert floors["routed_experts"] == pytest.approx(28.4e-3, rel=0.03)
    by_hand = 153 * 2 * 7 / 8 * 2048 * 6144 * 2 / 64e9
    assert floors["communication"] == pytest.approx(by_hand, rel=0.1)
    tokens = found.steps["all"].point.context_tokens
    assert floors["attention_core"] == pytest.approx(2048 * tokens * 576 * 2 * 78 / 1.792e12, rel=0.1)


def test_the_published_64_streams_lie_in_the_range_and_below_the_ceiling(found: Answer) -> None:
    step = found.steps["64"]
    for published in (590.7, 1010.6):
        assert step.tokens_per_s.low <= published <= step.tokens_per_s.high
        assert published < step.ceiling_tokens_per_s


def test_mscclpp_acts_only_up_to_85_tokens_and_single_batch_overlap_not_without_all_to_all(found: Answer) -> None:
    assert found.gains("64")["mscclpp"].applies
    for name in ("fits", "all"):
        assert not found.gains(name)["mscclpp"].applies
        assert not found.gains(name)["single-batch-overlap"].applies


def test_pinning_weights_in_the_cache_is_worth_nothing_anywhere(found: Answer) -> None:
    assert all(found.gains(name)["l2-persistence"].gain.high < 0.01 for name in founding_question.SHOWN)
