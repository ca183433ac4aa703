"""How much memory a process and everything it started hold."""

from __future__ import annotations

import psutil


def tree_rss_bytes(pid: int) -> int | None:
    """Resident memory of a process and its descendants; None when it is gone."""
    try:
        root = psutil.Process(pid)
        return sum(process.memory_info().rss for process in (root, *root.children(recursive=True)))
    except psutil.NoSuchProcess:
        return None
