"""Recorded options of a configuration file that an engine reads over its flags: TensorRT-LLM's YAML.

Sources: tests/unittest/api_stability/references/llm.yaml of NVIDIA/TensorRT-LLM 1.0.0rc4 and 1.1.0rc6 (the options at
the top), tensorrt_llm/llmapi/llm_args.py between 1.2 and 1.3 (these, and the sections that say something of speed), and
the reference of KvCacheConfig and TorchLlmArgs of 1.4.0rc4. Another version may know more, or fewer.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from assay.flags import versions
from assay.flags.history import DATA
from assay.flags.spec import FlagSpec, read_spec

PREFIX = "config."
"""What an option's name may begin with where it is written as a flag (`--config.kv_cache_config.dtype`)."""
CHECKED = ("1.0.0rc4", "1.1.0rc6", "1.2+00209af")
"""Versions whose options were read, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One entry of the file."""

    spec: FlagSpec
    first: str = ""
    """First checked version that has it; empty: older ones were not read for it."""
    last: str = ""
    """Last checked one; empty: the newest has it."""

    def is_in(self, version: str) -> bool | None:
        """Whether a version has it; None where that is not known: it is older than what was read."""
        stand = versions.standing_for(version, CHECKED)
        if stand is None:
            return None
        after = not self.first or versions.key(stand) >= versions.key(self.first)
        return after and (not self.last or versions.key(stand) <= versions.key(self.last))


def path_of(name: str) -> str:
    """The option that a dotted flag stands for: `--config.kv_cache_config.dtype` is `kv_cache_config.dtype`."""
    return name.lstrip("-").removeprefix(PREFIX)


def near(engine: str, name: str) -> str | None:
    """The recorded option of the same section that was probably meant."""
    section, _, _ = name.rpartition(".")
    close = difflib.get_close_matches(name, _inside(engine, section), n=1, cutoff=0.8)
    return close[0] if close else None


def option_of(engine: str, flag: str, version: str) -> str | None:
    """The option that somebody wrote as a flag: `--kv_cache_dtype` is `kv_cache_config.dtype`; None: no one is."""
    wanted = path_of(flag).replace("-", "_")
    here = [name for name, option in options(engine).items() if option.is_in(version) is not False]
    whole = [name for name in here if name == wanted or name.replace("_config.", "_") == wanted]
    inside = [name for name in here if "." in name and name.rpartition(".")[2] == wanted]
    found = [name for name in whole if "." in name] or whole or inside
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=64)
def _inside(engine: str, section: str) -> tuple[str, ...]:
    return tuple(one for one in options(engine) if one.rpartition(".")[0] == section)


@lru_cache(maxsize=4)
def options(engine: str) -> Mapping[str, Option]:
    """By dotted name; empty for an engine that has no such file."""
    path = DATA / f"{engine}_options.tsv"
    if not path.exists():
        return {}
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:])
    return {
        name: Option(spec=_spec(name, kind, choices), first=first, last=last)
        for name, kind, choices, _, first, last in rows
    }


def _spec(name: str, kind: str, choices: str) -> FlagSpec:
    """A value that is true or false is written out in the file, so both are values of it."""
    given = ["true", "false"] if kind == "bool" else choices.split(",") if choices else []
    return read_spec(name, {"kind": "str" if kind == "bool" else kind, "choices": given})
