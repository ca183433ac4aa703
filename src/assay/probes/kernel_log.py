"""Errors that the NVIDIA driver left in the kernel's log, where that may be read without being root."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable

from assay.probes.files import Files
from assay.probes.pci import sysfs_name
from assay.records.snapshot import Xid

_LOGS = ("var/log/kern.log", "var/log/syslog", "var/log/messages")
_TAIL_BYTES = 1 << 20
_MAX_LINES = 100_000
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")


def xids(files: Files) -> list[Xid] | None:
    """Errors by code and GPU; None when no log can be read."""
    text = _ring(files)
    if text is None:
        text = next((tail for name in _LOGS if (tail := _tail(files, name)) is not None), None)
    return None if text is None else parse_xids(text.splitlines())


def parse_xids(lines: Iterable[str]) -> list[Xid]:
    """Find `NVRM: Xid (PCI:0000:c1:00): 79, ...`."""
    counts = Counter((int(match[2]), sysfs_name(match[1])) for line in lines if (match := _XID.search(line)))
    return [Xid(code=code, bus_id=bus_id, count=count) for (code, bus_id), count in sorted(counts.items())]


def _ring(files: Files) -> str | None:
    """The kernel's own buffer: every read gives one message, and none at the end would block."""
    try:
        log = os.open(files.root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    messages: list[bytes] = []
    try:
        while len(messages) < _MAX_LINES and (message := os.read(log, 8192)):
            messages.append(message)
    except OSError:  # the end (EAGAIN), or messages were overwritten while we read (EPIPE)
        pass
    finally:
        os.close(log)
    return b"\n".join(messages).decode(errors="replace") if messages else None


def _tail(files: Files, name: str) -> str | None:
    try:
        with (files.root / name).open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL_BYTES))
            return log.read().decode(errors="replace")
    except OSError:
        return None
