"""What prompts are made of: pieces of natural text, each a pure function of its key.

A piece opens with `OPENING` units drawn at random from the corpus and goes on with the corpus from a random place, so
pieces of different keys differ from their beginning on: a prefix cache finds nothing to reuse but what was meant to be
shared. A short piece is the beginning of a longer one of the same key.

With token ids lengths are exact, because a text of n tokens need not be n tokens again when a server splits it. Where
the server's tokenizer cannot be asked, words are sent, and lengths are right on the average only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from random import Random
from typing import Protocol, TypeVar

from assay.errors import MeasurementError

OPENING = 5
"""Random units at the start of a piece: a billion prompts are then all but certain to differ within them."""
MIN_DISTINCT_TOKENS = 100
"""Fewer distinct tokens than this in the whole corpus, and prompts could not be told apart by their beginnings."""

Unit = TypeVar("Unit", int, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a prompt: token ids or words, as its maker deals in."""

    ids: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


class Prompts(Protocol):
    """Makes prompts out of pieces."""

    def piece(self, key: str, num_tokens: int) -> Piece:
        """`num_tokens` tokens of text; always the same for a key, and different from the start for another."""
        ...

    def join(self, pieces: Sequence[Piece]) -> list[int] | str:
        """The prompt that these pieces make, in their order."""
        ...

    def estimate_tokens(self, text: str) -> int:
        """About how many tokens a given text has, at least 1: its UTF-8 bytes over the corpus's bytes per token."""
        ...


def corpus() -> list[str]:
    """The sentences of the built-in English text."""
    text = resources.files("assay.data").joinpath("text", "english.txt").read_text("utf-8")
    return [line.strip() for line in text.splitlines() if line.strip()]


def corpus_text(seed: int) -> str:
    """All sentences in an order drawn by the seed: what is to be tokenized for `TokenPrompts`."""
    sentences = corpus()
    Random(f"{seed}/corpus").shuffle(sentences)
    return " ".join(sentences)


class TokenPrompts:
    """Prompts of token ids: lengths are exact."""

    def __init__(self, token_stream: list[int]) -> None:
        """Keep the corpus (`corpus_text`) as the server's tokenizer split it.

        Raises:
            MeasurementError: prompts made of it could not be told apart.
        """
        distinct = len(set(token_stream))
        if distinct < MIN_DISTINCT_TOKENS:
            raise MeasurementError(
                f"the server's tokenizer made {len(token_stream)} tokens ({distinct} distinct) of the built-in text; "
                f"{MIN_DISTINCT_TOKENS} distinct ones are needed to make prompts that differ",
                hint="check the server's tokenize endpoint; is this a language model for text?",
            )
        self._stream = token_stream
        self._bytes_per_token = _corpus_bytes() / len(token_stream)

    def piece(self, key: str, num_tokens: int) -> Piece:
        """Exactly `num_tokens` token ids."""
        return Piece(ids=_cut(self._stream, key, num_tokens))

    def join(self, pieces: Sequence[Piece]) -> list[int]:
        """Their ids, one after the other."""
        joined: list[int] = []
        for piece in pieces:
            joined += piece.ids
        return joined

    def estimate_tokens(self, text: str) -> int:
        """UTF-8 bytes over the corpus's bytes per token."""
        return _estimate(text, self._bytes_per_token)


class TextPrompts:
    """Prompts of words, for a server whose tokenizer cannot be asked: lengths are right on the average only."""

    def __init__(self, tokens_per_word: float) -> None:
        """Set how many tokens the server counts for a word of the corpus (its own `usage` over a known text).

        Raises:
            MeasurementError: that is no positive number.
        """
        if not (math.isfinite(tokens_per_word) and tokens_per_word > 0):
            raise MeasurementError(
                f"the server counts {tokens_per_word} tokens a word: no length can be made of that",
                hint="check that its replies carry `usage.prompt_tokens`",
            )
        self._tokens_per_word = tokens_per_word
        self._words = " ".join(corpus()).split()
        self._bytes_per_token = _corpus_bytes() / (len(self._words) * tokens_per_word)

    def piece(self, key: str, num_tokens: int) -> Piece:
        """The words that `num_tokens` tokens make on the average, at least one."""
        num_words = max(1, round(num_tokens / self._tokens_per_word)) if num_tokens else 0
        return Piece(words=_cut(self._words, key, num_words))

    def join(self, pieces: Sequence[Piece]) -> str:
        """Their words, with blanks between."""
        return " ".join(word for piece in pieces for word in piece.words)

    def estimate_tokens(self, text: str) -> int:
        """UTF-8 bytes over the corpus's bytes per token."""
        return _estimate(text, self._bytes_per_token)


def _cut(stream: list[Unit], key: str, length: int) -> list[Unit]:
    """A random opening and then the stream from a random place, beginning again at its front as often as needed.

    What is drawn does not depend on the length: that makes a short cut the beginning of a long one.
    """
    random = Random(key)
    start = random.randrange(len(stream))
    taken = [random.choice(stream) for _ in range(OPENING)][:length]
    taken += stream[start : start + length - len(taken)]
    while len(taken) < length:
        taken += stream[: length - len(taken)]
    return taken


def _corpus_bytes() -> int:
    return len(" ".join(corpus()).encode())


def _estimate(text: str, bytes_per_token: float) -> int:
    return max(1, round(len(text.encode("utf-8", "replace")) / bytes_per_token))
