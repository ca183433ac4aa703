"""One live simulated server that we started."""

from __future__ import annotations

import re
from typing import Any

from assay.engines.http_server import HttpServer
from assay.engines.rehearsal_failures import FATAL, READY, classify, plain
from assay.records.run import Failure

FALLBACK = re.compile(
    r"falling back|fall ?back to|not supported|unsupported|has no effect|ignor(?:ed|ing)|disabl(?:ed|ing)",
    re.IGNORECASE,
)
SERVES = re.compile(re.escape(READY))


class RehearsalServer(HttpServer):
    """Implements `assay.ports.Server`."""

    engine = "rehearsal"
    fatal = FATAL
    poll_s = 0.02
    last_words_s = 5.0

    def effective(self) -> dict[str, Any]:
        """`/get_server_info`, its arguments under their own names."""
        told = self.http.get("/get_server_info")
        arguments = told.pop("args", {})
        return {**arguments, **told}

    def fallbacks(self) -> list[str]:
        """Lines of the log in which the engine says that it does something else than asked, each once."""
        lines = (plain(line) for line in self.log.text().splitlines() if " INFO " not in line[:32])
        return list(dict.fromkeys(line for line in lines if FALLBACK.search(line)))

    def tokenize(self, text: str) -> list[int]:
        """Token ids."""
        return [int(token) for token in self.http.post("/tokenize", {"content": text})["tokens"]]

    def is_listening(self) -> bool:
        """Whether it has said that it serves, and the listener is a process of ours."""
        return self.log.has_said(SERVES) and super().is_listening()

    def classify(self, *, timed_out: bool = False) -> Failure:
        """With what it was doing."""
        code = self.exit_code
        return classify(self.log.text(), self._log_name, code, was_ready=self._was_ready, timed_out=timed_out)
