"""Any server with an OpenAI-compatible API, started from a launch command as its user gives it.

Ready is when `/v1/models` answers, dead is when the process is; its log tells why it died by the rules of all engines.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from assay.engines.failure import failure_of
from assay.errors import UsageError
from assay.ports import LaunchFailed
from assay.process import Child, start
from assay.records.run import Failure, ServerIdentity

POLL_S = 0.2
ASK_S = 5.0
PORT = "{port}"
"""Where a command may want its port that has no --port of its own."""
LOOPBACK = "127.0.0.1"
SERVERS = ("vllm", "sglang", "trtllm-serve", "llama-server", "lmdeploy", "tgi", "text-generation-launcher")
"""Programs that take --port and --host: what a command without them is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A launch command made ready for one run."""

    argv: list[str]
    port: int


def ready_command(words: Sequence[str], free_port: int) -> Command:
    """The command on loopback and a free port: `{port}`, --port and --host are set here.

    Raises:
        UsageError: it is not clear where its port goes.
    """
    if any(PORT in word for word in words):
        return Command(argv=[word.replace(PORT, str(free_port)) for word in words], port=free_port)
    known = any(name in word for word in words[:3] for name in SERVERS)
    argv = _with(list(words), "--port", str(free_port)) or ([*words, "--port", str(free_port)] if known else None)
    if argv is None:
        raise UsageError(
            f"{words[0]} is no server that Assay knows, and its command has no --port",
            hint="put {port} where the port goes, for example: 'my-server --listen 127.0.0.1:{port}'",
        )
    hosted = _with(argv, "--host", LOOPBACK) or ([*argv, "--host", LOOPBACK] if known else argv)
    return Command(argv=hosted, port=free_port)


def _with(words: list[str], flag: str, value: str) -> list[str] | None:
    """The words with a flag's value replaced; None where they do not have the flag."""
    for number, word in enumerate(words):
        if word == flag and number + 1 < len(words):
            return [*words[: number + 1], value, *words[number + 2 :]]
        if word.startswith(flag + "="):
            return [*words[:number], f"{flag}={value}", *words[number + 1 :]]
    return None


class AnyServer:
    """A server of unknown kind that we started."""

    def __init__(self, command: Command, env: dict[str, str], log: Path) -> None:
        """Start it; does not wait.

        Raises:
            EngineError: the program cannot be executed.
        """
        self.base_url = f"http://{LOOPBACK}:{command.port}"
        self._child: Child = start(command.argv, env, log)
        self.identity = ServerIdentity(
            pid=self._child.pid, create_time=self._child.create_time, port=command.port, argv=command.argv
        )
        self._log = log
        self._began = time.monotonic()
        self._was_ready = False

    def wait_ready(self, timeout_s: float) -> float:
        """Block until it lists its models; return seconds since launch.

        Raises:
            LaunchFailed: the process died, or time ran out.
        """
        while time.monotonic() - self._began < timeout_s:
            if (failure := self.failure()) is not None:
                raise LaunchFailed(failure)
            if self._serves():
                self._was_ready = True
                return time.monotonic() - self._began
            time.sleep(POLL_S)
        failure = self._failure(None, timed_out=True)
        raise LaunchFailed(failure.model_copy(update={"line": f"not ready after {timeout_s:g} s; {failure.line}"}))

    def failure(self) -> Failure | None:
        """None while the process lives."""
        code = self._child.exit_code()
        return None if code is None else self._failure(code)

    def stop(self) -> None:
        """End its session; returns when it is gone."""
        self._child.end()

    def _serves(self) -> bool:
        try:
            with urlopen(f"{self.base_url}/v1/models", timeout=ASK_S) as answer:  # noqa: S310 - an address of ours
                return bool(json.load(answer).get("data"))
        except HTTPError as error:
            return error.code in {401, 403}  # it wants a key, so it serves
        except (OSError, ValueError, AttributeError):
            return False

    def _failure(self, exit_code: int | None, *, timed_out: bool = False) -> Failure:
        try:
            said = self._log.read_text("utf-8", "replace")
        except OSError:
            said = ""
        return failure_of(said, str(self._log), exit_code, timed_out=timed_out, was_ready=self._was_ready)
