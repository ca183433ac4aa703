"""One measurement of one client as it is kept: a JSON file that grows measurement by measurement."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A client at a number of streams. Errors are the client's percentile minus the same percentile of the server's
    own log; None: not measured, and `reason` or the client's kind of report says why."""

    client: str
    streams: int
    reason: str | None = None
    """Why there is no measurement; everything below is then None."""
    tokens_per_s: float | None = None
    """While every stream should have been busy: read, by the stamps of the client that keeps them; else sent by the
    server, or, of a client that was still reading when all was sent, all tokens over its time."""
    reported_tokens_per_s: float | None = None
    """As the client counts them; over all its time, most often, the beginning and the end included."""
    offered_tokens_per_s: float | None = None
    in_flight: float | None = None
    cpu_s_per_million_tokens: float | None = None
    """From the arrival of the first request to the last chunk, all processes of the client."""
    command_cpu_s_per_million_tokens: float | None = None
    """The whole command: start, load, statistics, report."""
    ttft_p50_error_s: float | None = None
    ttft_p99_error_s: float | None = None
    itl_p99_error_s: float | None = None
    server_ttft_p50_s: float | None = None
    server_itl_p99_s: float | None = None
    """Of the gaps between the server's own sends: above 1 / rate, it was late itself."""
    peak_rss_bytes: int | None = None
    num_requests: int | None = None
    num_failed: int | None = None
    said: str | None = None
    stamp_errors: dict[str, float] | None = None
    """`truth.StampErrors`, for clients that keep the server's request numbers."""
    window_s: float | None = None
    wall_s: float | None = None

    @property
    def key(self) -> str:
        """What it is kept under."""
        return f"{self.client} @ {self.streams}"


class Results:
    """The file."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self._path = path
        self.settings = settings
        self.rows: dict[str, Row] = {}
        self.about: dict[str, Any] = {}
        if path.exists():
            self._read()

    def _read(self) -> None:
        kept = json.loads(self._path.read_text())
        if kept["settings"] != self.settings:
            raise SystemExit(
                f"{self._path} holds measurements with other settings: {kept['settings']}, now {self.settings}\n\n"
                "hint: give another file with --results, or the settings of this one"
            )
        self.about = kept["about"]
        self.rows = {key: Row(**row) for key, row in kept["rows"].items()}

    def add(self, row: Row) -> None:
        """Keep one more; the file is replaced as a whole, so that a crash costs one measurement."""
        self.rows[row.key] = row
        kept = {key: asdict(row) for key, row in self.rows.items()}
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps({"settings": self.settings, "about": self.about, "rows": kept}, indent=1))
        fresh.replace(self._path)
