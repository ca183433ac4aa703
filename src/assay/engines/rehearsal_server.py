"""One live simulated server that we started."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from assay.engines.rehearsal_failures import FATAL, READY, classify, plain
from assay.errors import MeasurementError
from assay.ports import LaunchFailed
from assay.process import Child, listens, tree_rss_bytes
from assay.records.run import Failure, ServerIdentity

POLL_S = 0.02
REQUEST_TIMEOUT_S = 60.0
LAST_WORDS_S = 5.0
"""What a server that has said something fatal gets to end by itself, so that its exit code is its own."""
DEATH_S = 2.0
"""Longest from a broken connection to the end of the process that broke it."""
FALLBACK = re.compile(
    r"falling back|fall ?back to|not supported|unsupported|has no effect|ignor(?:ed|ing)|disabl(?:ed|ing)",
    re.IGNORECASE,
)


class RehearsalServer:
    """Implements `assay.ports.Server`."""

    model_name = "model"
    extra_body: Mapping[str, bool | int | float | str] = {}

    def __init__(self, child: Child, port: int, argv: list[str], log: Path, log_name: str) -> None:
        self.identity = ServerIdentity(pid=child.pid, create_time=child.create_time, port=port, argv=argv)
        self.base_url = f"http://127.0.0.1:{port}"
        self._child, self._port, self._log, self._log_name = child, port, log, log_name
        self._was_ready = False
        self._began = time.monotonic()

    def wait_ready(self, timeout_s: float) -> float:
        """Poll the process, its log and its listener, which must be our own process."""
        while time.monotonic() - self._began < timeout_s:
            said = self._text()
            if self._child.exit_code() is not None or any(FATAL.match(line) for line in said.splitlines()):
                self._wait_for_end(LAST_WORDS_S)
                self._child.end()
                raise LaunchFailed(self._classify())
            if READY in said and listens(self.identity.pid, self._port):
                self._was_ready = True
                return time.monotonic() - self._began
            time.sleep(POLL_S)
        raise LaunchFailed(self._classify(timed_out=True))

    def failure(self) -> Failure | None:
        """None while the process lives."""
        return None if self._child.exit_code() is None else self._classify()

    def effective(self) -> dict[str, Any]:
        """`/get_server_info`, its arguments under their own names."""
        told = json.loads(self._asked("GET", "/get_server_info"))
        arguments = told.pop("args", {})
        return {**arguments, **told}

    def fallbacks(self) -> list[str]:
        """Lines of the log in which the engine says that it does something else than asked, each once."""
        lines = (plain(line) for line in self._text().splitlines() if " INFO " not in line[:32])
        return list(dict.fromkeys(line for line in lines if FALLBACK.search(line)))

    def counters(self) -> dict[str, float]:
        """`/metrics`, names as the server spells them."""
        found = {}
        for line in self._asked("GET", "/metrics").decode(errors="replace").splitlines():
            name, _, value = line.rpartition(" ")
            if name and not line.startswith("#"):
                with suppress(ValueError):
                    found[name] = float(value)
        return found

    def next_tokens(self, prompts: Sequence[list[int]]) -> list[int]:
        """One greedy token after each prompt."""
        return [self._next_token(prompt) for prompt in prompts]

    def tokenize(self, text: str) -> list[int]:
        """Token ids."""
        return [int(token) for token in json.loads(self._asked("POST", "/tokenize", {"content": text}))["tokens"]]

    def rss_bytes(self) -> int | None:
        """Resident memory of the process; None when it is gone."""
        return tree_rss_bytes(self.identity.pid)

    def stop(self) -> None:
        """End its session; returns when it is gone."""
        self._child.end()

    def _next_token(self, prompt: list[int]) -> int:
        body = {"model": self.model_name, "prompt": prompt, "max_tokens": 1, "temperature": 0}
        answer = json.loads(self._asked("POST", "/v1/completions", body))
        ids = answer["choices"][0].get("token_ids")
        if not ids:
            raise MeasurementError(f"/v1/completions answered without a token: {answer}", hint=f"read {self._log}")
        return int(ids[0])

    def _asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=REQUEST_TIMEOUT_S)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"content-type": "application/json"})
            response = connection.getresponse()
            status, answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._wait_for_end(0.0 if isinstance(error, TimeoutError) else DEATH_S)
            if (failure := self.failure()) is not None:
                raise LaunchFailed(failure) from error
            raise MeasurementError(f"{method} {path}: {error}", hint=f"read {self._log}") from error
        finally:
            connection.close()
        if status != http.client.OK:
            raise MeasurementError(f"{method} {path}: HTTP {status}: {answer[:300]!r}", hint=f"read {self._log}")
        return answer

    def _wait_for_end(self, patience_s: float) -> None:
        deadline_s = time.monotonic() + patience_s
        while self._child.exit_code() is None and time.monotonic() < deadline_s:
            time.sleep(POLL_S)

    def _text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _classify(self, *, timed_out: bool = False) -> Failure:
        return classify(
            self._text(), self._log_name, self._child.exit_code(), was_ready=self._was_ready, timed_out=timed_out
        )
