"""Finished requests on disk: written by load processes as they end, read back by the runner.

A frame is four bytes of length and one msgpack array. Nothing of a finished request stays in memory, so a load test may
last as long as the disk; a process that is killed loses the frame it was writing and no other.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from assay.load.exchange import CUT_BY_DRAIN, Exchange
from assay.records.load import PlannedRequest, RequestSample

LENGTH_BYTES = 4
MAX_SHARED = 8
"""Leading tokens (beyond the declared ones) that two prompts may share: no server caches so short a prefix."""
OPENING_CHARACTERS = 64
"""The same for prompts that are text and share nothing."""


class SpooledRequest(msgspec.Struct, array_like=True, gc=False):
    """One request as it ended. Stamps: nanoseconds of the monotonic clock."""

    index: int
    turn: int
    stream: int
    intended_ns: int
    sent_ns: int
    ended_ns: int
    chunks: bytes
    """Arrival of every content chunk, int64."""
    chunk_tokens: bytes
    """Tokens of each, int32; zeros where the stream does not tell."""
    merged: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    wanted_input_tokens: int | None
    """Where the prompt is token ids: the tokens of a text are the server's to count."""
    wanted_output_tokens: int
    shared_tokens: int
    status: int | None
    finish_reason: str | None
    first_text: str | None
    error: str | None
    digest: bytes
    """SHA-256 of what was asked: index, turn, prompt, output length."""
    opening: bytes
    """Digest of the prompt's beginning behind its declared shared prefix; empty where nothing lies behind it."""

    @property
    def chunk_ns(self) -> array[int]:
        """Arrival of every content chunk."""
        found = array("q")
        found.frombytes(self.chunks)
        return found

    @property
    def tokens_of_chunks(self) -> array[int]:
        """Tokens of each chunk; zeros where the stream does not tell."""
        found = array("i")
        found.frombytes(self.chunk_tokens)
        return found


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(SpooledRequest)


def spooled(exchange: Exchange) -> SpooledRequest:
    """An ended exchange as it goes to disk."""
    planned, reply = exchange.due.planned, exchange.reply
    asked = _ENCODER.encode((planned.index, planned.turn, planned.system, planned.prompt, planned.output_tokens))
    return SpooledRequest(
        index=planned.index,
        turn=planned.turn,
        stream=exchange.stream,
        intended_ns=exchange.due.intended_ns,
        sent_ns=exchange.sent_ns,
        ended_ns=exchange.sent_ns if exchange.ended_ns is None else exchange.ended_ns,
        chunks=reply.chunk_ns.tobytes(),
        chunk_tokens=reply.chunk_tokens.tobytes(),
        merged=exchange.merged,
        input_tokens=reply.prompt_tokens,
        output_tokens=reply.completion_tokens,
        cached_tokens=reply.cached_tokens,
        wanted_input_tokens=planned.input_tokens if isinstance(planned.prompt, list) else None,
        wanted_output_tokens=planned.output_tokens,
        shared_tokens=planned.shared_tokens,
        status=exchange.status,
        finish_reason=reply.finish_reason,
        first_text=reply.first_text,
        error=exchange.error,
        digest=hashlib.sha256(asked).digest(),
        opening=_opening(planned),
    )


def _opening(planned: PlannedRequest) -> bytes:
    prompt, shared = planned.prompt, planned.shared_tokens
    if isinstance(prompt, str):
        if planned.input_tokens is not None and shared >= planned.input_tokens:
            return b""
        # Where the shared part ends among the characters is not known; and any tail alone recurs in our own text.
        begin = prompt if shared else prompt[:OPENING_CHARACTERS]
        return hashlib.blake2b(begin.encode(), digest_size=8).digest()
    if shared >= len(prompt):
        return b""
    return hashlib.blake2b(_ENCODER.encode(prompt[shared : shared + MAX_SHARED + 1]), digest_size=8).digest()


class Spool:
    """The file of one load process."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def add(self, request: SpooledRequest) -> None:
        """Append one request."""
        frame = _ENCODER.encode(request)
        self._sink.write(len(frame).to_bytes(LENGTH_BYTES, "little"))
        self._sink.write(frame)


def read_spools(paths: Iterable[Path]) -> Iterator[SpooledRequest]:
    """All requests of some spools, file after file; a frame cut off at the end is left out."""
    for path in paths:
        with path.open("rb") as source:
            while len(head := source.read(LENGTH_BYTES)) == LENGTH_BYTES:
                frame = source.read(int.from_bytes(head, "little"))
                try:
                    yield _DECODER.decode(frame)
                except msgspec.MsgspecError:
                    break


def to_sample(request: SpooledRequest, began_ns: int | None, ended_ns: int | None) -> RequestSample:
    """A request with its phase.

    Args:
        request: as spooled.
        began_ns: start of the first measured window; None when it never came.
        ended_ns: end of the last one.
    """
    chunk_ns = list(request.chunk_ns)
    return RequestSample(
        index=request.index,
        stream=request.stream,
        intended_ns=request.intended_ns,
        sent_ns=request.sent_ns,
        first_content_ns=chunk_ns[0] if chunk_ns else None,
        chunk_ns=chunk_ns,
        ended_ns=request.ended_ns,
        input_tokens=request.input_tokens,
        output_tokens=request.output_tokens,
        cached_tokens=request.cached_tokens,
        wanted_output_tokens=request.wanted_output_tokens,
        status=request.status,
        finish_reason=request.finish_reason,
        first_text=request.first_text,
        error=request.error,
        phase=phase(request, began_ns, ended_ns),
    )


def phase(request: SpooledRequest, began_ns: int | None, ended_ns: int | None) -> str:
    """By the time of sending; a request that our drain cut belongs to the drain."""
    if request.error == CUT_BY_DRAIN or (ended_ns is not None and request.sent_ns >= ended_ns):
        return "drain"
    return "warm-up" if began_ns is None or request.sent_ns < began_ns else "measured"
