"""What one completion's stream says: content, token counts, its end, or its failure.

Knows the chunks of OpenAI's completions and chat completions, and the ways in which servers bend them. A chunk of the
declared shape is read by msgspec in one pass; whatever has another shape is read leniently, field by field.
"""

from __future__ import annotations

from array import array
from typing import Any

import msgspec

from assay.load.http1 import STATUS_OK
from assay.load.sse import Event

MAX_DETAIL = 300
"""Characters of a server's own error text that are kept."""
TEXTLESS = "; of tokens that are no text, `--extra-body return_token_ids=true` makes vLLM send the ids"
DONE = b"[DONE]"
_FAILED_FINISHES = frozenset({"abort", "error"})


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: msgspec.Raw | None = None

    def text(self) -> str:
        if self.reasoning_content is None and self.reasoning is None and self.tool_calls is None:
            return self.content or ""
        calls = "" if self.tool_calls is None else bytes(self.tool_calls).decode()
        parts = (self.reasoning_content, self.reasoning, self.content, calls if calls not in {"", "null", "[]"} else "")
        return "".join(part for part in parts if part)


class _Choice(msgspec.Struct, gc=False):
    text: str | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None

    def content(self) -> str:
        """Text of a chunk, wherever the server put it; tool calls count as content, by their JSON."""
        if self.delta is None:
            return self.text or ""
        return self.text + self.delta.text() if self.text else self.delta.text()


class _CachedTokens(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _CachedTokens | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: msgspec.Raw | None = None


_DECODER = msgspec.json.Decoder(_Chunk)


class Reply:
    """The state of one reply, updated by its events as they arrive."""

    __slots__ = (
        "cached_tokens",
        "chunk_ns",
        "chunk_tokens",
        "completion_tokens",
        "done_ns",
        "finish_reason",
        "first_text",
        "in_band_error",
        "prompt_tokens",
        "texts",
    )

    def __init__(self, *, keep_text: bool = False) -> None:
        self.chunk_ns = array("q")
        self.chunk_tokens = array("i")
        """Tokens of each content chunk, as far as the stream tells them chunk by chunk; else 0."""
        self.texts: list[str] | None = [] if keep_text else None
        """All content, where the next turn of a conversation needs it."""
        self.first_text: str | None = None
        self.finish_reason: str | None = None
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.done_ns: int | None = None
        """Arrival of `[DONE]`."""
        self.in_band_error: str | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended or failed by its own word."""
        return self.done_ns is not None or self.in_band_error is not None

    def take(self, event: Event, at_ns: int) -> bool:
        """Read one event that arrived at `at_ns`; True when it brought content."""
        if event.kind != "error":
            return self.take_data(event.data, at_ns)
        self._fail(_json(event.data), event.data)
        return False

    def take_data(self, data: bytes, at_ns: int) -> bool:
        """Read the data of one plain event; True when it brought content."""
        if data == DONE:
            self.done_ns = at_ns
            return False
        try:
            chunk = _DECODER.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            lenient = _lenient(data)
            if lenient is None:
                self._fail(_json(data), data)
                return False
            chunk = lenient
        if chunk.error is not None and bytes(chunk.error) not in {b"null", b"{}", b'""', b"[]", b"false", b"0"}:
            self._fail(_json(data), data)
            return False
        num_new = 0 if chunk.usage is None else self._take_usage(chunk.usage)
        return self._take_choice(chunk.choices[0], num_new, at_ns) if chunk.choices else False

    def problem(self, wanted_output_tokens: int | None) -> str | None:
        """Why a reply that ended is not a success; None when it is one.

        Args:
            wanted_output_tokens: the forced output length; None where lengths were not forced.
        """
        if self.in_band_error is not None:
            return f"in-band: {self.in_band_error}"
        if self.done_ns is None:
            return "no-done: the stream ended without [DONE]"
        if self.finish_reason is None:
            return "no-finish: the stream ended without a finish_reason"
        if not self.chunk_ns or self.completion_tokens == 0:
            count = self.completion_tokens or 0
            return f"no-content: a reply without content (usage says {count} output tokens{TEXTLESS})"
        if wanted_output_tokens is None or self.completion_tokens is None:
            return None
        if self.completion_tokens < wanted_output_tokens:
            return f"short: {self.completion_tokens} output tokens of {wanted_output_tokens} (the length was forced)"
        return None

    def _take_choice(self, choice: _Choice, num_new: int, at_ns: int) -> bool:
        text = choice.content()
        reason = choice.finish_reason
        if reason is not None:
            self.finish_reason = reason
            if reason in _FAILED_FINISHES:
                self.in_band_error = self.in_band_error or f"finish_reason {reason!r}"
        # A rising count or token ids prove a token without visible text; the final usage does not.
        ids = choice.token_ids
        if not text and not ids and not (num_new > 0 and not reason):
            return False
        if self.first_text is None:
            self.first_text = text
        self.chunk_ns.append(at_ns)
        self.chunk_tokens.append(len(ids) if ids else num_new)
        if self.texts is not None:
            self.texts.append(text)
        return True

    def _take_usage(self, usage: _Usage) -> int:
        """Note the token counts; how far the count of output tokens rose."""
        before = self.completion_tokens or 0
        self.prompt_tokens = _count(usage.prompt_tokens, self.prompt_tokens)
        self.completion_tokens = _count(usage.completion_tokens, self.completion_tokens)
        if usage.prompt_tokens_details is not None:
            self.cached_tokens = _count(usage.prompt_tokens_details.cached_tokens, self.cached_tokens)
        return max((self.completion_tokens or 0) - before, 0)

    def _fail(self, chunk: Any, data: bytes) -> None:
        self.in_band_error = self.in_band_error or _detail(chunk, data)


def status_problem(status: int | None, body: bytes) -> str | None:
    """The error of an HTTP status other than 200, with what the server wrote; None for 200."""
    if status == STATUS_OK:
        return None
    parsed = _json(body)
    message = parsed.get("error", parsed) if isinstance(parsed, dict) else body.decode("utf-8", "replace")
    if isinstance(message, dict):
        message = message.get("message", message)
    return f"http-{status}: {str(message)[:MAX_DETAIL]}"


def _lenient(data: bytes) -> _Chunk | None:
    """A chunk of another shape: what fits is taken, the rest left out; None when it is no JSON object."""
    found = _json(data)
    if not isinstance(found, dict):
        return None
    raw_error = found.get("error")
    choices, usage = found.get("choices"), found.get("usage")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    return _Chunk(
        choices=[] if first is None else [_lenient_choice(first)],
        usage=_lenient_usage(usage) if isinstance(usage, dict) else None,
        error=msgspec.Raw(b"true") if raw_error else None,
    )


def _lenient_choice(found: dict[str, Any]) -> _Choice:
    delta, ids = found.get("delta"), found.get("token_ids")
    parts = [found.get("text")]
    if isinstance(delta, dict):
        parts += [delta.get("reasoning_content"), delta.get("reasoning"), delta.get("content"), delta.get("tool_calls")]
    text = "".join(part if isinstance(part, str) else msgspec.json.encode(part).decode() for part in parts if part)
    reason = found.get("finish_reason")
    return _Choice(
        text=text,
        finish_reason=reason if isinstance(reason, str) else None,
        token_ids=[0] * len(ids) if isinstance(ids, list) else None,
    )


def _lenient_usage(found: dict[str, Any]) -> _Usage:
    details = found.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens"), None) if isinstance(details, dict) else None
    return _Usage(
        prompt_tokens=_count(found.get("prompt_tokens"), None),
        completion_tokens=_count(found.get("completion_tokens"), None),
        prompt_tokens_details=None if cached is None else _CachedTokens(cached_tokens=cached),
    )


def _json(data: bytes) -> Any:
    """JSON, or None where it is none."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _count(value: object, otherwise: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _detail(chunk: Any, data: bytes) -> str:
    if not isinstance(chunk, dict):
        return f"an event that is not a JSON object: {data[:MAX_DETAIL].decode('utf-8', 'replace')!r}"
    error = chunk.get("error") or chunk
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)[:MAX_DETAIL]
