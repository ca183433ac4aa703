"""What one failure says about arms that were not tried is used, and only where it must be so."""

from __future__ import annotations

from typing import Any

import pytest

from assay.engines.failure import failure_of
from assay.plan.implied import implied
from assay.plan.scoring import score
from assay.plan.steps import Done
from assay.records.failure import Cause
from assay.records.run import Failure
from assay.render.words import verdict_words
from tests.unit.simulated_world import World, drive, hypothesis, start, trouble_for

TOO_LONG = (
    "ValueError: To serve at least one request with the models's max seq len (40960), (5.00 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (2.25 GiB)."
)
UNKNOWN = "vllm serve: error: unrecognized arguments: --warp-drive"
NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
EXCLUDES = "ValueError: Pipeline parallelism is not supported with speculative decoding."


def failure(line: str) -> Failure:
    return failure_of(line, "server.log", 1, "vllm")


def ids(line: str, failed: dict[str, Any], *others: dict[str, Any]) -> list[str]:
    """Which of the others, named by their number, must fail as the failed arm did."""
    arms = [hypothesis(f"h{number}", number=number + 1, **changes) for number, changes in enumerate(others)]
    return [each.id for each in implied(failure(line), hypothesis("failed", **failed), arms)]


def test_a_flag_that_the_build_does_not_know_fails_in_every_arm() -> None:
    failed = {"flags": {"--warp-drive": True}}

    assert ids(UNKNOWN, failed, {"flags": {"--warp_drive": 9, "--tp": 2}}, {"flags": {"--tp": 2}}) == ["h0"]


def test_a_value_too_large_implies_larger_ones_and_not_smaller_ones() -> None:
    failed = {"flags": {"--max-model-len": 40960}}
    others = [{"flags": {"--max-model-len": length}} for length in (20000, 40960, 65536)]

    assert ids(TOO_LONG, failed, *others) == ["h1", "h2"]


def test_a_larger_value_with_another_change_beside_it_is_tried() -> None:
    failed = {"flags": {"--max-model-len": 40960}}

    assert ids(TOO_LONG, failed, {"flags": {"--max-model-len": 65536, "--kv-cache-dtype": "fp8"}}) == []


def test_a_backend_without_a_kernel_for_this_gpu_fails_wherever_it_is_chosen() -> None:
    failed = {"flags": {"--attention-backend": "warp", "--block-size": 64}}
    same, other = {"flags": {"--attention-backend": "warp"}}, {"flags": {"--attention-backend": "slow"}}

    assert ids(NO_KERNEL, failed, same, other) == ["h0"]


def test_a_combination_fails_with_more_on_top_and_not_in_part() -> None:
    failed = {"flags": {"--pp": 2, "--spec": "ngram"}}
    more, less = {"flags": {"--pp": 2, "--spec": "ngram", "--x": 1}}, {"flags": {"--pp": 2}}

    assert ids(EXCLUDES, failed, more, less) == ["h0"]


def test_an_accident_implies_nothing() -> None:
    crashed = failure(UNKNOWN).model_copy(update={"cause": Cause.CRASHED})

    assert implied(crashed, hypothesis("failed"), [hypothesis("other", flags={"--warp-drive": True})]) == []


def test_an_arm_that_must_fail_is_blocked_unrun_and_says_why() -> None:
    told = failure("vllm serve: error: unrecognized arguments: --first")
    arms = [
        hypothesis("first"),
        hypothesis("second", number=2, flags={"--first": 2, "--y": 1}),
        hypothesis("z", number=3),
    ]
    journal = start(arms)

    assert isinstance(drive(journal, World(effects={}, trouble=trouble_for("first", told))), Done)

    verdict = journal.state.verdicts["second"]
    assert (verdict.kind, verdict.cause, verdict.runs) == ("blocked", "implied", [])
    assert verdict.reason.startswith("not tried: first failed with unknown-flag, and every arm with --first")
    assert not [run for run in journal.state.runs if run.intent.candidate == "second"]
    assert [run for run in journal.state.runs if run.intent.candidate == "z"]
    scored = {one.hypothesis: one for one in score(journal.state)}
    assert (scored["second"].applicability, scored["second"].unscored) == (None, verdict.reason)
    assert verdict_words(verdict) == "blocked: by another's failure"


@pytest.mark.parametrize("line", ["OSError: [Errno 98] Address already in use", "Segmentation fault"])
def test_a_failure_of_the_process_alone_blocks_nobody_else(line: str) -> None:
    failed = {"flags": {"--x": 1}}

    assert ids(line, failed, {"flags": {"--x": 1, "--y": 2}}) == []
