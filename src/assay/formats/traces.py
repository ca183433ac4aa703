"""Profilers' traces of an engine, read for where a device's time went.

Read are torch-profiler's Chrome traces (JSON, also gzipped: `export_chrome_trace`, `tensorboard_trace_handler`, what
vLLM and SGLang write between /start_profile and /stop_profile) and `nsys export --type sqlite`.
"""

from __future__ import annotations

from pathlib import Path

from assay.errors import UsageError
from assay.formats.nsys_trace import read_nsys
from assay.formats.torch_trace import read_torch
from assay.records.attribution import TraceFacts

SQLITE = b"SQLite format 3\x00"
GZIP = b"\x1f\x8b"
HINT = "read are torch-profiler's JSON (or .json.gz) and what `nsys export --type sqlite` writes"


def read_trace(path: Path) -> TraceFacts:
    """Where the time of a trace's devices went; the format is told by the first bytes.

    Raises:
        UsageError: it cannot be read, is no such trace, is damaged or too large, or holds no device activity.
    """
    try:
        with path.open("rb") as source:
            head = source.read(len(SQLITE))
    except OSError as error:
        raise UsageError(f"{path}: cannot read it: {error.strerror}", hint="name a trace file") from error
    if head == SQLITE:
        return read_nsys(path)
    if head[:2] == GZIP or head.lstrip()[:1] in (b"{", b"["):
        return read_torch(path, gzipped=head[:2] == GZIP)
    begins = f"it begins with {head[:8]!r}" if head else "it is empty"
    raise UsageError(f"{path}: this is no trace that is read; {begins}", hint=_hint(path))


def _hint(path: Path) -> str:
    if path.suffix in {".nsys-rep", ".qdrep"}:
        return f"export it first: nsys export --type sqlite {path}"
    return HINT
