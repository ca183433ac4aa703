"""The null server for tests, and what it really sent."""

from __future__ import annotations

import json
import subprocess
import sys
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assay.ports_bench import Live


@dataclass(frozen=True, slots=True, kw_only=True)
class Null:
    """A running null server."""

    url: str
    pid: int


@contextmanager
def null_server(log: Path | None = None, *, first_token_s: float = 0.05, tokens_per_s: float = 50.0) -> Iterator[Null]:
    words = ["--first-token-s", str(first_token_s), "--tokens-per-s", str(tokens_per_s)]
    words += ["--log", str(log)] if log else []
    with subprocess.Popen([sys.executable, "-m", "assay.load.null_server", *words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            said = json.loads(process.stdout.readline())
            yield Null(url=f"http://127.0.0.1:{said['port']}", pid=said["pid"])
        finally:
            process.terminate()
            process.wait(timeout=10)


def sent(log: Path) -> dict[int, list[int]]:
    """Monotonic nanoseconds by request number: arrival of the request, then every chunk."""
    stamps = array("Q")
    stamps.frombytes(log.read_bytes())
    found: dict[int, list[int]] = {}
    for number, at_ns in zip(stamps[::2], stamps[1::2], strict=True):
        found.setdefault(number, []).append(at_ns)
    return found


class Silent:
    """Implements `assay.ports_bench.BenchProgress`, and keeps what it was told."""

    def __init__(self) -> None:
        self.lives: list[Live] = []
        self.results: list[str] = []

    def phase(self, text: str, done_s: float, total_s: float | None) -> None:
        """Nothing."""

    def tick(self, live: Live) -> None:
        self.lives.append(live)

    def result(self, text: str, good: bool | None = None) -> None:
        self.results.append(text)
