"""Any server with an OpenAI-compatible API, started from a launch command as its user gives it.

Ready is when `/v1/models` answers, dead is when the process is; its log tells why it died by the rules of all engines.

An answer proves nothing where another server has the port. The listener is ours when it is below the process that was
started, or carries its marker. A command that may start its server elsewhere (a container, another machine, a script
that does so) leaves that open: the port was free before, nothing older listens on it, and `unproven` says that no more
is known.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from assay.engines.failure import failure_of
from assay.engines.http_client import HttpClient
from assay.errors import MeasurementError, UsageError
from assay.ports import LaunchFailed
from assay.process import Child, end_marked, listens, start
from assay.process.listening import Listener, carries, listeners
from assay.records.failure import Cause
from assay.records.run import Failure, ServerIdentity

POLL_S = 0.2
ASK_S = 5.0
WANTS_A_KEY = frozenset({http.client.UNAUTHORIZED, http.client.FORBIDDEN})
"""Who answers so serves."""
PORT = "{port}"
"""Where a command may want its port that has no --port of its own."""
LOOPBACK = "127.0.0.1"
SERVERS = ("vllm", "sglang", "trtllm-serve", "llama-server", "lmdeploy", "tgi", "text-generation-launcher")
"""Programs that take --port and --host: what a command without them is given."""
ELSEWHERE = frozenset({"docker", "podman", "nerdctl", "kubectl", "ssh", "srun", "sudo", "sh", "bash", "zsh", "dash"})
"""Programs whose server need not be below them, or not be seen."""


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


def may_be_elsewhere(words: Sequence[str]) -> bool:
    """Whether a command may start its server where its listener is not below it: by a word of it, or as a script."""
    return words[0].endswith(".sh") or any(PurePath(word).name in ELSEWHERE for word in words)


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

        Args:
            command: to be started.
            env: markers, by which its processes are known wherever they are: values that no other process has.
            log: where its output goes.

        Raises:
            EngineError: the program cannot be executed.
        """
        self.base_url = f"http://{LOOPBACK}:{command.port}"
        self.unproven: str | None = None
        """Why it is not known whether the listener is what was started; None while it is, or nothing is known yet."""
        self._markers = list(env.items())
        self._http = HttpClient(command.port, "is it ready?", lambda _: None)
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
                self._prove()
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
        """End its session, and what left it and carries its marker; returns when they are gone."""
        self._child.end()
        for name, value in self._markers:
            end_marked(name, value)

    def _prove(self) -> None:
        """Find out whose listener it is.

        Raises:
            LaunchFailed: somebody else's.
        """
        port = self.identity.port
        if listens(self.identity.pid, port):
            return
        there = listeners(port)
        if any(carries(one.pid, self._markers) for one in there):
            return  # it left the tree, as a service does
        if stranger := next((one for one in there if self._is_strange(one)), None):
            line = f"process {stranger.pid} listens on port {port}, which was not started here: {stranger.command}"
            raise LaunchFailed(Failure(stage="load", cause=Cause.PORT_IN_USE, line=line, log=str(self._log)))
        whose = f"process {there[0].pid}" if there and there[0].pid else "a process that this user cannot see"
        self.unproven = (
            f"{whose} listens on port {port}, and is not below the command that was started: that it is this server "
            "cannot be proved from here (the port was free before)"
        )

    def _is_strange(self, listener: Listener) -> bool:
        if listener.pid is None:
            return False
        return listener.is_older_than(self.identity.create_time) or not may_be_elsewhere(self.identity.argv)

    def _serves(self) -> bool:
        try:
            status, content = self._http.exchange("GET", "/v1/models", None, timeout_s=ASK_S)
            return status in WANTS_A_KEY or bool(json.loads(content).get("data"))
        except (MeasurementError, ValueError, AttributeError):
            return False

    def _failure(self, exit_code: int | None, *, timed_out: bool = False) -> Failure:
        try:
            said = self._log.read_text("utf-8", "replace")
        except OSError:
            said = ""
        return failure_of(said, str(self._log), exit_code, timed_out=timed_out, was_ready=self._was_ready)
