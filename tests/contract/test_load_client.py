"""The load generator against a server that misbehaves."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
import time
import zlib

import pytest

from assay.errors import MeasurementError, UsageError
from assay.load import create
from assay.load.client import Client
from assay.load.exchange import Exchange
from assay.load.runner import spec_of
from assay.load.schedule import Due
from assay.load.spool import spooled, to_sample
from assay.load.workloads import build
from assay.load.workloads.prompts import TokenPrompts, corpus_text
from assay.records.load import LoadRequest, LoadResult, PlannedRequest, RequestSample
from assay.records.spec import Workload
from tests.contract.hostile_server import Behaviour, HostileServer, serving

QUICK = Workload(
    concurrency=4,
    input_tokens=(12, 20),
    output_tokens=(4, 8),
    window_s=0.2,
    windows=2,
    warmup_min_s=0.0,
    warmup_max_s=2.0,
)


def words(text: str) -> list[int]:
    return [zlib.crc32(word.encode()) % 50_000 for word in re.findall(r"\w+|[^\w\s]", text)]


def alive() -> bool:
    return True


def load(server: HostileServer, workload: Workload = QUICK, **more) -> LoadResult:
    return create().run(request_to(server.url, workload), words, more.pop("alive", alive), **more)


def valid_load(server: HostileServer, workload: Workload = QUICK, **more) -> LoadResult:
    """A load run with measures; one that the machine disturbed is repeated, as in a campaign."""
    for _ in range(8):
        result = load(server, workload, **more)
        failed = {gate.name: gate.evidence for gate in result.gates if not gate.passed}
        if not failed:
            return result
        assert failed.keys() <= {"client-not-saturated", "concurrency-held", "steady"}, failed
    pytest.fail(f"never undisturbed: {failed}")


def one_reply(how: Behaviour) -> RequestSample:
    """What the client says of a single request, answered thus."""

    with serving(how) as server:
        return asyncio.run(first_exchange(server.url))


async def first_exchange(url: str) -> RequestSample:
    ended: list[Exchange] = []
    client = Client(spec_of(request_to(url)), lambda _at_ns: None, ended.append)
    async with asyncio.timeout(20):
        await client.send(Due(planned=planned(0), intended_ns=time.monotonic_ns()), 0)
    client.close()
    (exchange,) = ended
    return to_sample(spooled(exchange), None, None)


def request_to(url: str, workload: Workload = QUICK, seed: int = 7) -> LoadRequest:
    body = {"cache_prompt": False}  # what this engine wants besides
    return LoadRequest(base_url=url, model="tiny", workload=workload, seed=seed, extra_body=body)


def planned(index: int) -> PlannedRequest:
    """What the load generator asks for as its request of that number."""
    spec = spec_of(request_to("http://127.0.0.1:1"))
    source = build(spec.workload, spec.seed, TokenPrompts(words(corpus_text(spec.seed))))
    return source.session(index).requests[0]


def gate(result: LoadResult, name: str) -> str:
    """Evidence of a gate that must have failed, and must have voided the measures."""
    found = next(gate for gate in result.gates if gate.name == name)
    assert not found.passed
    assert found.remedy
    assert result.measures is None
    return found.evidence


def test_a_good_reply_is_a_success_with_its_tokens_from_usage():
    sample = one_reply(Behaviour())
    assert sample.error is None
    assert sample.status == 200
    assert sample.output_tokens == sample.wanted_output_tokens == len(sample.chunk_ns)
    assert sample.cached_tokens == 0
    assert sample.finish_reason == "length"
    assert sample.first_text == " w0"
    assert sample.intended_ns <= sample.sent_ns < sample.chunk_ns[0] <= sample.chunk_ns[-1] <= sample.ended_ns


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("503", "http-503: no slot is free"),
        ("429", "http-429: no slot is free"),
        ("in-band", "in-band: the slot was evicted"),
        ("error-line", "in-band: the slot was evicted"),
        ("reset", "reset: "),
        ("hang-up", "reset: the connection closed in the middle of the response"),
        ("no-done", "no-done: "),
        ("no-finish", "no-finish: "),
        ("zero-tokens", "no-content: "),
        ("invisible", "no-content: "),
        ("short", "short: "),
        ("garbage", "protocol: "),
    ],
)
def test_a_reply_that_went_wrong_is_an_error_of_its_kind_and_never_a_success(fault: str, error: str):
    sample = one_reply(Behaviour(fault=fault))
    assert sample.error is not None
    assert sample.error.startswith(error)


@pytest.mark.parametrize("fault", ["crlf", "comments", "gzip"])
def test_other_spellings_of_the_event_stream_change_nothing(fault: str):
    sample = one_reply(Behaviour(fault=fault))
    assert (sample.error, sample.first_text, len(sample.chunk_ns)) == (None, " w0", sample.wanted_output_tokens)


@pytest.mark.parametrize("fault", ["empty-first", "role-first"])
def test_an_empty_first_chunk_is_not_the_first_token(fault: str):
    sample = one_reply(Behaviour(fault=fault, first_s=0.2))
    assert sample.first_content_ns is not None
    assert sample.first_content_ns - sample.sent_ns >= 200_000_000
    assert len(sample.chunk_ns) == sample.wanted_output_tokens


@pytest.mark.parametrize("fault", ["reasoning", "tool-calls"])
def test_reasoning_and_tool_calls_are_content(fault: str):
    sample = one_reply(Behaviour(fault=fault))
    assert sample.error is None
    assert len(sample.chunk_ns) == sample.wanted_output_tokens
    assert "w0" in (sample.first_text or "")


def test_a_character_split_between_two_packets_arrives_whole():
    sample = one_reply(Behaviour(fault="utf8-split"))
    assert (sample.error, sample.first_text) == (None, "ü€😀")


def test_a_token_without_text_counts_as_content_when_the_server_counts_it():
    sample = one_reply(Behaviour(fault="invisible-counted"))
    assert (sample.error, len(sample.chunk_ns)) == (None, sample.wanted_output_tokens)


def test_a_port_where_nobody_listens_is_a_connect_error():
    sample = asyncio.run(first_exchange("http://127.0.0.1:1"))
    assert sample.status is None
    assert (sample.error or "").startswith("connect: ")


def test_a_sound_server_yields_measures_and_every_gate_passes():
    with serving(Behaviour()) as server:
        result = valid_load(server)
    assert len(result.gates) == 10
    assert result.measures is not None
    assert len(result.measures.windows) == 2
    assert result.measures.requests_completed > 10
    assert result.measures.ttft.p50_s is not None
    assert result.measures.ttft.p50_s >= 0.01
    assert {sample.phase for sample in result.samples} >= {"warm-up", "measured", "drain"}


def test_the_request_asks_for_exact_lengths_greedy_and_cold():
    with serving(Behaviour()) as server:
        load(server)
    expected = planned(20)  # the first answer of each stream is cut: it is joined in its midst
    body = next(seen.body for seen in server.seen if seen.body["prompt"] == expected.prompt)
    assert body == {
        "model": "tiny",
        "prompt": expected.prompt,
        "max_tokens": expected.output_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
        "min_tokens": expected.output_tokens,
        "temperature": 0,
        "cache_prompt": False,
    }


def test_packed_tokens_are_counted_by_usage_and_not_by_chunks():
    with serving(Behaviour(tokens_per_chunk=2, gap_s=0.01)) as server:
        result = valid_load(server, QUICK.model_copy(update={"output_tokens": (8, 8)}))
    assert result.measures is not None
    in_windows = sum(window.output_tokens_per_s * window.duration_s for window in result.measures.windows)
    start = min(sample.sent_ns for sample in result.samples if sample.phase == "measured")
    chunks = sum(at >= start for sample in result.samples for at in sample.chunk_ns)
    assert in_windows > 1.3 * chunks


def test_requests_cut_by_the_drain_are_neither_errors_nor_statistics():
    with serving(Behaviour()) as server:
        result = valid_load(server)
    cut = [sample for sample in result.samples if sample.error == "cut-by-drain"]
    assert 1 <= len(cut) <= QUICK.concurrency
    assert {sample.phase for sample in cut} == {"drain"}
    assert result.measures is not None


def test_one_failed_request_among_many_voids_the_run_and_is_not_retried():
    with serving(lambda n: Behaviour(fault="503" if n == 9 else "none")) as server:
        result = load(server)
    assert gate(result, "no-errors").startswith("1 of ")
    prompts = [tuple(seen.body["prompt"]) for seen in server.seen]
    assert len(prompts) == len(set(prompts))


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("long", "tokens-as-asked"),
        ("cut-prompt", "tokens-as-asked"),
        ("no-usage", "tokens-counted"),
        ("warm-cache", "prefix-cache-as-declared"),
        ("short", "no-errors"),
    ],
)
def test_a_server_that_cheats_on_tokens_fails_the_gate_that_says_so(fault: str, name: str):
    with serving(Behaviour(fault=fault)) as server:
        assert gate(load(server), name)


def test_a_server_that_never_answers_is_never_steady():
    with serving(Behaviour(fault="never")) as server:
        result = load(server, QUICK.model_copy(update={"warmup_max_s": 0.5}))
    assert "0, 0" in gate(result, "steady")
    assert {sample.error for sample in result.samples} == {"cut-by-drain"}


def test_replies_longer_than_the_windows_leave_too_few_requests():
    slow = QUICK.model_copy(update={"output_tokens": (400, 400), "warmup_max_s": 3.0})
    with serving(Behaviour(gap_s=0.02)) as server:
        assert gate(load(server, slow), "enough-requests").startswith("0 requests")


def test_the_look_under_load_happens_once_in_another_thread_while_requests_go_on():
    looks: list[tuple[str, int]] = []

    def look() -> None:
        before = len(server.seen)
        turn = threading.Event()
        while len(server.seen) < before + 8:
            turn.wait(0.01)
        looks.append((threading.current_thread().name, len(server.seen) - before))

    with serving(Behaviour()) as server:
        load(server, QUICK.model_copy(update={"warmup_max_s": 20.0}), under_load=look)
    ((thread, sent_meanwhile),) = looks
    assert thread != threading.current_thread().name
    assert sent_meanwhile >= 8


def test_an_error_in_the_look_under_load_reaches_the_caller():
    def look() -> None:
        raise MeasurementError("the probe failed")

    with serving(Behaviour()) as server, pytest.raises(MeasurementError, match="the probe failed"):
        load(server, under_load=look)


def test_a_server_that_dies_ends_the_load_at_once_and_a_gate_says_so():
    with serving(Behaviour()) as server:
        result = load(server, QUICK.model_copy(update={"windows": 500}), alive=lambda: len(server.seen) < 30)
    assert gate(result, "server-alive").startswith("the server died")
    assert len(server.seen) < 2_000


def test_both_arms_get_the_same_requests_in_the_same_order_whatever_their_speed():
    with serving(Behaviour()) as quick:
        load(quick)
    with serving(Behaviour(first_s=0.02, gap_s=0.006)) as slow:
        load(slow)
    issued = [sorted((tuple(s.body["prompt"]), s.body["max_tokens"]) for s in run.seen[:20]) for run in (quick, slow)]
    assert len(set(issued[0]) & set(issued[1])) >= 20 - QUICK.concurrency


def test_it_runs_in_any_thread_and_leaves_none_behind():
    results: list[LoadResult] = []
    with serving(Behaviour()) as server:
        before = set(threading.enumerate())
        worker = threading.Thread(target=lambda: results.append(valid_load(server, under_load=lambda: None)))
        worker.start()
        worker.join(timeout=30)
        assert set(threading.enumerate()) == before
    assert results[0].measures is not None


def test_ctrl_c_ends_the_load_and_leaves_no_thread():
    def interrupted() -> bool:
        if len(server.seen) > 20:
            signal.raise_signal(signal.SIGINT)
        return True

    with serving(Behaviour()) as server:
        before = set(threading.enumerate())
        with pytest.raises(KeyboardInterrupt):
            load(server, QUICK.model_copy(update={"windows": 500}), alive=interrupted)
        assert set(threading.enumerate()) == before
        assert len(server.seen) < 2_000


def test_a_tokenizer_that_cannot_tell_texts_apart_is_refused_with_its_numbers():
    with serving(Behaviour()) as server, pytest.raises(MeasurementError, match="1 distinct"):
        create().run(request_to(server.url), lambda text: [5] * len(text), alive)


def test_an_address_that_is_not_http_is_refused_with_a_hint():
    with pytest.raises(UsageError) as raised:
        create().run(request_to("ftp://127.0.0.1:1"), words, alive)
    assert "http://127.0.0.1:PORT" in (raised.value.hint or "")
