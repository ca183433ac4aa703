"""Environment variables that a version's source names, and the table of the versions that do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.flag_histories.consumers import LEFT_OUT

NAMES = {
    "sglang": re.compile(r"\b((?:SGLANG|SGL)_[A-Z0-9_]*[A-Z0-9])\b"),
    "vllm": re.compile(r"\b(VLLM_[A-Z0-9_]*[A-Z0-9])\b"),
}


def names_in(engine: str, root: Path) -> set[str]:
    """Every name that stands in some file of the package."""
    found: set[str] = set()
    for path in root.rglob("*.py"):
        if not LEFT_OUT.search(str(path).replace("/lang/", "/")):
            found |= set(NAMES[engine].findall(path.read_text(encoding="utf-8", errors="replace")))
    return found


def with_version(table: str, versions: Sequence[str], version: str, names: set[str]) -> str:
    """The table (`NAME<tab>first..last first..last`) with what a version names."""
    head, *lines = table.splitlines()
    there = {name: _held(runs, [each for each in versions if each != version]) for name, runs in _rows(lines)}
    rows = []
    for name in sorted({*there, *names}):
        held = there.get(name, set()) - {version} | ({version} if name in names else set())
        if held:
            rows.append(f"{name}\t{' '.join(_runs(held, versions))}")
    return "\n".join([head, *rows]) + "\n"


def _rows(lines: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, runs) for name, _, runs in (line.partition("\t") for line in lines if line)]


def _held(runs: str, versions: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for run in runs.split():
        first, _, last = run.partition("..")
        known = [each for each in versions if each in {first, last or first}]
        if known:
            found |= set(versions[versions.index(known[0]) : versions.index(known[-1]) + 1])
    return found


def _runs(held: set[str], versions: Sequence[str]) -> list[str]:
    runs: list[list[str]] = []
    for number, version in enumerate(versions):
        if version not in held:
            continue
        if runs and number and runs[-1][1] == versions[number - 1]:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return [first if first == last else f"{first}..{last}" for first, last in runs]
