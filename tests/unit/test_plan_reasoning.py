"""Why an entry is planned, blocked or skipped: conditions on the measured state, ceilings, flags, requirements."""

from __future__ import annotations

from functools import lru_cache

import pytest

from assay.api.catalogue import TargetQuestion, applied
from assay.plan.hypotheses import Plan, expected_gain
from assay.plan.predicting import predicted
from assay.plan.situation import within
from assay.records.hypothesis import Hypothesis
from assay.records.reasoning import Reasoning

STORY = (
    "python -m sglang.launch_server --model-path GLM-5-NVFP4 --tp 8 --quantization modelopt_fp4"
    " --mem-fraction-static 0.92 --max-running-requests 2048 --num-continuous-decode-steps 16"
)


@lru_cache
def story(concurrency: int = 64, launch: str = STORY, version: str = "0.5.9", on: str = "8xRTX-PRO-6000") -> Plan:
    return applied(
        TargetQuestion(
            version=version, model="glm-5-nvfp4", on=on, launch=launch, concurrency=concurrency, input_tokens=1024,
            output_tokens=1024,
        )
    )  # fmt: skip


def thought(name: str, plan: Plan | None = None) -> Reasoning:
    return (plan or story()).reasoning.entries[name]


def hypothesis(name: str, plan: Plan) -> Hypothesis:
    return next(one for one in plan.hypotheses if one.id == name)


@pytest.mark.parametrize(
    ("prior", "ceiling", "bounds"),
    [
        ((0.0, 0.10), None, (0.0, 0.10)),
        ((0.0, 0.10), 0.20, (0.0, 0.10)),
        ((-0.05, 0.10), 0.03, (-0.05, 0.03)),
        ((-0.05, 0.10), 0.0, (-0.05, 0.0)),
        ((0.10, 0.20), 0.05, (0.0, 0.05)),
    ],
)
def test_the_range_is_the_prior_cut_off_at_the_ceiling(
    prior: tuple[float, float], ceiling: float | None, bounds: tuple[float, float]
) -> None:
    found = predicted(prior, ceiling, "the ceiling", "the prior")

    assert (found.low, found.high) == bounds
    cut = ceiling is not None and ceiling < prior[1]
    assert found.high_from.startswith("the ceiling" if cut else "the prior")


def test_no_range_of_a_real_plan_lies_above_its_ceiling() -> None:
    bounded = [one for one in story().reasoning.entries.values() if one.ceiling and not one.no_ceiling and one.range]

    assert len(bounded) > 15
    for one in bounded:
        assert one.ceiling is not None
        assert one.range is not None
        most = max(0.0, one.ceiling.gain.high) if one.ceiling.applies else 0.0
        assert one.range.low <= one.range.high <= max(most + 1e-4, one.prior[0]), one.id


def test_what_a_control_loses_is_calculated_at_both_ends() -> None:
    control = thought("overlap-schedule-off")

    assert control.ceiling is not None
    assert control.range is not None
    assert (control.range.low, control.range.high) == (
        round(control.ceiling.gain.low, 4),
        round(control.ceiling.gain.high, 4),
    )
    assert control.range.high < 0
    assert control.range.low_from.startswith("the estimate")


def test_a_mechanism_that_would_lose_is_no_control_and_keeps_the_loss_of_its_prior() -> None:
    whole_experts = thought("expert-parallel", story(1))

    assert whole_experts.ceiling is not None
    assert whole_experts.range is not None
    assert whole_experts.ceiling.gain.high < 0
    assert whole_experts.range.low == whole_experts.prior[0]
    assert whole_experts.range.low_from.startswith("the prior")


def test_the_load_decides_where_the_command_alone_would_not() -> None:
    """85 tokens of GLM-5 make 1 MiB: MSCCL++ acts at 64 sequences, and not at the 150 that the cache holds."""
    at_64, at_256 = thought("mscclpp", story(64)), thought("mscclpp", story(256))

    assert (at_64.outcome, at_64.in_regime) == ("planned", True)
    assert any("nothing comes of them; at this load the estimate says otherwise" in note for note in at_64.notes)
    assert at_256.outcome == "skipped"
    assert "takes no message above 1 MiB" in at_256.reason
    assert at_256.ceiling is not None
    assert not at_256.ceiling.applies


def test_a_declared_shared_prefix_decides_what_is_planned_for_caches() -> None:
    """Fresh prompts find nothing in a cache; prompts of one prefix do, and only the load says which they are."""
    fresh, shared = (
        applied(
            TargetQuestion(
                version="0.5.9", model="glm-5-nvfp4", on="8xRTX-PRO-6000", launch=STORY, concurrency=64,
                input_tokens=1024, output_tokens=1024, shared_prefix_tokens=tokens,
            )
        )
        for tokens in (0, 4096)
    )  # fmt: skip

    for name in ("schedule-longest-prefix", "hierarchical-cache"):
        assert thought(name, fresh).outcome == "skipped"
        assert "workload.shared_prefix" in thought(name, fresh).reason
        assert thought(name, shared).outcome == "planned"
    assert (thought("prefix-cache-off", fresh).outcome, thought("prefix-cache-off", shared).outcome) == (
        "planned", "skipped",
    )  # fmt: skip
    told = shared.reasoning.surroundings.sentences
    assert any("the first 4,096 of a prompt (80% on average) are shared, the same for all" in one for one in told)


def test_a_flag_without_a_path_in_this_configuration_is_skipped_with_the_source() -> None:
    found = thought("single-batch-overlap")

    assert found.outcome == "skipped"
    assert "--moe-a2a-backend is none" in found.reason
    assert "sglang#9660" in found.reason


def test_what_the_engine_would_refuse_is_blocked_with_its_reason() -> None:
    found = thought("two-batch-overlap")

    assert found.outcome == "blocked"
    assert "the engine stops" in found.reason


def test_a_dead_flag_of_todays_command_is_told() -> None:
    (told,) = [text for text in story().reasoning.baseline if "continuous" in text]

    assert "no code outside argument handling reads it" in told


def test_what_requires_another_waits_for_it_and_comes_after_it() -> None:
    plan = story()
    found = hypothesis("expert-load-balancing", plan)

    assert found.waits_for == ["expert-parallel"]
    assert found.number > hypothesis("expert-parallel", plan).number


def test_what_requires_something_that_today_has_already_waits_for_nothing() -> None:
    plan = story(launch=f"{STORY} --ep-size 8")

    assert plan.passed_over["expert-parallel"] == "layout.ep == 1 is false: layout.ep = 8"
    assert "needs expert-parallel" in plan.passed_over["expert-load-balancing"]


def test_what_has_to_be_made_first_is_written_up_priced_and_blocked() -> None:
    found = hypothesis("l2-persistence", story())

    assert found.status == "blocked"
    assert str(found.blocked_reason).startswith("needs work: ")
    assert 0 < found.predicted[1] < 0.002


@pytest.mark.parametrize(
    ("version", "flag"),
    [
        ("0.5.4", "--enable-piecewise-cuda-graph"),
        ("0.5.12", "--enforce-piecewise-cuda-graph"),
        ("0.5.16", "--cuda-graph-backend-prefill"),
        ("0.5.23", "--cuda-graph-backend-prefill"),
    ],
)
def test_an_entry_takes_the_spelling_of_the_engines_version(version: str, flag: str) -> None:
    launch = "python -m sglang.launch_server --model-path GLM-5 --tp 8"

    assert list(hypothesis("piecewise-cuda-graph", story(8, launch, version)).optimization.flags) == [flag]


def test_an_entry_for_other_versions_is_skipped_and_says_for_which() -> None:
    assert thought("decode-context-parallel").reason == "for sglang >=0.5.15; this is 0.5.9"


def test_of_a_machine_that_is_elsewhere_nothing_is_assumed() -> None:
    assert thought("tokenizer-workers").reason == "cannot be decided: machine.usable_cores is unknown"


def test_a_ceiling_that_leaves_out_room_in_the_cache_does_not_bound_what_makes_room() -> None:
    waiting, running = thought("kv-fp8", story(256)), thought("kv-fp8", story(64))

    assert "it makes room for more sequences" in waiting.no_ceiling
    assert waiting.range is not None
    assert waiting.range.high == waiting.prior[1]
    assert running.range is not None
    assert running.range.high < running.prior[1]


def test_conditions_are_told_with_the_values_that_they_were_decided_on() -> None:
    (kind, ranks, *_) = thought("expert-parallel").conditions

    assert (kind.text, kind.holds) == ("model.is_moe", True)
    assert ranks.values == {"layout.tp": "8"}


def test_expected_gain_is_the_mean_of_the_positive_part() -> None:
    assert expected_gain((0.1, 0.1)) == pytest.approx(0.1)
    assert expected_gain((-0.1, -0.1)) == 0
    assert expected_gain((-0.1, 0.1)) == pytest.approx(0.1 / 1.2816 * 0.39894, rel=1e-3)


@pytest.mark.parametrize(
    ("version", "specifier", "inside"),
    [
        ("0.5.9.post1", ">=0.5.9,<0.5.10", True),
        ("vLLM 0.32.0+cpu", ">=0.17", True),
        ("0.5.3", ">=0.5.4", False),
        ("b8234", ">=1", None),
        ("", ">=1", None),
        ("0.5.9", "", True),
    ],
)
def test_versions_are_compared_as_pip_does_and_what_is_none_is_unknown(
    version: str, specifier: str, inside: bool | None
) -> None:
    assert within(version, specifier) is inside


def test_an_option_of_trtllms_file_is_no_unknown_flag_of_a_recorded_version() -> None:
    plan = applied(TargetQuestion(engine="trtllm", model="llama-3.1-8b", on="h200"))

    assert thought("kv-fp8", plan).outcome == "planned"
    assert not [one for one in plan.reasoning.entries.values() if "has no flag --config." in one.reason]
