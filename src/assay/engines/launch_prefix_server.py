"""A server with an HTTP API that may run in a container, behind ssh or as a Slurm step."""

from __future__ import annotations

import re
from abc import ABC
from pathlib import Path
from typing import ClassVar

from assay.engines.http_server import HttpServer
from assay.engines.launch_prefix import begin, is_elsewhere, listens_elsewhere


class PrefixedServer(HttpServer, ABC):
    """What `HttpServer` is, wherever it was started.

    A listener that is none of our processes proves nothing, nor does ssh's, which leads to whoever has the port over
    there. Then the server must have said in its log, which is what our own child writes, that it serves.
    """

    ready: ClassVar[re.Pattern[str]]
    """The line in which it says so."""

    def __init__(
        self, argv: list[str], env: dict[str, str], log: Path, log_name: str, port: int, *, without: str | None = None
    ) -> None:
        """Start it; does not wait.

        Args:
            argv: the whole launch command, prefix included.
            env: added to what it inherits.
            log: where its output goes.
            log_name: path of the log relative to the campaign.
            port: on which it will answer here.
            without: prefix of inherited variables that it must not see.

        Raises:
            EngineError: the program cannot be executed.
        """
        super().__init__(begin(argv, env, log, without=without), port, argv, log, log_name)

    def is_listening(self) -> bool:
        """Whether the listener on its port is ours, and whether it said that it serves where it is elsewhere."""
        argv = self.identity.argv
        if is_elsewhere(argv) and not self.log.has_said(self.ready):
            return False
        return listens_elsewhere(argv) or super().is_listening()

    def rss_bytes(self) -> int | None:
        """Resident memory of its process tree; None where that is not below our own process."""
        return None if is_elsewhere(self.identity.argv) else super().rss_bytes()
