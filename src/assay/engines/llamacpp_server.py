"""One live llama.cpp server that we started."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from assay.engines.llamacpp_failures import FATAL, classify
from assay.engines.llamacpp_log import facts, fallbacks
from assay.errors import MeasurementError
from assay.ports import LaunchFailed
from assay.process import Child, listens, tree_rss_bytes
from assay.records.run import Failure, ServerIdentity

POLL_S = 0.02
REQUEST_TIMEOUT_S = 60.0
HEALTH_TIMEOUT_S = 2.0
LAST_WORDS_S = 5.0
"""What a server that has said something fatal gets to end by itself, so that its exit code is its own."""
DEATH_S = 2.0
"""Longest from a broken connection to the end of the process that broke it."""
NOT_SERVED = frozenset({http.client.NOT_FOUND, http.client.NOT_IMPLEMENTED})
"""How a build without an endpoint, or one that was told to close it, answers."""
DROPPED = ("chat_template", "ui_settings", "webui_settings", "media_marker")
"""Large texts among the properties that say nothing of speed."""


class LlamaServer:
    """Implements `assay.ports.Server`."""

    def __init__(self, child: Child, port: int, argv: list[str], log: Path, log_name: str) -> None:
        self.identity = ServerIdentity(pid=child.pid, create_time=child.create_time, port=port, argv=argv)
        self.base_url = f"http://127.0.0.1:{port}"
        self.model_name = "model"
        self._child, self._port, self._log, self._log_name = child, port, log, log_name
        self._was_ready = False
        self._began = time.monotonic()

    def wait_ready(self, timeout_s: float) -> float:
        """Poll the process, its log and `/health`; the listener must be our own process."""
        while time.monotonic() - self._began < timeout_s:
            if self._child.exit_code() is not None or FATAL.search(self._text()):
                self._hear_last_words()
                raise LaunchFailed(self._classify(timed_out=False))
            if listens(self.identity.pid, self._port) and self._healthy():
                self._was_ready = True
                return time.monotonic() - self._began
            time.sleep(POLL_S)
        raise LaunchFailed(self._classify(timed_out=True))

    def failure(self) -> Failure | None:
        """None while the process lives."""
        return None if self._child.exit_code() is None else self._classify(timed_out=False)

    def effective(self) -> dict[str, Any]:
        """`/props` flattened, the slots' common facts (`slots.`), and what only the log says (`log.`)."""
        told = {key: value for key, value in _flatten(self._get("/props")).items() if not key.startswith(DROPPED)}
        return {**told, **_common(self._get("/slots", absent=[])), **facts(self._text())}

    def fallbacks(self) -> list[str]:
        """Lines of the log in which the engine says that it does something else than asked."""
        return fallbacks(self._text())

    def counters(self) -> dict[str, float]:
        """`/metrics`, names as the server spells them; empty when it has none."""
        status, content = self._exchange("GET", "/metrics", None)
        if status in NOT_SERVED:
            return {}
        return _counters(self._checked("GET /metrics", status, content).decode(errors="replace"))

    def next_tokens(self, prompts: Sequence[list[int]]) -> list[int]:
        """One greedy token after each prompt, prompt cache off."""
        tokens = []
        for prompt in prompts:
            body = {"prompt": prompt, "n_predict": 1, "temperature": 0, "cache_prompt": False, "return_tokens": True}
            answer = self._post("/completion", body)
            if not answer.get("tokens"):
                raise MeasurementError(f"/completion answered without a token: {answer}", hint=f"read {self._log}")
            tokens.append(int(answer["tokens"][0]))
        return tokens

    def tokenize(self, text: str) -> list[int]:
        """Token ids, no special tokens."""
        return [int(token) for token in self._post("/tokenize", {"content": text})["tokens"]]

    def rss_bytes(self) -> int | None:
        """Resident memory of the process and its descendants; None when it is gone."""
        return tree_rss_bytes(self.identity.pid)

    def stop(self) -> None:
        """End its session; returns when it is gone."""
        self._child.end()

    def _healthy(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=HEALTH_TIMEOUT_S)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _hear_last_words(self) -> None:
        """Let it end by itself for a while, then end it."""
        self._wait_for_end(LAST_WORDS_S)
        self._child.end()

    def _failure_behind(self, error: Exception) -> Failure | None:
        """A dying server's connections break before it can be reaped; one that is only slow is not dying."""
        self._wait_for_end(0.0 if isinstance(error, TimeoutError) else DEATH_S)
        return self.failure()

    def _wait_for_end(self, patience_s: float) -> None:
        deadline_s = time.monotonic() + patience_s
        while self._child.exit_code() is None and time.monotonic() < deadline_s:
            time.sleep(POLL_S)

    def _get(self, path: str, absent: Any = None) -> Any:
        """Parsed JSON; `absent` where this build does not serve the path."""
        status, content = self._exchange("GET", path, None)
        if absent is not None and status in NOT_SERVED:
            return absent
        return self._parsed(f"GET {path}", status, content)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._parsed(f"POST {path}", *self._exchange("POST", path, json.dumps(body)))

    def _parsed(self, request: str, status: int, content: bytes) -> Any:
        try:
            return json.loads(self._checked(request, status, content))
        except ValueError as error:
            raise MeasurementError(f"{request}: not JSON: {content[:300]!r}", hint=f"read {self._log}") from error

    def _checked(self, request: str, status: int, content: bytes) -> bytes:
        if status != http.client.OK:
            raise MeasurementError(f"{request}: HTTP {status}: {content[:300]!r}", hint=f"read {self._log}")
        return content

    def _exchange(self, method: str, path: str, body: str | None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=REQUEST_TIMEOUT_S)
        try:
            connection.request(method, path, body, {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            if (failure := self._failure_behind(error)) is not None:
                raise LaunchFailed(failure) from error
            raise MeasurementError(f"{method} {path}: {error}", hint=f"read {self._log}") from error
        finally:
            connection.close()

    def _text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _classify(self, *, timed_out: bool) -> Failure:
        return classify(
            self._text(),
            self._log_name,
            self._child.exit_code(),
            was_ready=self._was_ready,
            timed_out=timed_out,
        )


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat |= _flatten(item, f"{prefix}.{key}" if prefix else str(key))
    return flat


def _common(slots: Any) -> dict[str, Any]:
    """What the slots say, where all say the same; what they are busy with is left out."""
    kept = ("n_ctx", "speculative")
    rows = [slot for slot in slots if isinstance(slot, dict)] if isinstance(slots, list) else []
    values = {key: {slot[key] for slot in rows if key in slot} for key in kept}
    return {f"slots.{key}": found.pop() for key, found in values.items() if len(found) == 1}


def _counters(text: str) -> dict[str, float]:
    found = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#"):
            with suppress(ValueError):
                found[name] = float(value)
    return found
