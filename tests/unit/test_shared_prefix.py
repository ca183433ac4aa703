"""A workload whose prompts share a prefix says so: in its requests, its gates, its facts and its estimate."""

from __future__ import annotations

from array import array

import pytest
from pydantic import ValidationError

from assay.load.columns import Columns, columns
from assay.load.prefix import declared_share, hits_gate
from assay.load.runner import spec_of
from assay.load.server import Counters
from assay.load.spool import SpooledRequest
from assay.load.workloads import build
from assay.load.workloads.prompts import TokenPrompts
from assay.records.load import LoadRequest
from assay.records.spec import LoadPoint, Workload

SHARED = Workload(input_tokens=(40, 60), shared_prefix_tokens=150, shared_prefix_groups=2)


def requests_of(workload: Workload, count: int) -> list[list[int]]:
    spec = spec_of(LoadRequest(base_url="http://127.0.0.1:1", model="m", workload=workload, seed=7))
    source = build(spec.workload, spec.seed, TokenPrompts(list(range(2_000))))
    prompts = [source.session(number).requests[0] for number in range(count)]
    assert all(one.shared_tokens == workload.shared_prefix_tokens for one in prompts)
    return [list(one.prompt) for one in prompts if isinstance(one.prompt, list)]


def test_prompts_open_with_one_of_the_prefixes_and_go_on_each_by_itself() -> None:
    prompts = requests_of(SHARED, 40)

    assert len({tuple(one[:150]) for one in prompts}) == 2
    assert len({tuple(one[150:158]) for one in prompts}) == 40
    assert {len(one) for one in prompts} <= set(range(190, 211))


def test_without_a_declared_prefix_no_prompt_begins_as_another_one() -> None:
    assert len({tuple(one[:8]) for one in requests_of(Workload(), 40)}) == 40


def test_lengths_and_shares_are_those_of_whole_prompts() -> None:
    assert SHARED.prompt_tokens == (190, 210)
    assert SHARED.shared_share == pytest.approx(150 / 200)
    assert (Workload().shared_share, Workload().prompt_tokens) == (0.0, (24, 64))


def test_a_further_operating_point_shares_the_same_amount() -> None:
    point = SHARED.at(LoadPoint(name="single", concurrency=1))
    assert (point.shared_prefix_tokens, point.shared_prefix_groups) == (150, 2)


@pytest.mark.parametrize("wrong", [{"shared_prefix_tokens": -1}, {"shared_prefix_groups": 0}])
def test_a_prefix_of_no_length_or_no_group_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Workload(**wrong)


def spooled(shared: int, asked: int, number: int) -> SpooledRequest:
    return SpooledRequest(
        index=number, turn=0, stream=0, intended_ns=0, sent_ns=0, ended_ns=1, chunks=array("q", [1]).tobytes(),
        chunk_tokens=array("i", [0]).tobytes(), merged=0, input_tokens=asked, output_tokens=1, cached_tokens=None,
        wanted_input_tokens=asked, wanted_output_tokens=1, shared_tokens=shared, status=200, finish_reason="length",
        first_text="a", error=None, digest=b"", opening=number.to_bytes(8, "little"),
    )  # fmt: skip


def sent(shared: int, asked: int = 1_000, count: int = 10) -> Columns:
    return columns([spooled(shared, asked, number) for number in range(count)])


def gate_of(requests: Columns, hits: float, looked_up: float = 10_000.0):
    before = Counters(prefix_hits=500.0, prefix_queries=2_000.0)
    return hits_gate(requests, before, Counters(prefix_hits=500.0 + hits, prefix_queries=2_000.0 + looked_up))


def test_as_many_hits_as_are_declared_pass_with_the_servers_own_figures() -> None:
    gate = gate_of(sent(shared=750), hits=7_300)

    assert gate is not None
    assert gate.passed
    assert "7,300 of 10,000 prompt tokens (73%) from its prefix cache; 75% are declared to be shared" in gate.evidence


def test_more_hits_than_are_declared_and_chance_explains_void_the_run() -> None:
    assert declared_share(sent(shared=0)) == 0.0
    allowed, contaminated = gate_of(sent(shared=0), hits=150), gate_of(sent(shared=0), hits=600)

    assert allowed is not None
    assert contaminated is not None
    assert allowed.passed
    assert not contaminated.passed
    assert "reset the prefix cache" in contaminated.remedy


def test_a_cache_that_does_not_find_what_is_shared_is_said_and_is_no_fault_of_the_run() -> None:
    gate = gate_of(sent(shared=750), hits=0)

    assert gate is not None
    assert gate.passed
    assert "its cache is off, or does not hold them" in gate.evidence


def test_a_server_without_such_counters_is_not_judged_by_them() -> None:
    assert hits_gate(sent(shared=750), Counters(), Counters()) is None
