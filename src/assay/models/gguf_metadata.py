"""Metadata of a GGUF under its architecture's name, typed, with values that differ from layer to layer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from assay.errors import UsageError
from assay.models.config import LARGEST, shortly


@dataclass(frozen=True, slots=True)
class Metadata:
    """Keys without the architecture's prefix: `attention.head_count`."""

    values: dict[str, Any]
    architecture: str
    file: str
    assumed: list[str] = field(default_factory=list)

    def whole(self, key: str, layer: int | None = None) -> int | None:
        """A whole number, of a layer when the value is a list; None when it is missing.

        Raises:
            UsageError: it is something else.
        """
        value = self.values.get(f"{self.architecture}.{key}")
        if isinstance(value, list):
            value = value[layer] if layer is not None and layer < len(value) else None
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise UsageError(
                f"{self.file}: {self.architecture}.{key}: want a whole number, found {shortly(value)}",
                hint="convert the model again",
            )
        return value

    def flags(self, key: str) -> list[bool] | None:
        """A list of yes and no; None when it is missing or something else."""
        value = self.values.get(f"{self.architecture}.{key}")
        return [bool(item) for item in value] if isinstance(value, list) else None

    def need(self, key: str) -> int:
        """As `whole`, for what cannot be assumed."""
        value = self.whole(key)
        if not value:
            raise UsageError(
                f"{self.file} has no {self.architecture}.{key}, and it cannot be assumed",
                hint="convert the model again",
            )
        return value

    def assume(self, sentence: str) -> None:
        """Write down, once, what the file did not say."""
        if sentence not in self.assumed:
            self.assumed.append(sentence)
