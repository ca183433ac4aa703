"""How an engine is started, and how its command line reads words: facts, from `data/flags/engines.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache

from pydantic import Field

from assay.flags.history import DATA
from assay.records.base import Frozen
from assay.records.doctor import EngineName


class Dialect(Frozen):
    """What one engine is called, and how it reads its command line."""

    engine: EngineName
    title: str
    package: str
    """The Python distribution that brings it; empty for a program."""
    modules: list[str] = Field(default_factory=list)
    """Of `python -m`."""
    programs: dict[str, list[str]] = Field(default_factory=dict)
    """Programs and modules of `python -m`, with subcommands that serve: [] when it has none, "" if it needs none."""
    images: list[str] = Field(default_factory=list)
    """Container images, without registry and tag, that hold it."""
    entrypoints: list[str] = Field(default_factory=list)
    """Those of them that start it by themselves."""
    variables: list[str] = Field(default_factory=list)
    """Prefixes of its environment variables."""
    underscores: bool = False
    """Reads `--a_b` as `--a-b`."""
    abbreviations: bool = False
    """Takes a beginning of a flag that fits only one (Python's argparse)."""
    dotted: bool = False
    """Takes `--flag.key value` for a flag with a JSON value."""
    pairs_until: str = ""
    """Last checked version that reads `a=1,b=2` where it takes JSON; empty: none does."""
    positional_model: bool = False
    """The model may stand without a flag."""
    shorthands: dict[str, str] = Field(default_factory=dict)
    """What is spelled glued to its value, as -O3, and the flag it stands for."""
    config: list[str] = Field(default_factory=list)
    """Flags that name a file whose entries are recorded (`assay.flags.options`)."""
    model: list[str] = Field(default_factory=list)
    tp: list[str] = Field(default_factory=list)
    pp: list[str] = Field(default_factory=list)
    dp: list[str] = Field(default_factory=list)
    """Flags that name the model, and the sizes of tensor, pipeline and data parallelism."""


@lru_cache(maxsize=1)
def dialects() -> Mapping[str, Dialect]:
    """Every engine that is known, by name."""
    tables = tomllib.loads((DATA / "engines.toml").read_text(encoding="utf-8"))
    return {name: Dialect.model_validate({"engine": name, **table}) for name, table in tables.items()}
