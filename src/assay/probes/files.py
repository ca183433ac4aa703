"""The files under /proc, /sys and the like, below a root that tests can choose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Files:
    """Reads what is there; what is not, or may not be read, is None."""

    root: Path = Path("/")

    def text(self, path: str | Path) -> str | None:
        """The stripped text of a file, by its path below the root."""
        try:
            return (self.root / path).read_text(errors="replace").strip()
        except OSError:
            return None

    def number(self, path: str | Path) -> int | None:
        """A file that holds one decimal number; None when it holds something else."""
        text = self.text(path)
        try:
            return int(text) if text is not None else None
        except ValueError:
            return None

    def folders(self, pattern: str) -> list[Path]:
        """Paths below the root that match, in the order of their numbers, relative to the root."""
        try:
            found = [path.relative_to(self.root) for path in self.root.glob(pattern)]
        except OSError:
            return []
        return sorted(found, key=lambda path: (len(path.name), path.name))

    def exists(self, path: str | Path) -> bool:
        """Whether it is there, as far as may be seen."""
        try:
            return (self.root / path).exists()
        except OSError:
            return False
