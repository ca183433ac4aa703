"""Words that the rules share: findings by severity, sizes, and which GPUs are meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from assay.probes.topology import list_of
from assay.records.gpu import Gpu
from assay.records.machine import Finding
from assay.units import GIB_BYTES, MIB_BYTES


def blocker(title: str, evidence: str, remedy: str) -> Finding:
    """Nothing can be measured here until this is mended."""
    return Finding(severity="blocker", title=title, evidence=evidence, remedy=remedy)


def warning(title: str, evidence: str, remedy: str) -> Finding:
    """Numbers will be wrong, or worse than they could be."""
    return Finding(severity="warning", title=title, evidence=evidence, remedy=remedy)


def note(title: str, evidence: str, remedy: str) -> Finding:
    """Worth knowing when numbers are read."""
    return Finding(severity="note", title=title, evidence=evidence, remedy=remedy)


def size(size_bytes: float) -> str:
    """Binary: MiB below 10 GiB, GiB from there on."""
    few = size_bytes < 10 * GIB_BYTES
    return f"{size_bytes / MIB_BYTES:.0f} MiB" if few else f"{size_bytes / GIB_BYTES:.0f} GiB"


def each(gpus: Iterable[Gpu], value: Callable[[Gpu], str]) -> str:
    """What is to be said of some GPUs, those with the same words together: `GPU 0-3: x8 of x16; GPU 7: x4 of x16`."""
    by_words: dict[str, list[int]] = {}
    for gpu in gpus:
        by_words.setdefault(value(gpu), []).append(gpu.index)
    return grouped(by_words)


def grouped(by_words: Mapping[str, list[int]]) -> str:
    """The same, from words to indices."""
    return "; ".join(f"GPU {list_of(indices)}: {words}" for words, indices in by_words.items())
