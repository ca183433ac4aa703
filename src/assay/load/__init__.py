"""Workloads and the streaming client: a load plan in, per-request samples out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.ports import LoadGenerator


def create() -> LoadGenerator:
    """The load generator of this machine: one process, closed-loop streams over loopback."""
    from assay.load.runner import Generator  # noqa: PLC0415 - `import assay.load` stays free of asyncio

    return Generator()
