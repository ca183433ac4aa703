"""One completion of the simulated server: its sequence in the batch, and its answer as it is written."""

from __future__ import annotations

import json
from typing import Any

from assay.rehearsal import answers
from assay.rehearsal.batch import Sequence
from assay.rehearsal.http import STREAM_END, STREAM_HEAD, Connection, framed

DEFAULT_TOKENS = 16
MODEL = "model"
KINDS = {
    (True, True): "chat.completion.chunk",
    (True, False): "chat.completion",
    (False, True): "text_completion",
    (False, False): "text_completion",
}
"""OpenAI's name for an answer, by chat and streamed."""


class Completion:
    """A request for tokens that is being answered."""

    def __init__(self, connection: Connection, body: dict[str, Any], number: int, *, chat: bool, now_s: float) -> None:
        """Read the request.

        Raises:
            ValueError: it has no prompt, or no usable length.
        """
        ids = answers.prompt_ids(body)
        if not ids:
            raise ValueError("a completion needs a prompt")
        wanted = body.get("max_tokens") or body.get("max_completion_tokens") or DEFAULT_TOKENS
        if not isinstance(wanted, int) or wanted < 1:
            raise ValueError(f"max_tokens = {wanted!r}")
        self.connection = connection
        self.sequence = Sequence(prompt_tokens=len(ids), output_tokens=wanted, arrived_s=now_s, owner=self)
        self.prompt_hash = answers.hash_of(ids)
        self.first: int | None = None
        """The token it opens with, known when it is written."""
        self.breaks = False
        """Whether it will end in an error event."""
        self.sent = 0
        self.flush_at_s = 0.0
        """Real time from which on it is worth another chunk."""
        self._chat, self.streams = chat, bool(body.get("stream"))
        options = body.get("stream_options")
        self._usage = isinstance(options, dict) and bool(options.get("include_usage"))
        self._kind = KINDS[self._chat, self.streams]
        self._head, self._tail = self._around(number)

    def write(self, made: int) -> None:
        """Send the tokens made since the last time as one chunk; the very first token has one of its own."""
        if not self.streams or made <= self.sent or not self.connection.open:
            return
        data = b""
        if not self.sent:
            data, self.sent = STREAM_HEAD + self._chunk(0, 1), 1
        if made > self.sent:
            data += self._chunk(self.sent, made)
        self.connection.write(data)
        self.sent = made

    def finish(self) -> None:
        """The end of the stream, or the whole answer."""
        if self.streams:
            data = framed(self._end()) + (framed(self._usage_event()) if self._usage else b"") + framed(b"[DONE]")
            self.connection.write(data + STREAM_END)
            self.connection.done()
        else:
            self.connection.answer(json.dumps(self._whole()).encode())

    def fail(self, message: str) -> None:
        """End in an error, in the stream where one has begun."""
        content = json.dumps({"error": {"message": message, "type": "server_error", "code": 500}}).encode()
        if not self.streams:
            self.connection.answer(content, status=400)
            return
        self.connection.write((b"" if self.sent else STREAM_HEAD) + framed(content) + framed(b"[DONE]") + STREAM_END)
        self.connection.done()

    def _chunk(self, begin: int, end: int) -> bytes:
        assert self.first is not None
        return framed(self._head + answers.text_of(self.first, begin, end).encode() + self._tail)

    def _around(self, number: int) -> tuple[bytes, bytes]:
        """What stands before and after the text in every chunk."""
        mark = "\0"
        choice: dict[str, Any] = {"index": 0, "finish_reason": None}
        choice |= {"delta": {"content": mark}} if self._chat else {"text": mark}
        event = {"id": f"sim-{number}", "object": self._kind, "created": 0, "model": MODEL, "choices": [choice]}
        head, _, tail = json.dumps(event).partition(json.dumps(mark)[1:-1])
        return head.encode(), tail.encode()

    def _end(self) -> bytes:
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
        choice |= {"delta": {"content": ""}} if self._chat else {"text": ""}
        return json.dumps({"object": self._kind, "model": MODEL, "choices": [choice]}).encode()

    def _usage_event(self) -> bytes:
        return json.dumps({"model": MODEL, "choices": [], "usage": self._counts()}).encode()

    def _counts(self) -> dict[str, Any]:
        prompt, output = self.sequence.prompt_tokens, self.sequence.output_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": 0},
        }

    def _whole(self) -> dict[str, Any]:
        assert self.first is not None
        text = answers.text_of(self.first, 0, self.sequence.output_tokens)
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length", "token_ids": [self.first]}
        choice |= {"message": {"role": "assistant", "content": text}} if self._chat else {"text": text}
        return {"object": self._kind, "model": MODEL, "choices": [choice], "usage": self._counts()}
