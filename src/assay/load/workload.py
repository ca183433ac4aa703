"""The requests of a run: exact lengths, natural text, no shared beginnings, the same for every run of a seed.

Request n is a pure function of (seed, n), so that timing cannot change what is sent: both arms of a bracket get the
same prompts in the same order, however fast each is. Prompts are token ids, because a text of n tokens need not be
n tokens again when a server splits it. Every prompt opens with `UNIQUE_TOKENS` tokens drawn at random from the
corpus and goes on with the (shuffled) corpus from a random place: a prefix cache finds nothing to reuse, within a
run or between runs, while what follows is ordinary text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from importlib import resources
from itertools import pairwise
from random import Random

from assay.errors import MeasurementError
from assay.records.load import PlannedRequest
from assay.records.spec import Workload

UNIQUE_TOKENS = 5
"""Random tokens at the start of a prompt: a billion prompts are then all but certain to differ within them."""
MIN_DISTINCT_TOKENS = 100
"""Fewer distinct tokens than this in the whole corpus, and prompts could not be told apart by their beginnings."""


def corpus() -> list[str]:
    """The sentences of the built-in English text."""
    text = resources.files("assay.data").joinpath("text", "english.txt").read_text("utf-8")
    return [line.strip() for line in text.splitlines() if line.strip()]


class RequestSource:
    """All requests of one seed, made on demand."""

    def __init__(self, workload: Workload, seed: int, tokenize: Callable[[str], list[int]]) -> None:
        """Shuffle the corpus and tokenize it, once.

        Raises:
            MeasurementError: the tokenizer's answer cannot be made into distinct prompts.
        """
        sentences = corpus()
        Random(f"{seed}/corpus").shuffle(sentences)
        self._workload = workload
        self._seed = seed
        self._stream = tokenize(" ".join(sentences))
        distinct = len(set(self._stream))
        if distinct < MIN_DISTINCT_TOKENS:
            raise MeasurementError(
                f"the server's tokenizer made {len(self._stream)} tokens ({distinct} distinct) of {len(sentences)} "
                f"sentences; {MIN_DISTINCT_TOKENS} distinct ones are needed to make prompts that differ",
                hint="check the server's tokenize endpoint; is this a language model for text?",
            )

    def request(self, index: int) -> PlannedRequest:
        """Request number `index` (0, 1, 2 ...); always the same for a seed."""
        random = Random(f"{self._seed}/{index}")
        num_input = random.randint(*self._workload.input_tokens)
        num_output = random.randint(*self._workload.output_tokens)
        start = random.randrange(len(self._stream))
        opening = [random.choice(self._stream) for _ in range(min(UNIQUE_TOKENS, num_input))]
        prompt = opening + _rotated(self._stream, start, num_input - len(opening))
        return PlannedRequest(index=index, prompt=prompt, output_tokens=num_output)


def _rotated(stream: list[int], start: int, length: int) -> list[int]:
    """`length` tokens from `start` on, beginning again at the front as often as needed."""
    taken = stream[start : start + length]
    while len(taken) < length:
        taken += stream[: length - len(taken)]
    return taken


def workload_hash(requests: Iterable[PlannedRequest]) -> str:
    """SHA-256 over index, prompt and output length of the given requests, in their order."""
    digest = hashlib.sha256()
    for request in requests:
        digest.update(json.dumps([request.index, request.prompt, request.output_tokens]).encode() + b"\n")
    return digest.hexdigest()


def longest_shared_prefix(prompts: Iterable[list[int]]) -> int:
    """Tokens that the two most similar beginnings have in common.

    In sorted order the longest common prefix of any two prompts is that of two neighbours.
    """
    ordered = sorted(prompts)
    return max((_shared(one, other) for one, other in pairwise(ordered)), default=0)


def _shared(one: list[int], other: list[int]) -> int:
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return position
    return min(len(one), len(other))
