"""What is asked: made here, or read from a file; request n of a seed is always the same.

Every load process builds its own source from the same specification and takes every n-th session, so nothing but the
specification is sent to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from assay.errors import UsageError
from assay.load.workloads import conversations, csv_traces, jsonl, mooncake, sharegpt
from assay.load.workloads.prompts import Prompts
from assay.load.workloads.synthetic import SyntheticSource
from assay.records.bench import Dataset, Synthetic
from assay.records.load import Session


class Source(Protocol):
    """The sessions of a workload, in the order in which they are to be sent."""

    @property
    def num_sessions(self) -> int | None:
        """None: endless."""
        ...

    @property
    def instants_s(self) -> Sequence[float] | None:
        """Of every session, ascending from 0: what trace arrival replays. None: the workload has none."""
        ...

    @property
    def file_sha256(self) -> str | None:
        """Of the file that was read; None: there is none."""
        ...

    @property
    def skipped(self) -> Mapping[str, int]:
        """How many of the file's requests were left out, by reason."""
        ...

    def session(self, index: int) -> Session:
        """Session number `index`, a pure function of (workload, seed, index).

        Raises:
            IndexError: past the end.
        """
        ...


READERS: Mapping[str, Callable[[Dataset, int, Prompts], Source]] = {
    "sharegpt": sharegpt.read,
    "mooncake": mooncake.read,
    "burstgpt": csv_traces.read,
    "azure": csv_traces.read,
    "jsonl": jsonl.read,
    "conversations": conversations.read,
}


def build(workload: Synthetic | Dataset, seed: int, prompts: Prompts) -> Source:
    """The sessions of a workload; a file is read here, once.

    Raises:
        UsageError: the file cannot be read, is malformed or empty, or is not the one that the record names.
    """
    if isinstance(workload, Synthetic):
        return SyntheticSource(workload, seed, prompts)
    source = READERS[workload.kind](workload, seed, prompts)
    if workload.sha256 and workload.sha256 != source.file_sha256:
        raise UsageError(
            f"{workload.path} has changed: its SHA-256 is {source.file_sha256}, and was {workload.sha256}",
            hint="use the file that was measured before, or start anew",
        )
    return source
