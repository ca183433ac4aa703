"""Processes: starting them, knowing them again, ending them; nothing else in Assay does."""

from assay.process.children import Child, end_recorded, free_port, listens, run_quiet, start
from assay.process.marked import end_marked, find_alive, has_open
from assay.process.memory import tree_rss_bytes
from assay.process.piped import Piped

__all__ = [
    "Child",
    "Piped",
    "end_marked",
    "end_recorded",
    "find_alive",
    "free_port",
    "has_open",
    "listens",
    "run_quiet",
    "start",
    "tree_rss_bytes",
]
