"""Whether what a server reports is what a flag asked for, however each of them spells it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from assay.records import sizes


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one engine writes values."""

    engine: str
    """By whose rules `2k` is read."""
    alike: Collection[Collection[str]]
    """Spellings that mean one value: `{"half", "float16"}`."""

    def same(self, reported: Any, asked: Any) -> bool:
        """Whether the two are one value."""
        one, other = self.plain(reported), self.plain(asked)
        if one == other or any(one in spellings and other in spellings for spellings in self.alike):
            return True
        try:
            return float(one) == float(other)
        except ValueError:
            return False

    def plain(self, value: Any) -> str:
        """In small letters, without the module of a torch type; a size as its number."""
        text = str(value).removeprefix("torch.")
        size = sizes.whole(text, self.engine)
        return text.lower() if size is None else str(size)
