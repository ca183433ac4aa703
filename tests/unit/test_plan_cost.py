"""What a launch is taken to cost before one was recorded."""

from __future__ import annotations

import pytest

from assay.plan.cost import guessed_launch
from assay.records.spec import CampaignSpec, Target


def spec(engine: str, **target: object) -> CampaignSpec:
    return CampaignSpec(target=Target.model_validate({"engine": engine, "start_timeout_s": 300.0, **target}))


def test_a_small_model_behind_llamacpp_starts_in_seconds_and_not_in_half_of_the_timeout() -> None:
    guess = guessed_launch(spec("llamacpp"), 145_000_000)
    assert guess.low_s < 0.67 < guess.expected_s < 5  # 0.67 s is the mean of examples/demo
    assert guess.expected_s < guess.high_s < 15


def test_a_large_file_takes_as_long_as_it_is_read() -> None:
    assert guessed_launch(spec("llamacpp"), 40_000_000_000).expected_s == pytest.approx(42)
    assert "40 GB" in guessed_launch(spec("llamacpp"), 40_000_000_000).basis


def test_a_slow_launch_is_cut_at_the_timeout_and_an_expected_one_beyond_it_is_told_as_it_is() -> None:
    guess = guessed_launch(spec("sglang"), 40_000_000_000)
    assert guess.low_s <= guess.expected_s <= guess.high_s == 300.0
    assert guessed_launch(spec("sglang"), 400_000_000_000).expected_s == pytest.approx(460)


def test_a_server_that_is_there_already_takes_no_time_and_an_unknown_engine_half_of_the_timeout() -> None:
    there = guessed_launch(spec("openai", url="http://127.0.0.1:8000"), None)
    assert (there.low_s, there.high_s) == (0.0, 0.0)
    assert guessed_launch(spec("mine")).expected_s == 150.0
