"""What one completion's stream says: content, token counts, its end, or its failure.

Knows the chunks of OpenAI's completions and chat completions, and the ways in which servers bend them.
"""

from __future__ import annotations

import json
from typing import Any

from assay.load.http1 import STATUS_OK
from assay.load.sse import Event

MAX_DETAIL = 300
"""Characters of a server's own error text that are kept."""
_FAILED_FINISHES = frozenset({"abort", "error"})


class Reply:
    """The state of one reply, updated by its events as they arrive."""

    __slots__ = (
        "cached_tokens",
        "chunk_ns",
        "completion_tokens",
        "done_ns",
        "finish_reason",
        "first_text",
        "in_band_error",
        "prompt_tokens",
    )

    def __init__(self) -> None:
        self.chunk_ns: list[int] = []
        self.first_text: str | None = None
        self.finish_reason: str | None = None
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.done_ns: int | None = None
        """Arrival of `[DONE]`."""
        self.in_band_error: str | None = None

    def take(self, event: Event, at_ns: int) -> bool:
        """Read one event that arrived at `at_ns`; True when it brought content."""
        if event.data == "[DONE]":
            self.done_ns = at_ns
            return False
        chunk = _parse(event.data)
        if event.kind == "error" or not isinstance(chunk, dict) or chunk.get("error"):
            self.in_band_error = self.in_band_error or _detail(chunk, event)
            return False
        count_rose = self._take_usage(chunk)
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return False
        return self._take_choice(choices[0], count_rose, at_ns)

    def _take_choice(self, choice: dict[str, Any], count_rose: bool, at_ns: int) -> bool:
        text = _content(choice)
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self.finish_reason = reason
            if reason in _FAILED_FINISHES:
                self.in_band_error = self.in_band_error or f"finish_reason {reason!r}"
        # A rising count or token ids prove a token without visible text; the final usage does not.
        has_token = bool(choice.get("token_ids")) or (count_rose and not reason)
        if not text and not has_token:
            return False
        if not self.chunk_ns:
            self.first_text = text
        self.chunk_ns.append(at_ns)
        return True

    def _take_usage(self, chunk: dict[str, Any]) -> bool:
        """Note the token counts; True when the count of output tokens rose."""
        usage = chunk.get("usage")
        if not isinstance(usage, dict):
            return False
        before = self.completion_tokens
        self.prompt_tokens = _count(usage.get("prompt_tokens"), self.prompt_tokens)
        self.completion_tokens = _count(usage.get("completion_tokens"), self.completion_tokens)
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            self.cached_tokens = _count(details.get("cached_tokens"), self.cached_tokens)
        return (self.completion_tokens or 0) > (before or 0)

    def problem(self, wanted_output_tokens: int) -> str | None:
        """Why a reply that ended is not a success; None when it is one."""
        if self.in_band_error is not None:
            return f"in-band: {self.in_band_error}"
        if self.done_ns is None:
            return "no-done: the stream ended without [DONE]"
        if self.finish_reason is None:
            return "no-finish: the stream ended without a finish_reason"
        if not self.chunk_ns or self.completion_tokens == 0:
            return f"no-content: a reply without content (usage says {self.completion_tokens} output tokens)"
        if self.completion_tokens is not None and self.completion_tokens < wanted_output_tokens:
            return f"short: {self.completion_tokens} output tokens of {wanted_output_tokens} (the length was forced)"
        return None


def status_problem(status: int | None, body: bytes) -> str | None:
    """The error of an HTTP status other than 200, with what the server wrote; None for 200."""
    if status == STATUS_OK:
        return None
    text = body.decode("utf-8", "replace")
    parsed = _parse(text)
    message = parsed.get("error", parsed) if isinstance(parsed, dict) else text
    if isinstance(message, dict):
        message = message.get("message", message)
    return f"http-{status}: {str(message)[:MAX_DETAIL]}"


def _content(choice: dict[str, Any]) -> str:
    """Text of a chunk, wherever the server put it; tool calls count as content, by their JSON."""
    delta = choice.get("delta")
    parts = [choice.get("text")]
    if isinstance(delta, dict):
        parts += [delta.get("reasoning_content"), delta.get("reasoning"), delta.get("content"), delta.get("tool_calls")]
    return "".join(part if isinstance(part, str) else json.dumps(part) for part in parts if part)


def _parse(text: str) -> Any:
    """JSON, or None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _count(value: object, otherwise: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _detail(chunk: Any, event: Event) -> str:
    if not isinstance(chunk, dict):
        return f"an event that is not a JSON object: {event.data[:MAX_DETAIL]!r}"
    error = chunk.get("error") or chunk
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)[:MAX_DETAIL]
