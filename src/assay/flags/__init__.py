"""Flags of the engines: what each version takes, what a launch command asks for, and what of it cannot be.

Pure of processes: help texts and source folders are handed in (`assay.api.doctor` finds them).
"""

from assay.flags.check import check
from assay.flags.command import parse
from assay.flags.history import History, history
from assay.flags.knowledge import Knowledge, from_help, from_history, of_named_version

__all__ = ["History", "Knowledge", "check", "from_help", "from_history", "history", "of_named_version", "parse"]
