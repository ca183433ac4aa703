"""The simulated server at work: requests into the batch, tokens out when their step has ended by the scaled clock.

One real second is `time_scale` seconds of the simulated world. Steps are computed in simulated time and shown when the
real clock has reached them; a turn that comes late catches up, so that a busy machine delays tokens and does not slow
the simulated engine. Tokens of `flush_s` real seconds go into one chunk of a stream, each stream at its own times.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from assay.rehearsal import answers, log
from assay.rehearsal.batch import Sequence
from assay.rehearsal.completions import MODEL, Completion
from assay.rehearsal.faults import UnderLoad
from assay.rehearsal.flags import CommandLine
from assay.rehearsal.http import Connection, Request
from assay.rehearsal.machine import Machine

TURN_S = 0.01
"""Shortest real time between two turns of the loop: streams of one flush time take theirs at different turns."""
LOG_EVERY_S = 1.0
"""Real seconds between two lines on the batch."""
PLAIN = "text/plain; version=0.0.4"


class Service:
    """The server behind its socket."""

    def __init__(self, line: CommandLine, machine: Machine, version: str) -> None:
        self._line, self._machine, self._batch, self._version = line, machine, machine.batch, version
        self._scale = float(line.given["time_scale"])
        self._flush_s = float(line.given["flush_s"])
        self._trouble = UnderLoad(line)
        self._began = time.monotonic()
        self._wake = asyncio.Event()
        self._number = 0
        self._told = (self._began, 0)
        self._paths: dict[str, Callable[[Connection, Request], None]] = {
            "/v1/models": lambda connection, _: connection.answer(_json(self._models())),
            "/health": lambda connection, _: connection.answer(b"{}"),
            "/metrics": lambda connection, _: connection.answer(self._metrics().encode(), kind=PLAIN),
            "/version": lambda connection, _: connection.answer(_json({"version": version})),
            "/get_server_info": lambda connection, _: connection.answer(_json(self.info())),
            "/tokenize": _tokenize,
            "/v1/completions": lambda connection, request: self._complete(connection, request, chat=False),
            "/v1/chat/completions": lambda connection, request: self._complete(connection, request, chat=True),
        }

    def connection(self) -> Connection:
        """A new client's."""
        return Connection(self._handle)

    async def serve(self) -> None:
        """Drive the batch for ever."""
        while True:
            if not self._batch.has_work:
                self._wake.clear()
                await self._wake.wait()
            self._turn()
            await asyncio.sleep(self._patience_s())

    def info(self) -> dict[str, Any]:
        """The effective configuration, and what is simulated."""
        machine = self._machine
        return {
            "simulated": True,
            "version": self._version,
            "world_title": self._line.world.title,
            "time_scale": self._scale,
            "machine": machine.box.name,
            "layout": machine.layout.name,
            "cache_tokens": machine.budget.cache_tokens,
            "args": {key: value for key, value in self._line.effective().items() if key != "model"},
        }

    def _now_s(self) -> float:
        """Seconds of the simulated world since the server was ready."""
        return (time.monotonic() - self._began) * self._scale

    def _patience_s(self) -> float:
        """Until the step under way ends, but not before the next chunk is worth a write."""
        end_s = self._batch.next_end_s()
        until = 0.0 if end_s is None else end_s / self._scale + self._began - time.monotonic()
        return max(until, min(self._flush_s, TURN_S))

    def _turn(self) -> None:
        now_s = self._now_s()
        if still_s := self._trouble.standstill_s(now_s):
            self._began += still_s / self._scale  # the simulated clock stands still, the real one does not
            return
        finished = self._batch.advance(now_s)
        real_s = time.monotonic()
        for sequence in self._batch.decoding.values():
            if sequence.owner.flush_at_s <= real_s:
                sequence.owner.flush_at_s = real_s + self._flush_s
                self._show(sequence, self._batch.made(sequence))
        for sequence in finished:
            self._show(sequence, sequence.output_tokens)
            self._end(sequence.owner)
        self._tell()

    def _show(self, sequence: Sequence, made: int) -> None:
        completion: Completion = sequence.owner
        if completion.first is None:
            noise, rate = self._batch.noise, self._line.world.noise.disagreement
            otherwise = answers.is_changed(completion.prompt_hash, self._trouble.wrong_rate)
            otherwise ^= self._batch.running > 1 and noise.chance(rate)
            completion.first = answers.first_token(completion.prompt_hash, otherwise=otherwise)
        completion.write(made)

    def _end(self, completion: Completion) -> None:
        if not completion.connection.open:
            return
        if completion.breaks:
            completion.fail(self._trouble.broken_line)
        else:
            completion.finish()

    def _tell(self) -> None:
        at, before = self._told
        now = time.monotonic()
        if now - at < LOG_EVERY_S:
            return
        made = self._batch.counters.generated_tokens
        rate = (made - before) / ((now - at) * self._scale)
        self._told = (now, made)
        log.say(
            f"Decode batch, #running-req: {self._batch.running}, #token: {self._batch.used_tokens}, token usage: "
            f"{self._batch.used_tokens / max(self._machine.budget.cache_tokens, 1):.2f}, gen throughput (token/s): "
            f"{rate:.1f} (simulated), #queue-req: {len(self._batch.waiting)}"
        )

    def _handle(self, connection: Connection, request: Request) -> None:
        handler = self._paths.get(request.path)
        if handler is None:
            connection.answer(b'{"error": "no such path"}', status=404)
            return
        try:
            handler(connection, request)
        except ValueError as error:
            connection.answer(_json({"error": {"message": str(error), "type": "invalid_request_error"}}), status=400)

    def _complete(self, connection: Connection, request: Request, *, chat: bool) -> None:
        self._number += 1
        completion = Completion(connection, request.json(), self._number, chat=chat, now_s=self._now_s())
        self._trouble.on_request(self._batch.running)
        completion.breaks = completion.streams and self._batch.noise.chance(self._trouble.broken_rate)
        connection.on_lost = lambda: self._batch.cancel(completion.sequence)
        self._batch.submit(completion.sequence)
        self._wake.set()

    def _models(self) -> dict[str, Any]:
        context = self._machine.shape.max_positions
        entry = {"id": MODEL, "object": "model", "owned_by": "rehearsal (simulated)", "max_model_len": context}
        return {"object": "list", "data": [entry]}

    def _metrics(self) -> str:
        """Prometheus text, names as SGLang has them where it has such a metric."""
        batch, counters = self._batch, self._batch.counters
        values = {
            "sglang:num_running_reqs": batch.running,
            "sglang:num_queue_reqs": len(batch.waiting),
            "sglang:prompt_tokens_total": counters.prompt_tokens,
            "sglang:generation_tokens_total": counters.generated_tokens,
            "sglang:cached_tokens_total": 0,
            "sglang:num_requests_total": counters.requests,
            "rehearsal:num_preemptions_total": counters.preemptions,
            "rehearsal:steps_total": counters.steps,
            "rehearsal:cache_tokens": self._machine.budget.cache_tokens,
            "rehearsal:cache_tokens_used": batch.used_tokens,
            "rehearsal:simulated_seconds": self._now_s(),
            "rehearsal:time_scale": self._scale,
        }
        return "".join(f"{name} {value:g}\n" if isinstance(value, float) else f"{name} {value}\n"
                       for name, value in values.items())  # fmt: skip


def _tokenize(connection: Connection, request: Request) -> None:
    body = request.json()
    text = str(body.get("content") or body.get("prompt") or "")
    tokens = answers.tokens_of(text)
    connection.answer(_json({"tokens": tokens, "count": len(tokens)}))


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
