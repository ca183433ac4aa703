"""What the plain clients share: the task, the request, and the file of stamps. Standard library only."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
import threading
import time
from array import array
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

DATA = b"data: {"
NUMBER = "x-null-request"


@dataclass(frozen=True, slots=True)
class Task:
    """A closed loop of `streams` requests in flight, sent for `seconds` and then drained."""

    url: str
    streams: int
    seconds: float
    output_tokens: int
    input_tokens: int
    stamps: Path
    kernel: bool

    @property
    def body(self) -> bytes:
        return json.dumps(self.fields).encode()

    @property
    def fields(self) -> dict[str, object]:
        return {
            "model": "null",
            "prompt": " ".join(["word"] * self.input_tokens),
            "max_tokens": self.output_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    @property
    def patience_s(self) -> float:
        """After so long even a client that fell far behind gives up, and reports what it has."""
        return 2 * self.seconds + 5

    def deadline_ns(self) -> int:
        return time.monotonic_ns() + round(self.seconds * 1e9)


def task() -> Task:
    """From the command line; the garbage collector is off from here on, as in any careful measurement."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--output-tokens", type=int, required=True)
    parser.add_argument("--input-tokens", type=int, required=True)
    parser.add_argument("--stamps", type=Path, required=True)
    parser.add_argument("--kernel", action="store_true")
    arguments = Task(**vars(parser.parse_args()))
    gc.disable()
    return arguments


def has_content(event: bytes) -> bool:
    """Whether an event's JSON holds text of the answer."""
    choices = json.loads(event).get("choices") or [{}]
    return bool(choices[0].get("text"))


class Stamps:
    """By request number: the moment of sending, then that of each content chunk (monotonic ns)."""

    def __init__(self) -> None:
        self._requests: dict[int, array[int]] = {}

    def of(self, number: int, sent_ns: int) -> array[int]:
        """A request's stamps, to be appended to."""
        return self._requests.setdefault(number, array("Q", [sent_ns]))

    def write(self, path: Path) -> None:
        """As pairs of uint64: number, stamp."""
        with path.open("wb") as file:
            for number, stamps in list(self._requests.items()):
                array("Q", [value for at_ns in stamps[:] for value in (number, at_ns)]).tofile(file)


async def play(streams: Iterable[Coroutine[None, None, None]], work: Task, stamps: Stamps) -> None:
    """Run all streams to their ends, or until patience is over, and write the stamps; says how many failed."""
    giving_up = threading.Timer(work.patience_s, _give_up, (work, stamps))
    giving_up.start()
    ends = await asyncio.gather(*streams, return_exceptions=True)
    giving_up.cancel()
    stamps.write(work.stamps)
    failures = [end for end in ends if isinstance(end, Exception)]
    if failures:
        print(f"{len(failures)} streams failed, the first by {failures[0]!r}", file=sys.stderr)


def _give_up(work: Task, stamps: Stamps) -> None:
    """From a thread, and without tidying up: a loop that has fallen far behind runs no timer for minutes."""
    stamps.write(work.stamps)
    print(f"gave up after {work.patience_s:.0f} s", file=sys.stderr, flush=True)
    os._exit(0)


def events(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Every JSON event of a raw response with the offset of its end; the transfer framing between them is skipped."""
    at = 0
    while (end := text.find(b"\n\n", at)) >= 0:
        begin = text.find(DATA, at, end)
        if begin >= 0:
            yield end + 2, text[begin + len(DATA) - 1 : end]
        at = end + 2
