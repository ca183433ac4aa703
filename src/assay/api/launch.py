"""One side of a comparison, ready to be measured: a URL as it is, or a launch command started for one run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from assay.errors import EngineError, UsageError

if TYPE_CHECKING:
    from assay.records.run import Failure, ServerIdentity

EMBEDDED = "embedded"
LLAMA_SERVER = "llama-server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that is up."""

    url: str
    started: Started | None
    """None: somebody else's."""

    @property
    def pid(self) -> int | None:
        """Of a server that we started."""
        return None if self.started is None else self.started.identity.pid

    @property
    def notes(self) -> list[str]:
        """What could not be found out of a server that we started."""
        from assay.engines.any_server import AnyServer

        unproven = self.started.unproven if isinstance(self.started, AnyServer) else None
        return [] if unproven is None else [unproven]

    def alive(self) -> bool:
        """Whether a server that we started still lives."""
        return self.started is None or self.started.failure() is None


class Started(Protocol):
    """A server process that we started."""

    base_url: str
    identity: ServerIdentity

    def wait_ready(self, timeout_s: float) -> float:
        """Block until it serves."""

    def failure(self) -> Failure | None:
        """Why it died; None while it lives."""

    def stop(self) -> None:
        """End it."""


def is_url(target: str) -> bool:
    """Whether a side is the address of a server."""
    return target.startswith(("http://", "https://"))


@contextmanager
def serving(target: str, log: Path, start_timeout_s: float) -> Iterator[Serving]:
    """The side while the block runs; a launch command is started before and stopped after it.

    Args:
        target: a URL or a launch command; never given to a shell. The word `embedded` as its program stands for the
            packaged llama.cpp server, with the packaged model where no --model is given.
        log: where a started server's output goes.
        start_timeout_s: how long it may take until it serves.

    Raises:
        UsageError: the command cannot be read.
        EngineError: it does not start.
    """
    if is_url(target):
        yield Serving(url=target, started=None)
        return
    from assay.ports import LaunchFailed
    from assay.process.guardian import guard
    from assay.store.log_file import mask_log, mask_values
    from assay.store.redact import redact, secret_values

    secrets = secret_values(split(target))
    token = f"{os.getpid()}-{log.name}"
    with guard() as guardian:
        guardian.expect(token)
        server = _start(target, log, token)
        try:
            server.wait_ready(start_timeout_s)
            yield Serving(url=server.base_url, started=server)
        except LaunchFailed as failed:
            failure = failed.failure
            raise EngineError(
                redact(f"{target} does not start: {failure.cause}: {mask_values(failure.line, secrets)}"),
                hint=f"read {log}",
            ) from failed
        finally:
            server.stop()
            mask_log(log, secrets)


def _start(target: str, log: Path, token: str) -> Started:
    from assay.campaign.bench import RUN_TOKEN
    from assay.process import free_port

    words = split(target)
    env = {RUN_TOKEN: token}
    if words[0] == EMBEDDED or Path(words[0]).name == LLAMA_SERVER:
        return _start_llama(words, env, log)
    from assay.engines.any_server import AnyServer, ready_command

    return AnyServer(ready_command(words, free_port()), env, log)


def _start_llama(words: list[str], env: dict[str, str], log: Path) -> Started:
    """By the llama.cpp adapter: flags checked against the build, failures quoted from the log."""
    from assay import wiring
    from assay.api.command_words import read_flags
    from assay.process import free_port
    from assay.records.spec import Target

    engine = wiring.engine("llamacpp")
    flags = {
        name: value for name, value in read_flags(words[1:]).items() if name not in engine.owned - {"--model", "-m"}
    }
    model = next((flags.pop(name) for name in ("--model", "-m") if name in flags), None)
    if model is None and words[0] != EMBEDDED:
        raise UsageError(f"no --model in: {shlex.join(words)}", hint="add `--model FILE.gguf`")
    target = Target(model=EMBEDDED if model is None else str(model), executable=words[0], flags=flags)
    build = engine.find(target)
    if (problem := engine.check_flags(build, flags)) is not None:
        raise UsageError(problem, hint="the build's own --help is the list")
    argv = engine.argv(build, engine.model(target).path, flags, free_port())
    return engine.launch(argv, env, log, str(log))


def split(command: str) -> list[str]:
    """A launch command as words.

    Raises:
        UsageError: it is empty, or a quote is open.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the launch command cannot be split: {error}", hint="close every quote") from error
    if not words:
        raise UsageError("the launch command is empty", hint="give it as one quoted string")
    return words
