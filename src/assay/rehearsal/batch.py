"""The simulated engine's scheduler, without sockets and clocks: which sequences are in a step, and when it ends.

Prompts first (in chunks, first come first served), else one token of every running sequence; a limit on running
sequences, and a pool of cache tokens that makes the rest wait and, when it runs out, sends the latest back to be
prefilled again. Costs of a step do not grow with the batch: tokens made are counted by steps.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from assay.rehearsal.noise import Noise
from assay.rehearsal.step_times import StepTimes


@dataclass(slots=True, eq=False, kw_only=True)
class Sequence:
    """One request."""

    prompt_tokens: int
    output_tokens: int
    arrived_s: float = 0.0
    owner: Any = None
    """Whoever wants its tokens."""
    prefilled: int = 0
    recompute: int = 0
    """Tokens it had made before it was sent back, and that are prefilled with its prompt."""
    before: int = 0
    """Tokens made before its present place in the batch."""
    since_step: int = 0
    """Decode step at which it joined the batch."""
    cancelled: bool = False

    @property
    def to_prefill(self) -> int:
        """Prompt tokens that are still to be computed."""
        return self.prompt_tokens + self.recompute - self.prefilled


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the engine allows."""

    running: int
    chunk_tokens: int
    cache_tokens: int


@dataclass(slots=True)
class Counters:
    """What /metrics tells."""

    prompt_tokens: int = 0
    generated_tokens: int = 0
    requests: int = 0
    preemptions: int = 0
    steps: int = 0


@dataclass(slots=True, eq=False)
class Batch:
    """See the module. Times are seconds of the simulated world since the launch."""

    times: StepTimes
    noise: Noise
    limits: Limits
    now_s: float = 0.0
    """End of the last step."""
    counters: Counters = field(default_factory=Counters)
    waiting: deque[Sequence] = field(default_factory=deque)
    prefilling: deque[Sequence] = field(default_factory=deque)
    decoding: dict[int, Sequence] = field(default_factory=dict)
    used_tokens: int = 0
    decode_step: int = 0
    _finish: dict[int, list[Sequence]] = field(default_factory=dict)
    _step: tuple[float, int] | None = None
    """End of the step under way, and its prompt tokens (0: a decode step)."""

    @property
    def running(self) -> int:
        """Sequences that hold cache."""
        return len(self.decoding) + len(self.prefilling)

    @property
    def has_work(self) -> bool:
        """Whether anything runs or waits."""
        return bool(self.waiting or self.prefilling or self.decoding)

    def made(self, sequence: Sequence) -> int:
        """Tokens that a sequence has by now."""
        if id(sequence) not in self.decoding:
            return sequence.before
        return sequence.before + self.decode_step - sequence.since_step

    def submit(self, sequence: Sequence) -> None:
        """A request arrived (at `sequence.arrived_s`)."""
        self.counters.requests += 1
        self.waiting.append(sequence)

    def cancel(self, sequence: Sequence) -> None:
        """Its client went away."""
        sequence.cancelled = True
        if id(sequence) in self.decoding:
            self._leave(sequence)

    def advance(self, until_s: float) -> list[Sequence]:
        """Take every step that ends by then; the sequences that finished."""
        finished: list[Sequence] = []
        while self.has_work:
            if self._step is None and not self._begin():
                break
            assert self._step is not None
            if self._step[0] > until_s:
                break
            finished += self._end()
        return finished

    def next_end_s(self) -> float | None:
        """When the step under way ends; None when there is none."""
        return None if self._step is None else self._step[0]

    def idle_until(self, now_s: float) -> None:
        """Nothing was to be done until now."""
        if self._step is None and now_s > self.now_s:
            self.noise.rest(now_s - self.now_s)
            self.now_s = now_s

    def _begin(self) -> bool:
        if not (self.prefilling or self.decoding) and self.waiting:
            self.idle_until(self.waiting[0].arrived_s)
        self._admit()
        if self.prefilling:
            tokens, context = self._chunk()
            expected_s = self.times.prefill_s(tokens, context)
        elif self.decoding:
            tokens = 0
            self._make_room()
            batch = len(self.decoding)
            expected_s = self.times.decode_s(batch, self.used_tokens / batch)
        else:
            return False
        self._step = (self.now_s + expected_s * self.noise.slowdown(expected_s, self.now_s), tokens)
        return True

    def _end(self) -> list[Sequence]:
        assert self._step is not None
        self.now_s, tokens = self._step
        self._step = None
        self.counters.steps += 1
        if tokens:
            return self._prompts_done(tokens)
        self.decode_step += 1
        self.counters.generated_tokens += len(self.decoding)
        self.used_tokens += len(self.decoding)
        due = self._finish.pop(self.decode_step, [])  # one that was sent back meanwhile is due later again
        finished = [one for one in due if id(one) in self.decoding and self.made(one) >= one.output_tokens]
        for sequence in finished:
            self._leave(sequence)
        return finished

    def _admit(self) -> None:
        reserved = sum(one.to_prefill for one in self.prefilling)
        while self.waiting and self.running < self.limits.running:
            first = self.waiting[0]
            if first.cancelled:
                self.waiting.popleft()
                continue
            room = self.limits.cache_tokens - self.used_tokens - reserved - len(self.decoding)
            if first.arrived_s > self.now_s or (first.to_prefill > room and self.running):
                return
            reserved += first.to_prefill
            self.prefilling.append(self.waiting.popleft())

    def _chunk(self) -> tuple[int, int]:
        """Tokens of the next step of prefill, and what the first sequence has already."""
        left = self.limits.chunk_tokens
        tokens = 0
        for sequence in self.prefilling:
            tokens += min(left - tokens, sequence.to_prefill)
            if tokens >= left:
                break
        return max(tokens, 1), self.prefilling[0].prefilled

    def _prompts_done(self, tokens: int) -> list[Sequence]:
        finished = []
        self.counters.prompt_tokens += tokens
        while tokens and self.prefilling:
            sequence = self.prefilling[0]
            part = min(tokens, sequence.to_prefill)
            tokens -= part
            sequence.prefilled += part
            self.used_tokens += part
            if sequence.to_prefill:
                break
            self.prefilling.popleft()
            finished += self._join(sequence)
            if not part:
                break
        return finished

    def _join(self, sequence: Sequence) -> list[Sequence]:
        """The prompt's step gives the first token (or the next, after a preemption)."""
        sequence.before += 1
        self.counters.generated_tokens += 1
        self.used_tokens += 1
        sequence.since_step = self.decode_step
        self.decoding[id(sequence)] = sequence
        if sequence.cancelled or sequence.before >= sequence.output_tokens:
            self._leave(sequence)
            return [] if sequence.cancelled else [sequence]
        self._finish.setdefault(self.decode_step + sequence.output_tokens - sequence.before, []).append(sequence)
        return []

    def _leave(self, sequence: Sequence) -> None:
        made = self.made(sequence)
        del self.decoding[id(sequence)]
        self.used_tokens -= sequence.prefilled + made - sequence.recompute
        sequence.before = made

    def _make_room(self) -> None:
        """Send the latest back while the next token of all would not fit."""
        while len(self.decoding) > 1 and self.used_tokens + len(self.decoding) > self.limits.cache_tokens:
            latest = max(self.decoding.values(), key=lambda one: one.since_step)
            self._leave(latest)
            latest.recompute, latest.prefilled = latest.before, 0
            self.waiting.appendleft(latest)
            self.counters.preemptions += 1
