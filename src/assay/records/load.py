"""What the load generator is told, and what it brings back."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import Field

from assay.records.base import Frozen
from assay.records.run import Gate, Measures
from assay.records.spec import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRequest:
    """One request to be sent: what it says, and how long its answer is to be."""

    index: int
    """Of its session."""
    prompt: list[int] | str
    """Token ids, or text; for chat the user's message of this turn."""
    output_tokens: int
    """Forced, or the limit where lengths are not forced."""
    input_tokens: int | None = None
    """Prompt tokens that were meant; None: unknown before the server counts them."""
    shared_tokens: int = 0
    """Leading tokens that are declared to be shared with other requests."""
    turn: int = 0
    last_turn: bool = True
    system: str | None = None
    """Chat only: the system message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One request, or the turns of one conversation in order: each is sent after the one before has ended."""

    index: int
    requests: tuple[PlannedRequest, ...]
    at_s: float | None = None
    """Instant in a trace, since its beginning."""
    think_s: float = 0.0
    """Between the end of one turn and the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSample:
    """What one request did. Stamps: integer nanoseconds of the monotonic clock."""

    index: int
    stream: int
    """Which of the closed-loop streams sent it."""
    intended_ns: int
    """When it should have been sent (closed loop: when the stream became free)."""
    sent_ns: int
    """When its bytes were handed to the socket."""
    first_content_ns: int | None
    """First chunk with content; None when none came."""
    chunk_ns: list[int]
    """Arrival of every chunk with content."""
    ended_ns: int
    """Arrival of the end of the stream, or of the error."""
    input_tokens: int | None
    """`usage.prompt_tokens`; None when the server did not say."""
    output_tokens: int | None
    """`usage.completion_tokens`; None when the server did not say."""
    cached_tokens: int | None
    """Prompt tokens served from the prefix cache; None when the server did not say."""
    wanted_output_tokens: int
    status: int | None
    """HTTP status; None when the connection failed first."""
    finish_reason: str | None
    first_text: str | None
    """Text of the first content chunk: lets two arms' answers under load be compared request by request."""
    error: str | None
    """None: success. Else what went wrong (`http-503`, `in-band`, `reset`, `no-content`, `short` ...) with detail."""
    phase: str
    """"warm-up", "measured" or "drain", by the time it was sent."""

    @property
    def ttft_s(self) -> float | None:
        """As `assay.load.metrics.ttft_s`, of this one request."""
        return None if self.first_content_ns is None else (self.first_content_ns - self.sent_ns) / 1e9

    @property
    def tpot_s(self) -> float | None:
        """As `assay.load.metrics.tpot_s`, of this one request."""
        if self.first_content_ns is None or self.output_tokens is None or self.output_tokens < 2:  # noqa: PLR2004
            return None
        return (self.ended_ns - self.first_content_ns) / 1e9 / (self.output_tokens - 1)


class LoadRequest(Frozen):
    """Everything that a load run depends on."""

    base_url: str
    """http://127.0.0.1:PORT, without /v1."""
    model: str
    workload: Workload
    seed: int
    api_key_env: str | None = None
    """Name of the environment variable that holds the server's key; None: it wants none."""
    extra_body: dict[str, bool | int | float | str] = Field(default_factory=dict)
    """Fields that the engine wants in every request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """A load run: measures when its client-side gates passed, samples always."""

    samples: list[RequestSample] = field(default_factory=list)
    measures: Measures | None
    """None with the reason in `gates` when nothing valid was measured."""
    gates: list[Gate]
    load_began_ns: int
    windows_began_ns: int | None = None
    """When the load was found to be steady; None when it never was."""
