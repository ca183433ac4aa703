"""A log that is being written, read on from where it was read last: engines that start for minutes write megabytes."""

from __future__ import annotations

from pathlib import Path


class LogTail:
    """The lines that a log has gained since the last look."""

    def __init__(self, path: Path) -> None:
        """Remember the file; it may not be there yet."""
        self.path = path
        self._position = 0
        self._partial = b""

    def new_lines(self) -> list[str]:
        """Whole lines since the last call; a line that is still being written comes with the next."""
        try:
            with self.path.open("rb") as source:
                source.seek(self._position)
                data = source.read()
        except OSError:
            return []
        self._position += len(data)
        *whole, self._partial = (self._partial + data).split(b"\n")
        return [line.decode("utf-8", "replace").rstrip("\r") for line in whole]

    def text(self) -> str:
        """All of it, also the line that is still being written; empty when it cannot be read."""
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
