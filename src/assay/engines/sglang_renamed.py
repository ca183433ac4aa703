"""What SGLang turns a deprecated flag into, by the recorded histories: `--cuda-graph-bs` became the field of another.

It stores such a value under the new flag's field, so the old one is in force where the new one is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from assay.flags.history import History
from assay.flags.spec import FlagSpec
from assay.records.base import FlagValue

WORD = re.compile(r"(--[\w-]*?)(?:\{([\w,]+)\}([\w-]*))?(?:[= ](\S+))?")
"""`--moe-runner-backend triton_kernel`, `--graph-backend-{decode,prefill}=disabled`, `--attn-dp-size <dp-size>`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """One flag that stands in place of another; `value` None: what it is given cannot be told."""

    name: str
    value: FlagValue | None


def is_translated(spec: FlagSpec | None) -> bool:
    """Whether the version still takes it, under protest, and makes another flag of it."""
    return spec is not None and spec.deprecated and bool(spec.new) and not spec.dead and not spec.removed


def meant(name: str, value: FlagValue, version: str, past: History) -> list[Meant]:
    """The flags that act in place of a deprecated one; empty where it acts by itself, or that is not recorded."""
    spec = past.takes(name, version)
    if spec is None or not is_translated(spec):
        return []
    return list(_meant(spec.new or "", value, version, past))


def _meant(word: str, value: FlagValue, version: str, past: History) -> Iterator[Meant]:
    found = WORD.fullmatch(word)
    if found is None:
        return
    before, several, behind, given = found.groups()
    for part in (several or "").split(","):
        name = before + part + (behind or "")
        new = past.takes(name, version)
        if given is not None:
            yield Meant(name=name, value=None if given.startswith("<") else given)
        elif new is not None and (value is True) == new.is_switch:
            yield Meant(name=name, value=value)
        else:  # a switch that became a value of its own kind
            yield Meant(name=name, value=None)
