"""What the simulated model says: greedy tokens that depend on the prompt alone, and how they come out otherwise.

A token is a hash of what stands before it. Nothing of it is language; two servers agree on a prompt exactly when
nothing changed their answers.
"""

from __future__ import annotations

import struct
from zlib import crc32

VOCABULARY = 50_000
CYCLE = 1024
"""Words after the first of an answer repeat after so many: their text costs a slice of a list."""
WORDS = [f" w{number}" for number in range(CYCLE)]
MAX_TEXT_TOKENS = 1 << 16


def tokens_of(text: str) -> list[int]:
    """One token a word."""
    return [crc32(word.encode()) % VOCABULARY for word in text.split()]


def prompt_ids(body: dict[str, object]) -> list[int]:
    """The token ids of a request's prompt or messages."""
    prompt = body.get("prompt")
    if isinstance(prompt, list) and all(isinstance(token, int) for token in prompt):
        return prompt
    if isinstance(prompt, list) and prompt:
        prompt = prompt[0]
    if isinstance(prompt, str):
        return tokens_of(prompt)
    messages = body.get("messages")
    texts = [str(one.get("content")) for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    return tokens_of(" ".join(texts))


def hash_of(ids: list[int]) -> int:
    """What the answer to a prompt is made from."""
    return crc32(struct.pack(f"<{len(ids)}Q", *(token & 0xFFFFFFFFFFFFFFFF for token in ids)))


def is_changed(prompt_hash: int, rate: float) -> bool:
    """Whether a flag that changes a share of the answers changes this one: always the same prompts."""
    return rate > 0 and crc32(b"changed" + prompt_hash.to_bytes(4, "little")) < rate * 2**32


def first_token(prompt_hash: int, *, otherwise: bool) -> int:
    """The greedy token after a prompt; another one where it comes out otherwise."""
    word = b"otherwise" if otherwise else b"greedy"
    return crc32(word + prompt_hash.to_bytes(4, "little")) % VOCABULARY


def text_of(first: int, begin: int, end: int) -> str:
    """The text of the tokens [begin, end) of an answer that opens with this token."""
    if begin >= end:
        return ""
    words = [f" t{first}"] if begin == 0 else []
    place, left = (first + max(begin, 1)) % CYCLE, end - max(begin, 1)
    while left > 0:
        part = WORDS[place : place + left]
        words += part
        left -= len(part)
        place = 0
    return "".join(words)
