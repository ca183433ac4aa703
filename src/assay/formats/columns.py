"""Requests as columns: what the readers bring and the exports take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestColumns:
    """Data of single requests: every sequence has one entry a request, in the same order. Times in seconds."""

    input_tokens: Sequence[int | None]
    output_tokens: Sequence[int | None]
    """0: the reply ended without a token, which is no success."""
    ttft_s: Sequence[float | None]
    """Sent to first content; None or 0: not measured."""
    latency_s: Sequence[float | None]
    """Sent to the end; None or 0: not measured."""
    itl_s: Sequence[Sequence[float] | None]
    """Gaps between the chunks of each request; None: not known."""
    start_s: Sequence[float | None]
    """When each was sent, on any one clock."""
    error: Sequence[str | None]
    """None: success."""

    def __post_init__(self) -> None:
        lengths = {field.name: len(getattr(self, field.name)) for field in fields(self)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of different lengths: {lengths}")

    def __len__(self) -> int:
        return len(self.error)

    def successes(self) -> list[int]:
        """Places of the requests that count: no error, and at least one token where tokens were counted."""
        return [place for place in range(len(self)) if self.error[place] is None and self.output_tokens[place] != 0]

    @property
    def num_empty(self) -> int:
        """Requests without an error that brought no token."""
        return sum(error is None and tokens == 0 for error, tokens in zip(self.error, self.output_tokens, strict=True))

    @property
    def num_failed(self) -> int:
        """Requests with an error."""
        return sum(error is not None for error in self.error)
