"""Mooncake traces: instants, lengths, and which blocks of 512 tokens are shared with whom.

JSONL of `{"timestamp": milliseconds, "input_length": n, "output_length": m, "hash_ids": [...]}`. Equal hash ids mean
equal blocks, counted from the prompt's beginning; the last block may be cut short. Each id becomes a piece of text of
its own (another one for another seed), what lies beyond the last block is the request's own, and `shared_tokens` are
the leading tokens that an earlier request had as well: what an ideal prefix cache would hit.

Source: the traces beside "Mooncake: A KVCache-centric Disaggregated Architecture for LLM Serving" (FAST 2025).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.load.workloads.files import HashedFile, check_not_empty, shown
from assay.load.workloads.prompts import Prompts
from assay.load.workloads.rows import Row, lines_as_rows
from assay.load.workloads.sessions import check_index, since_first, single, time_order
from assay.records.bench import Dataset
from assay.records.load import Session

BLOCK_TOKENS = 512
EXAMPLE = '{"timestamp": 0, "input_length": 1000, "output_length": 50, "hash_ids": [0, 1]}'
NOTHING = "no input or no output tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request of the trace."""

    at_s: float
    input_tokens: int
    output_tokens: int
    hash_ids: tuple[int, ...]

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Each hash id with the tokens of its block: 512, or what is left for the last."""
        for number, hash_id in enumerate(self.hash_ids):
            yield hash_id, min(BLOCK_TOKENS, self.input_tokens - number * BLOCK_TOKENS)


class MooncakeSource:
    """Sessions of a trace, in order of time."""

    def __init__(
        self, calls: Sequence[Call], seed: int, prompts: Prompts, *, sha256: str, skipped: Mapping[str, int]
    ) -> None:
        self._calls = calls
        self._shared = shared_tokens(calls)
        self._seed = seed
        self._prompts = prompts
        self.num_sessions: int | None = len(calls)
        self._instants_s = since_first([call.at_s for call in calls])
        self.instants_s: Sequence[float] | None = self._instants_s
        self.file_sha256: str | None = sha256
        self.skipped = skipped

    def session(self, index: int) -> Session:
        """The session of this number."""
        check_index(index, len(self._calls))
        call, seed = self._calls[index], self._seed
        pieces = [self._prompts.piece(f"{seed}/block/{hash_id}", num_tokens) for hash_id, num_tokens in call.blocks()]
        rest = call.input_tokens - BLOCK_TOKENS * len(call.hash_ids)
        if rest > 0:
            pieces.append(self._prompts.piece(f"{seed}/{index}", rest))
        return single(
            index,
            self._prompts.join(pieces),
            output_tokens=call.output_tokens,
            input_tokens=call.input_tokens,
            shared_tokens=self._shared[index],
            at_s=self._instants_s[index],
        )


def read(workload: Dataset, seed: int, prompts: Prompts) -> MooncakeSource:
    """Read the file.

    Raises:
        UsageError: it cannot be read, is malformed, or holds no usable request.
    """
    file = HashedFile(workload.path)
    calls: list[Call] = []
    skipped: Counter[str] = Counter()
    for row in lines_as_rows(file, EXAMPLE):
        call = _call(row)
        if call.input_tokens and call.output_tokens:
            calls.append(call)
        else:
            skipped[NOTHING] += 1
    check_not_empty(file.path, len(calls), skipped, EXAMPLE)
    ordered = [calls[at] for at in time_order([call.at_s for call in calls], workload.max_requests)]
    return MooncakeSource(ordered, seed, prompts, sha256=file.sha256, skipped=skipped)


def shared_tokens(calls: Sequence[Call]) -> list[int]:
    """Of each call, the leading tokens in blocks that an earlier call had as well."""
    seen: dict[int, int] = {}
    shared = []
    for call in calls:
        num_shared, unbroken = 0, True
        for hash_id, num_tokens in call.blocks():
            known = seen.get(hash_id, 0)
            if unbroken:
                num_shared += min(known, num_tokens)
                unbroken = known >= num_tokens
            seen[hash_id] = max(known, num_tokens)
        shared.append(num_shared)
    return shared


def _call(row: Row) -> Call:
    num_input, num_output = row.tokens("input_length", low=0), row.tokens("output_length", low=0)
    hash_ids = row.items("hash_ids") if row.has("hash_ids") else []
    if not all(type(hash_id) is int for hash_id in hash_ids):
        row.fail(f"{shown(hash_ids)} with something else in it as hash_ids", "a list of whole numbers")
    most = -(-num_input // BLOCK_TOKENS)
    if len(hash_ids) > most:
        row.fail(
            f"{len(hash_ids)} hash_ids for {num_input} input tokens",
            f"at most {most}: blocks have {BLOCK_TOKENS} tokens",
        )
    at_s = row.seconds("timestamp", unit=1e-3)
    return Call(at_s=at_s, input_tokens=num_input, output_tokens=num_output, hash_ids=tuple(hash_ids))
