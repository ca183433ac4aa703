"""An exchange says the same of an answer however its bytes arrive: token by token, byte by byte, or all at once."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.load.exchange import Exchange
from assay.load.schedule import Due
from assay.records.load import PlannedRequest

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TEXTS = st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=6)
CONTENT = st.sampled_from(["text", "content", "reasoning_content"])


def frame(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def chunk(text: str, where: str, finish: str | None = None) -> bytes:
    choice = {"text": text} if where == "text" else {"delta": {where: text}}
    return b"data: " + json.dumps({"choices": [{**choice, "finish_reason": finish}]}).encode() + b"\n\n"


def answer(texts: list[str], where: str) -> list[bytes]:
    """Head, one frame a token, and the end: as most servers write them."""
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": len(texts)}}
    tail = [chunk("", where, "length"), b"data: " + json.dumps(usage).encode() + b"\n\n", b"data: [DONE]\n\n"]
    return [HEAD, *(frame(chunk(text, where)) for text in texts), *map(frame, tail), b"0\r\n\r\n"]


def fed(pieces: list[bytes], wanted: int) -> Exchange:
    """The exchange after these reads, one a nanosecond."""
    due = Due(planned=PlannedRequest(index=0, prompt=[1], output_tokens=wanted), intended_ns=0)
    exchange = Exchange(due, 0, 0, lambda _at_ns: None, keep_text=True)
    for at_ns, piece in enumerate(pieces, start=1):
        if not exchange.ended:
            exchange.take(piece, at_ns)
    return exchange


def told(exchange: Exchange) -> tuple[object, ...]:
    reply = exchange.reply
    return (exchange.error, exchange.status, reply.texts, reply.completion_tokens, reply.finish_reason, exchange.ended)


@given(TEXTS, CONTENT, st.integers(1, 40))
@settings(deadline=None)
def test_any_cut_of_the_bytes_gives_the_same_exchange(texts: list[str], where: str, size: int):
    frames = answer(texts, where)
    whole = b"".join(frames)
    one_by_one = fed(frames, len(texts))
    assert one_by_one.error is None
    assert one_by_one.reply.texts == texts
    assert told(fed([whole], len(texts))) == told(one_by_one)
    assert told(fed([whole[at : at + size] for at in range(0, len(whole), size)], len(texts))) == told(one_by_one)


def test_tokens_that_arrive_one_by_one_have_a_stamp_each_and_those_of_one_read_share_it():
    frames = answer(["a", "b", "c"], "text")
    apart, together = fed(frames, 3), fed([frames[0], b"".join(frames[1:])], 3)
    assert (list(apart.reply.chunk_ns), apart.merged) == ([2, 3, 4], 0)
    assert (list(together.reply.chunk_ns), together.merged) == ([2, 2, 2], 2)


@given(st.binary(max_size=200), st.integers(1, 20))
@settings(deadline=None)
def test_arbitrary_bytes_behind_a_good_head_end_in_an_error_or_go_on_and_never_crash(noise: bytes, size: int):
    pieces = [HEAD, frame(chunk("a", "text")), *(noise[at : at + size] for at in range(0, len(noise), size))]
    exchange = fed(pieces, 1)
    exchange.lost(999, None)
    assert exchange.error is not None


@pytest.mark.parametrize("size_line", [b"0x4f", b"1_0", b"+4f", b" 4f"])
def test_a_chunk_size_that_only_python_would_read_is_refused(size_line: bytes):
    data = chunk("a", "text")
    exchange = fed([HEAD, frame(data), size_line + b"\r\n" + data + b"\r\n"], 9)
    exchange.lost(9, None)
    assert exchange.error is not None
    assert exchange.error.startswith(("protocol", "reset"))


EVENT = chunk("a", "text")
ODD_READS = {
    "two events in one transfer chunk": frame(EVENT + EVENT),
    "an event that ends with CRLF": frame(EVENT[:-2] + b"\r\n\r\n"),
    "a comment, then an event": frame(b": alive\n\n" + EVENT),
    "an event of two data lines": frame(b'data: {"choices": [{"text": "a",\ndata: "finish_reason": null}]}\n\n'),
    "a chunk with an extension": b"%x;x=1\r\n%s\r\n" % (len(EVENT), EVENT),
    "an event named error": frame(b'event: error\ndata: {"message": "no"}\n\n'),
    "an error in the data": frame(b'data: {"error": {"message": "no"}}\n\n'),
    "a chunk longer than what is there": b"%x\r\n%s\r\n" % (len(EVENT) + 40, EVENT),
    "a chunk shorter than what is there": b"%x\r\n%s\r\n" % (len(EVENT) - 4, EVENT),
    "two chunks in one read": frame(EVENT) + frame(EVENT),
    "a carriage return in the text": frame(b'data: {"choices": [{"text": "a"}],\r"x": 1}\n\n'),
}


@pytest.mark.parametrize("odd", ODD_READS.values(), ids=ODD_READS.keys())
def test_a_read_that_only_looks_like_one_token_says_the_same_as_its_bytes_one_by_one(odd: bytes):
    frames = answer(["x", "y", "z"], "text")
    reads = [*frames[:2], odd, *frames[2:]]
    whole = b"".join(reads)
    bytewise = fed([whole[at : at + 1] for at in range(len(whole))], 3)
    assert told(fed(reads, 3)) == told(bytewise)
