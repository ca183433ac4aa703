"""Options of TensorRT-LLM that no flag has: they go into a YAML file, which `trtllm-serve` reads over its flags.

In assay.toml and in the catalogue they are written as flags with a dotted name, after `--config.` where there is no
other dot:

    "--config.enable_attention_dp" = true
    "--kv_cache_config.free_gpu_memory_fraction" = 0.85      # the same as --config.kv_cache_config.free_...

A text that is JSON (`[1, 2, 4]`, `{...}`) becomes what it says. Which options there are, only the engine knows: a wrong
one fails at launch, with its line.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from assay.engines.cache import cache_folder
from assay.errors import RecordError, UsageError
from assay.records.base import Flags, FlagValue

PREFIX = "config."
FILE_NAME = "llm_options.yaml"
"""Of the copy in the run's folder."""


def is_option(name: str) -> bool:
    """Whether a flag of assay.toml is an entry of the YAML file."""
    return "." in name


def tree(flags: Flags) -> dict[str, Any]:
    """The options as the file nests them.

    Raises:
        UsageError: one is given twice, or as a value and as a section.
    """
    found: dict[str, Any] = {}
    for name, value in flags.items():
        if is_option(name):
            _put(found, path_of(name), _parsed(value), name)
    return found


def path_of(name: str) -> list[str]:
    """`--config.kv_cache_config.dtype` as ["kv_cache_config", "dtype"]."""
    return name.lstrip("-").removeprefix(PREFIX).split(".")


def write(options: Mapping[str, Any]) -> Path:
    """The options as a file, named after its content and therefore written once.

    Raises:
        RecordError: it cannot be written.
    """
    text = yaml.safe_dump(dict(options), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        path = cache_folder() / f"trtllm-{digest}.yaml"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
                made = Path(scratch) / path.name
                made.write_text(text, encoding="utf-8")
                made.replace(path)
    except OSError as error:
        raise RecordError(f"the options of trtllm-serve cannot be written: {error}", hint="free disk space") from error
    return path


def keep_copy(path: Path, folder: Path) -> None:
    """The file as it was used, in the run's folder; a copy that cannot be written is no error."""
    try:
        (folder / FILE_NAME).write_bytes(path.read_bytes())
    except OSError:
        return


def _put(tree_: dict[str, Any], path: list[str], value: Any, name: str) -> None:
    if not all(path):
        raise UsageError(f"{name} names no option", hint="for example --config.kv_cache_config.dtype")
    *sections, last = path
    for section in sections:
        inner = tree_.setdefault(section, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{name}: {section} has a value already", hint="give it once, whole or key by key")
        tree_ = inner
    if last in tree_:
        raise UsageError(f"{name} is given twice", hint="--config.a.b and --a.b are one option: keep one")
    tree_[last] = value


def _parsed(value: FlagValue) -> Any:
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
