"""Requests that the server has no room for are found before anything is launched."""

from __future__ import annotations

import pytest

from assay.plan import spellings
from assay.plan.context import beyond_context
from assay.records.base import Flags
from assay.records.machine import FlagInfo
from assay.records.spec import CampaignSpec, LoadPoint, Target, Workload
from tests.unit.simulated_world import BUILD, MODEL

SMALL = MODEL.model_copy(update={"context_length": 8_192})
LONG = Workload(shared_prefix_tokens=100_000)


def told(engine: str = "llamacpp", flags: Flags | None = None, workload: Workload = LONG) -> str | None:
    spec = CampaignSpec(target=Target(engine=engine, flags=flags or {}), workload=workload)
    return beyond_context(spec, BUILD.model_copy(update={"engine": engine}), SMALL)


def test_a_prefix_beyond_the_models_context_is_told_with_the_numbers() -> None:
    assert told() == (
        "workload: prompts of up to 100,064 tokens, 100,000 of them shared, and answers of up to 48 need 100,112 "
        "tokens of context, and the server has 8,192 (by the model)"
    )


@pytest.mark.parametrize(
    ("engine", "flags", "words"),
    [
        ("vllm", {"--max-model-len": 65_536}, "has 65,536 (by --max-model-len)"),
        ("sglang", {"--context-length": "65536"}, "has 65,536 (by --context-length)"),
        ("llamacpp", {"--ctx-size": 200_000, "--parallel": 4}, "has 50,000 (200,000 by --ctx-size, over 4 slots"),
        ("llamacpp", {"--ctx-size": 0}, "has 8,192 (by the model)"),
    ],
)
def test_what_the_command_gives_comes_first(engine: str, flags: Flags, words: str) -> None:
    assert words in str(told(engine, flags))


@pytest.mark.parametrize(
    ("engine", "flags"),
    [
        ("vllm", {"--max-model-len": 131_072}),
        ("vllm", {"--max-model-len": "auto"}),
        ("llamacpp", {"--ctx-size": 200_000, "--parallel": 4, "--kv-unified": True}),
    ],
)
def test_what_fits_or_is_left_to_the_engine_is_not_told(engine: str, flags: Flags) -> None:
    assert told(engine, flags) is None


def test_a_further_operating_point_is_named() -> None:
    points = [LoadPoint(name="long", concurrency=1, input_tokens=(9_000, 9_000))]

    assert "at the point long need 9,048" in str(told(workload=Workload(points=points)))
    assert told(workload=Workload()) is None


def test_nobody_is_stopped_where_the_context_is_unknown() -> None:
    assert beyond_context(CampaignSpec(workload=LONG), BUILD, MODEL.model_copy(update={"context_length": None})) is None


@pytest.mark.parametrize(
    ("engine", "given", "words"),
    [
        ("vllm", "16k", "has 16,000 (by --max-model-len)"),
        ("vllm", "64K", "has 65,536 (by --max-model-len)"),
        ("sglang", "16Ki", "has 16,384 (by --context-length)"),
        ("vllm", "1M", "None"),
        ("vllm", "auto", "None"),
        ("vllm", "-1", "None"),
    ],
)
def test_a_context_is_read_as_its_engine_reads_it(engine: str, given: str, words: str) -> None:
    flag = {"vllm": "--max-model-len", "sglang": "--context-length"}[engine]
    build = BUILD.model_copy(update={"engine": engine, "flags": [FlagInfo(names=[flag], value="SIZE")]})
    spec = CampaignSpec(target=Target(engine=engine, flags={flag: given}), workload=LONG)

    assert words in str(beyond_context(spec, build, SMALL))


def test_a_condition_compares_a_size_as_a_number_and_does_not_know_what_is_left_to_the_engine() -> None:
    build = BUILD.model_copy(
        update={"engine": "vllm", "flags": [FlagInfo(names=["--max-model-len"], value="SIZE", default=None)]}
    )

    assert spellings.value(build, {"--max-model-len": "25.6k"}, "--max-model-len") == 25_600
    assert spellings.value(build, {"--max-model-len": "auto"}, "--max-model-len") is None
