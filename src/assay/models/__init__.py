"""Files and names to model shapes: config.json, safetensors headers, GGUF.

>>> from assay.models import load
>>> round(load("llama-3.1-8b").parameters / 1e9, 2)
8.03
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from assay.errors import UsageError
from assay.models import library
from assay.models.config import printable
from assay.models.config_shape import read_config
from assay.models.gguf_shape import SPLIT, read_gguf
from assay.models.paths import user_path
from assay.records.model_shape import ModelShape

__all__ = ["known", "load"]


def known() -> list[str]:
    """Names and aliases of the models that Assay brings the numbers of."""
    return sorted(library.names())


def load(name_or_path: str) -> ModelShape:
    """The shape of a model.

    Args:
        name_or_path: a folder with config.json (and perhaps weight files) or one GGUF, a config.json, a GGUF file, or
            a name that `known` lists. What is a path and exists is read as one.

    Raises:
        UsageError: there is no such file or name, it is damaged, or it does not say what cannot be assumed.
    """
    path: Path | str = name_or_path
    try:
        path = user_path(name_or_path)
        return _load(name_or_path, path)
    except UsageError as error:
        raise UsageError(printable(error.message), hint=printable(error.hint or "")) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(word) for word in first["loc"])
        raise UsageError(
            printable(f"{path} describes no model that can be: {place}: {first['msg']}"),
            hint="check the sizes in the file",
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(
            printable(f"{path} cannot be read: {error}"), hint="check the path and its permissions"
        ) from error


def _load(name: str, path: Path) -> ModelShape:
    if path.is_dir():
        return _folder(path)
    if path.suffix.lower() == ".gguf":
        return read_gguf(path)
    if path.exists():
        return read_config(path)
    found = library.find(name)
    return read_config(found, name=found.stem)


def _folder(path: Path) -> ModelShape:
    if (path / "config.json").is_file():
        return read_config(path / "config.json")
    files = sorted(path.glob("*.gguf"))
    firsts = [file for file in files if not (match := SPLIT.match(file.name)) or int(match[2]) == 1]
    if len(firsts) == 1:
        return read_gguf(firsts[0])
    if firsts:
        raise UsageError(
            f"{path} holds {len(firsts)} models: {', '.join(file.name for file in firsts[:5])}", hint="name one of them"
        )
    raise UsageError(f"{path} holds neither config.json nor a GGUF file", hint="name the folder of a model")
