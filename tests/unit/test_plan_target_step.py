"""Tokens that a workload's requests hold and compute: one rule for the plan, the rehearsal and the report."""

from __future__ import annotations

import pytest

from assay.api.plan_facts import served_of
from assay.models import load
from assay.plan.target_step import Served, beside_prefixes, load_of, target_step
from assay.probes.devices import box
from assay.records.base import Flags
from assay.records.estimate import Host, Layout
from assay.records.machine import EngineBuild
from assay.records.spec import CampaignSpec, Target, Workload
from assay.roofline import memory
from assay.roofline.experts import RANDOM_WEIGHTS

SHARED = Workload(
    concurrency=4096, input_tokens=(100, 101), output_tokens=(50, 51), shared_prefix_tokens=4000, shared_prefix_groups=3
)
SHAPE, BOX = load("qwen3-30b-a3b"), box("h200")


def test_a_cached_prefix_is_read_by_every_step_and_held_once_for_its_group() -> None:
    found = load_of(SHARED, caches_prefixes=True)

    assert (found.input_tokens, found.output_tokens) == (101, 51)
    assert found.context_tokens == 101 + 25 + 4000
    assert found.reserved_tokens == 101 + 51
    budget = memory.budget(SHAPE, BOX, Layout())
    assert beside_prefixes(budget, SHARED, caches_prefixes=True).cache_tokens == budget.cache_tokens - 3 * 4000


def test_without_a_prefix_cache_every_request_computes_and_holds_it() -> None:
    found = load_of(SHARED, caches_prefixes=False)

    assert (found.input_tokens, found.context_tokens, found.reserved_tokens) == (4101, 4101 + 25, 4101 + 51)
    budget = memory.budget(SHAPE, BOX, Layout())
    assert beside_prefixes(budget, SHARED, caches_prefixes=False) == budget


def test_both_rules_are_one_where_nothing_is_shared() -> None:
    plain = SHARED.model_copy(update={"shared_prefix_tokens": 0})

    assert load_of(plain, caches_prefixes=True) == load_of(plain, caches_prefixes=False)


def test_a_step_with_a_prefix_cache_runs_as_many_as_fit_beside_the_prefixes() -> None:
    cached = target_step(SHAPE, BOX, Served(layout=Layout()), SHARED)
    whole = target_step(SHAPE, BOX, Served(layout=Layout(), caches_prefixes=False), SHARED)
    assert not isinstance(cached, str)
    assert not isinstance(whole, str)

    tokens = cached.memory.cache_tokens
    assert cached.point.running == min(4096, (tokens - 3 * 4000) // 152)
    assert whole.point.running == min(4096, tokens // (4101 + 51))
    assert cached.point.running > whole.point.running


@pytest.mark.parametrize(
    ("engine", "version", "flags", "scheduling"),
    [
        ("vllm", "0.26.0", {}, "overlapped"),
        ("vllm", "0.26.0", {"--no-async-scheduling": True}, "serial"),
        ("vllm", "vLLM 0.11.1", {}, "serial"),
        ("sglang", "0.5.9", {"--disable-overlap-schedule": True}, "serial"),
        ("trtllm", "1.1.0", {}, "overlapped"),
    ],
)
def test_scheduling_is_read_from_version_and_command(engine: str, version: str, flags: Flags, scheduling: str) -> None:
    build = EngineBuild(engine=engine, argv=[engine], version=version, source="PATH", flags=[])

    served = served_of(CampaignSpec(target=Target(engine=engine, flags=flags)), build)

    assert served is not None
    assert served.host is not None
    assert served.host.scheduling == scheduling


def test_keys_of_json_flags_reach_the_estimate_as_flags_of_their_own() -> None:
    build = EngineBuild(engine="vllm", argv=["vllm"], version="0.26.0", source="PATH", flags=[])
    flags: Flags = {"-cc.mode": 0, "-cc.cudagraph_mode": "FULL_DECODE_ONLY"}

    served = served_of(CampaignSpec(target=Target(engine="vllm", flags=flags)), build)

    assert served is not None
    assert served.host is not None
    assert (served.host.graphs, served.host.compiles) == ("decode", False)


def test_controls_lose_what_the_target_overlaps_and_captures() -> None:
    load = Workload(concurrency=64, input_tokens=(256, 256), output_tokens=(224, 224))
    host = Host(engine="vllm", why="a test")
    found = target_step(SHAPE, BOX, Served(layout=Layout(), host=host, shares_steps=True), load)
    serial = host.model_copy(update={"scheduling": "serial"})
    switched = target_step(SHAPE, BOX, Served(layout=Layout(), host=serial, shares_steps=True), load)
    assert not isinstance(found, str)
    assert not isinstance(switched, str)

    lost = found.ceilings["serial-scheduling"].gain
    of_a_step = found.point.decode.time_s.mid / switched.point.decode.time_s.mid - 1
    assert of_a_step < lost.mid < 0  # prompts take as long as before
    assert lost.low < lost.high < 0
    assert found.ceilings["graphs-for-decode-alone"].gain.low < 0
    assert not switched.ceilings["serial-scheduling"].applies


def test_random_weights_are_taken_to_choose_experts_unevenly() -> None:
    build = EngineBuild(engine="vllm", argv=["vllm"], version="0.26.0", source="PATH", flags=[])
    declared, asked_for, plain = (
        served_of(CampaignSpec(target=target), build)
        for target in (
            Target(engine="vllm", random_weights=True),
            Target(engine="vllm", flags={"--load-format": "dummy"}),
            Target(engine="vllm"),
        )
    )
    assert declared is not None
    assert asked_for is not None
    assert plain is not None

    assert declared.routing == asked_for.routing == RANDOM_WEIGHTS
    assert plain.routing is None


@pytest.mark.parametrize(
    ("engine", "flags", "caches"),
    [
        ("vllm", {}, True),
        ("vllm", {"--enable-prefix-caching": False}, False),
        ("sglang", {}, True),
        ("sglang", {"--disable-radix-cache": True}, False),
        ("trtllm", {}, True),
        ("rehearsal", {}, False),
    ],
)
def test_whether_prefixes_are_cached_is_read_from_the_command(engine: str, flags: Flags, caches: bool) -> None:
    build = EngineBuild(engine=engine, argv=[engine], version="1", source="PATH", flags=[])

    served = served_of(CampaignSpec(target=Target(engine=engine, flags=flags)), build)

    assert served is not None
    assert served.caches_prefixes is caches
