"""One live server with an HTTP API that we started: what all engines of that kind share.

An engine's server is a subclass. It must give
- `engine`: its name, as the failure classifier knows it;
- `fatal`: lines of its log after which it will not become ready (None: only the end of its process tells);
- `effective()` and `fallbacks()`: its configuration and its second thoughts, in its own dialect.
It may give
- `lost`: lines after which a server that served will not serve again, though its process still lives for a while;
- `health`, `poll_s`, `last_words_s`, `model_name`, `extra_body`;
- `is_listening()`, where its listener is no process below the one we started (containers, ssh);
- `is_healthy()`, where a path that answers 200 is not the whole proof;
- `tokenize()` and `next_token()`, where its endpoints differ from vLLM's;
- `classify()`, where its log is judged by rules of its own (llama.cpp).

Ready is: the process lives, its log says nothing fatal, its own process tree listens on the port, and `health` answers
200. Another server on the port, which also answers 200, is thereby told apart.

Stopped is: every process of its tree and session is gone, also workers whose parent was killed before. A GPU's memory
belongs to the processes that use it, so the driver has it back when they are gone; nothing is asked of the GPU here.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from assay.engines import told
from assay.engines.failure import failure_of
from assay.engines.http_client import HttpClient
from assay.engines.log_tail import LogTail
from assay.errors import MeasurementError
from assay.ports import LaunchFailed
from assay.process import Child, listens, tree_rss_bytes
from assay.records.run import Failure, ServerIdentity

DEATH_S = 2.0
"""Longest from a broken connection to the end of the process that broke it."""
TOKEN_ID = re.compile(r"^token_id:(\d+)$")


class HttpServer(ABC):
    """Implements `assay.ports.Server`, but for what the engine must give."""

    engine: ClassVar[str]
    fatal: ClassVar[re.Pattern[str] | None] = None
    lost: ClassVar[re.Pattern[str] | None] = None
    health: ClassVar[str] = "/health"
    poll_s: ClassVar[float] = 0.1
    last_words_s: ClassVar[float] = 15.0
    """What a server that has said something fatal gets to end by itself, so that its log and exit code are whole."""
    extra_body: Mapping[str, bool | int | float | str] = {}
    """Fields that every measured request carries for this engine."""
    model_name: str = "model"

    def __init__(self, child: Child, port: int, argv: list[str], log: Path, log_name: str) -> None:
        self.identity = ServerIdentity(pid=child.pid, create_time=child.create_time, port=port, argv=argv)
        self.base_url = f"http://127.0.0.1:{port}"
        self.http = HttpClient(port, f"read {log}", self._raise_if_dying)
        self.log = LogTail(log)
        self._child, self._log_name = child, log_name
        self._was_ready = False
        self._began = time.monotonic()
        self._gave_up = False
        self._ended_by_us = False

    @property
    def exit_code(self) -> int | None:
        """Of its process; None while it lives, and where a signal of ours ended it."""
        return None if self._ended_by_us else self._child.exit_code()

    @abstractmethod
    def effective(self) -> dict[str, Any]:
        """Configuration it reports of itself, flattened."""

    @abstractmethod
    def fallbacks(self) -> list[str]:
        """Log lines in which the engine says that it does something else than asked."""

    def wait_ready(self, timeout_s: float) -> float:
        """Poll the process, its log, its listener (which must be our own process) and `health`."""
        while time.monotonic() - self._began < timeout_s:
            if self._child.exit_code() is not None or self._says(self.fatal):
                self._hear_last_words()
                raise LaunchFailed(self.classify())
            if self.is_listening() and self.is_healthy():
                self._was_ready = True
                return time.monotonic() - self._began
            time.sleep(self.poll_s)
        raise LaunchFailed(self.classify(timed_out=True))

    def failure(self) -> Failure | None:
        """None while the process lives and its log says nothing else; else why it died."""
        if self._child.exit_code() is None and not self._says(self.lost):
            return None
        self._wait_for_end(self.last_words_s)
        return self.classify()

    def counters(self) -> dict[str, float]:
        """`/metrics`, names and labels as the server spells them; empty when it has none."""
        return told.counters(self.http.text("/metrics"))

    def next_tokens(self, prompts: Sequence[list[int]]) -> list[int]:
        """One greedy token after each prompt, prompts taken one at a time."""
        return [self.next_token(prompt) for prompt in prompts]

    def next_token(self, prompt: list[int]) -> int:
        """The greedy token after a prompt of token ids.

        Asks as vLLM since 0.10.2 wants it, then as older ones do. Only then: the first request for log-probabilities
        makes vLLM compile a kernel, which took 20 s on two cores.

        Raises:
            MeasurementError: the answer has no token id.
        """
        body = {"model": self.model_name, "prompt": prompt, "max_tokens": 1, "temperature": 0}
        older = {"logprobs": 1, "return_tokens_as_token_ids": True}
        for spelling in ({"return_token_ids": True}, older):
            answer = self.http.post("/v1/completions", {**body, **spelling})
            if (token := _token_id(answer)) is not None:
                return token
        raise MeasurementError(f"/v1/completions answered without a token: {answer}", hint=f"read {self.log.path}")

    def tokenize(self, text: str) -> list[int]:
        """Token ids, no special tokens."""
        body = {"model": self.model_name, "prompt": text, "add_special_tokens": False}
        return [int(token) for token in self.http.post("/tokenize", body)["tokens"]]

    def rss_bytes(self) -> int | None:
        """Resident memory of the process and its descendants; None when it is gone."""
        return tree_rss_bytes(self.identity.pid)

    def stop(self) -> None:
        """End its session and tree; returns when every process of it is gone. Idempotent."""
        self._child.end()

    def is_listening(self) -> bool:
        """Whether the listener on its port is a process of ours."""
        return listens(self.identity.pid, self.identity.port)

    def is_healthy(self) -> bool:
        """Whether it says that it serves."""
        return self.http.is_ok(self.health)

    def classify(self, *, timed_out: bool = False) -> Failure:
        """Why it does not serve, from its log and exit code."""
        return failure_of(
            self.log.text(),
            self._log_name,
            self.exit_code,
            self.engine,
            was_ready=self._was_ready,
            timed_out=timed_out,
        )

    def _says(self, pattern: re.Pattern[str] | None) -> bool:
        """Whether its log has said something of this shape since the server began."""
        if pattern is not None and not self._gave_up:
            self._gave_up = any(pattern.search(line) for line in self.log.new_lines())
        return self._gave_up

    def _hear_last_words(self) -> None:
        """Let it end by itself for a while, then end it; a signal of ours is no exit code of its own."""
        self._wait_for_end(self.last_words_s)
        self._ended_by_us = self._child.exit_code() is None
        self._child.end()

    def _raise_if_dying(self, error: Exception) -> None:
        """A dying server's connections break before it can be reaped; one that is only slow is not dying."""
        self._wait_for_end(0.0 if isinstance(error, TimeoutError) else DEATH_S)
        if (failure := self.failure()) is not None:
            raise LaunchFailed(failure) from error

    def _wait_for_end(self, patience_s: float) -> None:
        deadline_s = time.monotonic() + patience_s
        while self._child.exit_code() is None and time.monotonic() < deadline_s:
            time.sleep(self.poll_s)


def _token_id(answer: Any) -> int | None:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else {}
    ids = choice.get("token_ids")
    if isinstance(ids, list) and ids:
        return int(ids[0])
    tokens = (choice.get("logprobs") or {}).get("tokens") or []
    found = TOKEN_ID.match(str(tokens[0])) if tokens else None
    return int(found[1]) if found else None
