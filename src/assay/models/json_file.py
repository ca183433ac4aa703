"""Small JSON files that strangers wrote: what is wrong with them is an error of use, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.errors import UsageError

LARGEST_BYTES = 256 * 2**20
"""The index of a model with 100,000 tensors has about 10 MB."""


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        UsageError: it cannot be read, is too large, or holds something else.
    """
    try:
        if not path.is_file():
            raise UsageError(f"{path} is not a file", hint="name a model's folder, its config.json, or a GGUF file")
        if (size_bytes := path.stat().st_size) > LARGEST_BYTES:
            raise UsageError(f"{path} has {size_bytes} bytes: too much for a configuration", hint="name another file")
        return parsed_object(path.read_bytes(), str(path))
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="check the path and its permissions") from error


def parsed_object(content: bytes, file: str) -> dict[str, Any]:
    """As `read_object`, from bytes."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError, MemoryError) as error:
        told = "objects inside objects without end" if isinstance(error, RecursionError) else str(error)[:200]
        raise UsageError(f"{file} is no JSON: {told}", hint="was it cut short? fetch the file again") from error
    if not isinstance(value, dict):
        raise UsageError(f"{file} holds no JSON object", hint="name a model's config.json")
    return value
