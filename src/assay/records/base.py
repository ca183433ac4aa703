"""The base of every persisted type, and the values an engine flag can take."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

FlagValue = bool | int | float | str
"""The value of an engine flag: True for a bare switch, False for its absence."""

Flags = dict[str, FlagValue]
"""Engine flags, spelled as the engine spells them (`--ctx-size`), with their values."""


class Frozen(BaseModel):
    """A record: immutable, and closed to fields that it does not declare."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
