"""Recorded options of a configuration file that an engine reads over its flags: TensorRT-LLM's YAML.

Source: tensorrt_llm/llmapi/llm_args.py of NVIDIA/TensorRT-LLM between 1.2 and 1.3 (PyTorch backend): those that say
something of speed. Another version may know more, or fewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from assay.flags.history import DATA
from assay.flags.spec import FlagSpec, read_spec

PREFIX = "config."
"""What an option's name may begin with where it is written as a flag (`--config.kv_cache_config.dtype`)."""


def option_of(engine: str, name: str) -> FlagSpec | None:
    """What an option takes; None for one that is not recorded."""
    return options(engine).get(name.lstrip("-").removeprefix(PREFIX))


@lru_cache(maxsize=4)
def options(engine: str) -> Mapping[str, FlagSpec]:
    """By dotted name; empty for an engine that has no such file."""
    path = DATA / f"{engine}_options.tsv"
    if not path.exists():
        return {}
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:])
    return {name: _spec(name, kind, choices) for name, kind, choices, _ in rows}


def _spec(name: str, kind: str, choices: str) -> FlagSpec:
    """A value that is true or false is written out in the file, so both are values of it."""
    given = ["true", "false"] if kind == "bool" else choices.split(",") if choices else []
    return read_spec(name, {"kind": "str" if kind == "bool" else kind, "choices": given})
