"""The decoders of HTTP/1.1 responses and event streams."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.load.http1 import MAX_HEAD_BYTES, ProtocolError, ResponseDecoder
from assay.load.reply import Reply, status_problem
from assay.load.sse import MAX_EVENT_BYTES, Event, EventDecoder

TEXT = "\ufeff: hello\r\n\r\ndata: ü€😀\n\nevent: note\rdata: one\rdata:two\r\r: ping\ndata: last\r\n\r\nid: 4\n\n"
STREAM = TEXT.encode()
EVENTS = [Event("message", "ü€😀".encode()), Event("note", b"one\ntwo"), Event("message", b"last")]


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%X;ext=1\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\nTrailer: x\r\n\r\n"


RESPONSE = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(STREAM, 7)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    borders = [0, *sorted(at % (len(data) + 1) for at in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(borders)]


@settings(deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=10_000), max_size=40))
def test_any_split_of_a_stream_gives_the_same_events(cuts: list[int]):
    decoder = EventDecoder()
    assert [event for piece in cut(STREAM, cuts) for event in decoder.feed(piece)] == EVENTS


@settings(deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=10_000), max_size=40))
def test_any_split_of_a_chunked_response_gives_the_same_events(cuts: list[int]):
    response, decoder = ResponseDecoder(), EventDecoder()
    events = [event for piece in cut(RESPONSE, cuts) for event in decoder.feed(response.feed(piece))]
    assert (events, response.status, response.complete) == (EVENTS, 200, True)


def test_a_stream_fed_byte_by_byte_gives_the_same_events():
    response, decoder = ResponseDecoder(), EventDecoder()
    events = [event for byte in RESPONSE for event in decoder.feed(response.feed(bytes([byte])))]
    assert events == EVENTS


HEADS = st.sampled_from(
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\n",
    ]
)
NOISE = st.lists(st.sampled_from([b"\r", b"\n", b"data:", b":", b"a", b"0", b"[DONE]", b"{}", b"\xff", b"HTTP/1.1 "]))


@settings(deadline=None)
@given(HEADS, st.one_of(st.binary(max_size=300), NOISE.map(b"".join)), st.lists(st.integers(0, 400), max_size=5))
def test_arbitrary_bytes_are_decoded_or_refused_and_never_crash_the_client(head: bytes, rest: bytes, cuts: list[int]):
    response, decoder, reply = ResponseDecoder(), EventDecoder(), Reply()
    try:
        for piece in cut(head + rest, cuts):
            for event in decoder.feed(response.feed(piece)):
                reply.take(event, 1)
        response.end_of_input()
    except ProtocolError as error:
        assert str(error)  # noqa: PT017 - both ways out are right, and nothing else may be raised
    assert status_problem(response.status, rest) is None or response.status != 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["choices", "usage", "text", "delta", "content", "error"]), inner, max_size=3)
    ),
)


@settings(deadline=None)
@given(JSON)
def test_any_json_in_an_event_is_read_without_a_crash(value):
    import json

    reply = Reply()
    reply.take(Event("message", json.dumps(value).encode()), 1)
    assert reply.problem(1) is not None


def test_an_event_without_end_is_refused_at_the_limit():
    decoder = EventDecoder()
    decoder.feed(b"data: ")
    for _ in range(MAX_EVENT_BYTES // 65_536 - 1):
        decoder.feed(b"x" * 65_536)
    with pytest.raises(ProtocolError, match=str(MAX_EVENT_BYTES)):
        decoder.feed(b"x" * 65_536)


def test_keep_alive_comments_never_add_up_to_the_limit():
    decoder = EventDecoder()
    for _ in range(40):
        assert decoder.feed(b": " + b"k" * 60_000 + b"\n") == []
    assert decoder.feed(b"data: x\n\n") == [Event("message", b"x")]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"SSH-2.0-server\r\n\r\n", "status line"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "status line"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "not a header"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n", "content-length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", "chunk size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "chunk should have ended"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "after the end"),
        (b"H" * (MAX_HEAD_BYTES + 1), "head of the response"),
    ],
)
def test_a_response_that_breaks_the_rules_is_refused_with_what_is_wrong(data: bytes, why: str):
    with pytest.raises(ProtocolError, match=why):
        ResponseDecoder().feed(data)


@pytest.mark.parametrize("framing", [b"Transfer-Encoding: chunked", b"Content-Length: 9"])
def test_a_response_cut_short_is_noticed_when_the_connection_closes(framing: bytes):
    response = ResponseDecoder()
    response.feed(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n3\r\nabc\r\n")
    with pytest.raises(ProtocolError, match="in the middle"):
        response.end_of_input()


def test_a_response_without_length_ends_with_the_connection():
    response = ResponseDecoder()
    assert response.feed(b"HTTP/1.1 200 OK\n\ndata: x\n\n") == b"data: x\n\n"
    assert not response.complete
    response.end_of_input()
    assert response.complete


def test_tokens_that_come_with_the_final_usage_are_not_taken_for_content():
    reply = Reply()
    last = '{"choices":[{"text":"","finish_reason":"length"}],"usage":{"completion_tokens":3,"prompt_tokens":4}}'
    assert reply.take(Event("message", b'{"choices":[{"text":" a","finish_reason":null}]}'), 10)
    assert not reply.take(Event("message", last.encode()), 20)
    assert (list(reply.chunk_ns), reply.completion_tokens, reply.prompt_tokens) == ([10], 3, 4)


def test_an_aborted_generation_is_a_failure_although_the_stream_ends_properly():
    reply = Reply()
    reply.take(Event("message", b'{"choices":[{"text":" a","finish_reason":"abort"}]}'), 10)
    reply.take(Event("message", b"[DONE]"), 20)
    assert (reply.problem(1) or "").startswith("in-band")
