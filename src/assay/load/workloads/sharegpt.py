"""ShareGPT: the first thing a person asked, and the length of the answer it got.

A JSON list (or JSONL) of `{"id": ..., "conversations": [{"from": "human", "value": ...}, {"from": "gpt", ...}]}`.
As the field does it (vLLM's sampling of this file), an exchange is left out when the question or the answer has fewer
than 4 tokens, the question more than 1,024, or both together more than 2,048. Tokens are estimated from UTF-8 bytes:
the text need not be tokenized, and the server's `usage` says what it came to. A question that came before is left out
too, since a prefix cache would answer it. The order is drawn by the seed.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from assay.load.workloads.files import HashedFile, check_not_empty
from assay.load.workloads.prompts import Prompts
from assay.load.workloads.rows import Row, entries_as_rows
from assay.load.workloads.sessions import Talk, TalkSource, Turn
from assay.records.bench import Dataset

MIN_TOKENS = 4
MAX_PROMPT_TOKENS = 1024
MAX_TOTAL_TOKENS = 2048
EXAMPLE = '{"id": "a", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}'
USER = frozenset({"human", "user"})
ASSISTANT = frozenset({"gpt", "chatgpt", "assistant", "model", "bing", "bard"})


def read(workload: Dataset, seed: int, prompts: Prompts) -> TalkSource:
    """Read the file.

    Raises:
        UsageError: it cannot be read, is malformed, or holds no usable exchange.
    """
    file = HashedFile(workload.path)
    skipped: Counter[str] = Counter()
    talks: dict[str, Talk] = {}
    for row in entries_as_rows(file, EXAMPLE):
        exchanges = pairs(spoken(row, "conversations", speaker="from", words="value"))
        if not exchanges:
            skipped["no question with an answer"] += 1
            continue
        question, answer = exchanges[0]
        reason = _unfit(prompts.estimate_tokens(question), prompts.estimate_tokens(answer))
        if reason or question in talks:
            skipped[reason or "came before"] += 1
            continue
        talks[question] = Talk(turns=(Turn(prompt=question, output_tokens=prompts.estimate_tokens(answer)),))
    check_not_empty(file.path, len(talks), skipped, EXAMPLE)
    return TalkSource(shuffled(list(talks.values()), seed, workload.max_requests), sha256=file.sha256, skipped=skipped)


def spoken(row: Row, key: str, *, speaker: str, words: str) -> list[tuple[str, str]]:
    """Who ("user", "assistant", or what the file calls it) said what, in order."""
    return [(_role(item.text(speaker)), item.text(words)) for item in row.inner(key)]


def pairs(said: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Question and answer of each exchange from the first question on, up to the first thing out of turn."""
    begin = next((at for at, (role, _) in enumerate(said) if role == "user"), len(said))
    found: list[tuple[str, str]] = []
    for question, answer in zip(said[begin::2], said[begin + 1 :: 2], strict=False):
        if (question[0], answer[0]) != ("user", "assistant") or not question[1].strip():
            break
        found.append((question[1], answer[1]))
    return found


def shuffled(talks: list[Talk], seed: int, max_requests: int | None) -> list[Talk]:
    """The talks in an order drawn by the seed, the first `max_requests` of them."""
    Random(f"{seed}/order").shuffle(talks)
    return talks[:max_requests]


def _role(name: str) -> str:
    lowered = name.strip().lower()
    if lowered in USER:
        return "user"
    return "assistant" if lowered in ASSISTANT else lowered


def _unfit(num_prompt: int, num_output: int) -> str:
    """Why an exchange is left out; empty: it is not."""
    if min(num_prompt, num_output) < MIN_TOKENS:
        return f"question or answer below {MIN_TOKENS} tokens"
    if num_prompt > MAX_PROMPT_TOKENS or num_prompt + num_output > MAX_TOTAL_TOKENS:
        return f"question above {MAX_PROMPT_TOKENS} tokens, or {MAX_TOTAL_TOKENS} with its answer"
    return ""
