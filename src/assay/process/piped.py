"""A helper process that is talked to over pipes, line by line; it ends when we do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from assay.errors import EngineError

PATIENCE_S = 5.0


class Piped:
    """A Python module of ours as a process: lines in, lines out, its stderr in a file."""

    def __init__(self, module: str, words: Sequence[str], stderr: Path, *, cpus: set[int] | None = None) -> None:
        """Start it, in a session of its own: Ctrl-C reaches us alone.

        Args:
            module: what `python -m` runs.
            words: its arguments.
            stderr: where its complaints go.
            cpus: processors that it may use; None: those we may use.

        Raises:
            EngineError: it cannot be started.
        """
        try:
            with stderr.open("ab") as sink:
                self._popen = subprocess.Popen(
                    [sys.executable, "-m", module, *words],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=sink,
                    start_new_session=True,
                )
        except OSError as error:
            raise EngineError(f"cannot start {module}: {error}", hint="check memory and process limits") from error
        if cpus and hasattr(os, "sched_setaffinity"):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(self._popen.pid, cpus)
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._stdin, self._stdout = self._popen.stdin, self._popen.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._partial = b""
        self.pid = self._popen.pid

    def fileno(self) -> int:
        """Of what it says, for selectors."""
        return self._stdout.fileno()

    def tell(self, line: bytes) -> None:
        """Give it one line; one that has ended hears nothing."""
        with suppress(BrokenPipeError):
            self._stdin.write(line + b"\n")
            self._stdin.flush()

    def lines(self) -> list[bytes] | None:
        """What it has said since, in whole lines, without waiting; None once it has closed its mouth."""
        try:
            data = os.read(self._stdout.fileno(), 1 << 20)
        except BlockingIOError:
            return []
        if not data:
            return None
        *whole, self._partial = (self._partial + data).split(b"\n")
        return whole

    def exit_code(self) -> int | None:
        """None while it lives."""
        return self._popen.poll()

    def end(self) -> None:
        """Close its stdin, which ends it; kill it when it does not take the hint. Idempotent."""
        with suppress(BrokenPipeError):
            self._stdin.close()
        try:
            self._popen.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self._stdout.close()
