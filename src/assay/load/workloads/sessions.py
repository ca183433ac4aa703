"""Sessions out of what a file holds: texts ready to be sent, or lengths to be filled with text, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from assay.load.workloads.prompts import Prompts
from assay.records.load import PlannedRequest, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is said, and how long the answer is to be."""

    prompt: list[int] | str
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """One request, or the turns of one conversation, as read from a file."""

    turns: tuple[Turn, ...]
    system: str | None = None
    at_s: float | None = None
    think_s: float = 0.0


class TalkSource:
    """Sessions whose texts are in the file."""

    def __init__(self, talks: Sequence[Talk], *, sha256: str, skipped: Mapping[str, int]) -> None:
        """Keep them in the order given; instants (of all or of none) must not fall."""
        self._talks = talks
        self.num_sessions: int | None = len(talks)
        self.file_sha256: str | None = sha256
        self.skipped = skipped
        instants = [talk.at_s for talk in talks if talk.at_s is not None]
        self.instants_s: Sequence[float] | None = since_first(instants) if instants else None

    def session(self, index: int) -> Session:
        """The session of this number."""
        check_index(index, len(self._talks))
        talk = self._talks[index]
        last = len(talk.turns) - 1
        requests = tuple(
            PlannedRequest(
                index=index,
                prompt=turn.prompt,
                output_tokens=turn.output_tokens,
                input_tokens=len(turn.prompt) if isinstance(turn.prompt, list) else None,
                turn=number,
                last_turn=number == last,
                system=talk.system,
            )
            for number, turn in enumerate(talk.turns)
        )
        at_s = None if self.instants_s is None else self.instants_s[index]
        return Session(index=index, requests=requests, at_s=at_s, think_s=talk.think_s)


class LengthSource:
    """Sessions of which the file has instants and lengths; their text is made of (seed, n)."""

    def __init__(
        self,
        seed: int,
        prompts: Prompts,
        *,
        at_s: Sequence[float],
        input_tokens: Sequence[int],
        output_tokens: Sequence[int],
        sha256: str,
        skipped: Mapping[str, int],
    ) -> None:
        """Keep columns of equal length, in order of time."""
        self._seed = seed
        self._prompts = prompts
        self._input_tokens = input_tokens
        self._output_tokens = output_tokens
        self.num_sessions: int | None = len(at_s)
        self.instants_s: Sequence[float] | None = since_first(at_s)
        self.file_sha256: str | None = sha256
        self.skipped = skipped

    def session(self, index: int) -> Session:
        """The session of this number."""
        check_index(index, len(self._input_tokens))
        assert self.instants_s is not None
        num_input = self._input_tokens[index]
        return single(
            index,
            self._prompts.join([self._prompts.piece(f"{self._seed}/{index}", num_input)]),
            output_tokens=self._output_tokens[index],
            input_tokens=num_input,
            at_s=self.instants_s[index],
        )


def single(
    index: int,
    prompt: list[int] | str,
    *,
    output_tokens: int,
    input_tokens: int,
    shared_tokens: int = 0,
    at_s: float | None = None,
) -> Session:
    """A session of one request."""
    request = PlannedRequest(
        index=index,
        prompt=prompt,
        output_tokens=output_tokens,
        input_tokens=input_tokens,
        shared_tokens=shared_tokens,
    )
    return Session(index=index, requests=(request,), at_s=at_s)


def check_index(index: int, number: int) -> None:
    """Refuse a session that does not exist.

    Raises:
        IndexError: there is none of this number.
    """
    if not 0 <= index < number:
        raise IndexError(f"session {index} of {number}")


def time_order(at_s: Sequence[float], max_requests: int | None) -> Sequence[int]:
    """Positions in order of time (equal instants as in the file), the first `max_requests` of them."""
    ascending = all(earlier <= later for earlier, later in pairwise(at_s))
    order: Sequence[int] = range(len(at_s)) if ascending else sorted(range(len(at_s)), key=at_s.__getitem__)
    return order[:max_requests]


def since_first(at_s: Sequence[float]) -> list[float]:
    """Ascending instants, counted from the first."""
    return [at - at_s[0] for at in at_s]


def in_time_order(talks: Sequence[Talk], max_requests: int | None) -> list[Talk]:
    """Talks in order of their instants, else as they are; the first `max_requests` of them."""
    return [talks[at] for at in time_order([talk.at_s or 0.0 for talk in talks], max_requests)]
