"""What every client is asked for, and where it finds what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MIN_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A closed loop of `streams` requests in flight against a server that sends on a schedule."""

    streams: int
    tokens_per_s: float
    """Of one stream, after its first token."""
    first_token_s: float
    output_tokens: int
    input_tokens: int
    seconds: float
    """How long requests are to be sent."""

    @property
    def request_s(self) -> float:
        """How long one request takes when nobody is late."""
        return self.first_token_s + (self.output_tokens - 1) / self.tokens_per_s

    @property
    def offered_tokens_per_s(self) -> float:
        """What all streams yield when the client is never late: output tokens over request time, times streams."""
        return self.streams * self.output_tokens / self.request_s

    @property
    def num_requests(self) -> int:
        """The same load for tools that want a number of requests: whole rounds of all streams."""
        return self.streams * max(MIN_ROUNDS, round(self.seconds / self.request_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a client works."""

    url: str
    """http://127.0.0.1:PORT"""
    folder: Path
    """Of this measurement alone; reports go here."""
    python: Path
    """The interpreter of the client's environment; its other commands lie beside it."""
    tokenizer: Path
    """A folder in the Hugging Face format."""

    @property
    def report(self) -> Path:
        """Where the client is told to write its report, if it takes a file."""
        return self.folder / "report.json"

    def script(self, name: str) -> str:
        """A command that was installed with the client."""
        return str(self.python.parent / name)
