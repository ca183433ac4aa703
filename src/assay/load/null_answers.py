"""What the null server says, in OpenAI's protocol: bytes in, bytes out."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from zlib import crc32

TOKENS = re.compile(rb'"(?:max_tokens|max_completion_tokens)"\s*:\s*(\d+)')
HEAD = (
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nx-null-request: {number}\r\n"
    "Transfer-Encoding: chunked\r\n\r\n"
)
WORD = " lorem"
VOCABULARY = 50_000
Usage = tuple[int, int]


def about(path: bytes, body: bytes) -> dict[str, object]:
    """What it says of itself: one model, and a tokenizer of one token a word."""
    if path == b"/tokenize":
        asked = json.loads(body or b"{}")
        words = str(asked.get("content") or asked.get("prompt") or "").split()
        return {"tokens": [crc32(word.encode()) % VOCABULARY for word in words]}
    return {"object": "list", "data": [{"id": "null", "object": "model", "max_model_len": 1 << 20}]}


def event(number: int, *, chat: bool, text: str = "", finish: str | None = None, usage: Usage | None = None) -> bytes:
    """One event of a stream; `usage`: tokens of the prompt and of the answer, in place of text."""
    choice: dict[str, object] = {"index": 0, "finish_reason": finish}
    choice |= {"delta": {"content": text} if text else {}} if chat else {"text": text}
    payload: dict[str, object] = {
        "id": f"null-{number}",
        "object": "chat.completion.chunk" if chat else "text_completion",
        "created": 0,
        "model": "null",
        "choices": [choice] if usage is None else [],
    }
    if usage is not None:
        prompt, output = usage
        payload["usage"] = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    return framed(b"data: " + json.dumps(payload).encode() + b"\n\n")


def framed(data: bytes) -> bytes:
    """As a chunk of HTTP."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def prompt_tokens(body: bytes) -> int:
    """Token ids are counted, words of a text as one token each."""
    with suppress(ValueError, TypeError):
        asked = json.loads(body)
        prompt = asked.get("prompt")
        if isinstance(prompt, list):
            return len(prompt)
        texts = [prompt] if isinstance(prompt, str) else [str(m.get("content")) for m in asked.get("messages", [])]
        return sum(len(text.split()) for text in texts)
    return 0
