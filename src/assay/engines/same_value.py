"""Whether what a server reports is what a flag asked for, however each of them spells it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one engine writes values."""

    factors: Mapping[str, int]
    """Suffixes of sizes, as `{"k": 1000}` where `2k` is 2,000."""
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
        suffixes = "|".join(sorted(self.factors, key=len, reverse=True))
        if size := re.fullmatch(rf"(\d+(?:\.\d+)?)({suffixes})", text):
            return str(int(float(size[1]) * self.factors[size[2]]))
        return text.lower()
