"""A model in a folder (config.json and weight files), found and described; hub names are looked up in the local cache.

Nothing is downloaded: a launch that fetches hundreds of gigabytes is no run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from assay.engines.cache import file_stamp, remember, remembered
from assay.errors import UsageError
from assay.models import load
from assay.models.paths import user_path
from assay.records.machine import ModelFacts
from assay.records.model_shape import ModelShape

WHOLE_BYTES = 64 << 20
"""Files up to this size are hashed whole."""
PIECE_BYTES = 1 << 20
PIECES = 64
"""Of a larger file so many pieces are hashed, spread evenly, the first and the last among them. Reading 400 GB of
weights takes longer than a campaign's runs; a training step, a conversion or a cut changes every one of these."""


def find_model(name: str) -> Path:
    """The folder of a model: as given, or of the hub name in the local cache.

    Raises:
        UsageError: it is not on this machine.
    """
    path = user_path(name)
    if path.is_dir() and (path / "config.json").is_file():
        return path.resolve()
    if path.exists():
        raise UsageError(f"{path} is no model folder: it has no config.json", hint="give the folder of the model")
    cached = _in_cache(name)
    if cached is None:
        folder = "give a folder with config.json and its weights"
        if path.is_absolute():
            raise UsageError(f"there is no model folder {name}", hint=folder)
        raise UsageError(
            f"there is no model folder {name}, and no model of that name in {_hub()}",
            hint=f"fetch it first (`hf download {name}`), or {folder}",
        )
    return cached


def read_facts(folder: Path) -> ModelFacts:
    """What a model folder says of itself.

    Raises:
        UsageError: its config.json cannot be read.
    """
    config = _config(folder)
    files = _files(folder)
    common: dict[str, Any] = {
        "path": str(folder),
        "sha256": folder_sha256(folder),
        "size_bytes": sum(file.stat().st_size for file in files),
        "name": folder.name,
    }
    try:
        shape = load(str(folder))
    except UsageError:  # an architecture that estimates do not know: it can be measured all the same
        return ModelFacts(**common, **_by_config(config))
    return ModelFacts(
        **common,
        architecture=shape.architecture,
        quantization=main_storage(shape),
        num_layers=shape.num_layers,
        context_length=shape.max_positions,
        num_experts=shape.num_experts or None,
    )


def main_storage(shape: ModelShape) -> str:
    """The format that most of the weights' bytes are stored in."""
    total: Counter[str] = Counter()
    for count, matrix in shape.matrices():
        total[matrix.storage.name] += round(count * matrix.weight_bytes)
    return total.most_common(1)[0][0]


def folder_sha256(folder: Path) -> str:
    """SHA-256 over every file's name, size and content: up to 64 MiB whole, of a larger one 64 pieces of 1 MiB."""
    digest = hashlib.sha256()
    for file in _files(folder):
        digest.update(f"{file.relative_to(folder)}\0{file.stat().st_size}\0{_file_sha256(file)}\n".encode())
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    """Those of the model itself: hidden ones are of tools that fetched it."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )


def _file_sha256(path: Path) -> str:
    stamp = f"{file_stamp(path)} pieces {PIECES}"
    if isinstance(known := remembered("hashes.json", stamp), str):
        return known
    size_bytes = path.stat().st_size
    digest = hashlib.sha256()
    with path.open("rb") as source:
        if size_bytes <= WHOLE_BYTES:
            return hashlib.file_digest(source, "sha256").hexdigest()
        for number in range(PIECES):
            source.seek((size_bytes - PIECE_BYTES) * number // (PIECES - 1))
            digest.update(source.read(PIECE_BYTES))
    remember("hashes.json", stamp, digest.hexdigest())
    return digest.hexdigest()


def _config(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder / 'config.json'} cannot be read: {error}", hint="fetch the model again") from error
    return content if isinstance(content, dict) else {}


def _by_config(config: dict[str, Any]) -> dict[str, Any]:
    """The few facts that most configurations name alike."""
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    named = config.get("architectures")
    quantization = config.get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, dict) else None
    return {
        "architecture": str(named[0] if isinstance(named, list) and named else config.get("model_type", "unknown")),
        "quantization": str(method or config.get("torch_dtype") or config.get("dtype") or "unknown"),
        "num_layers": _whole(text, "num_hidden_layers", "n_layer"),
        "context_length": _whole(text, "max_position_embeddings", "n_positions"),
        "num_experts": _whole(text, "num_experts", "n_routed_experts", "num_local_experts"),
    }


def _whole(config: dict[str, Any] | None, *names: str) -> int | None:
    values = [(config or {}).get(name) for name in names]
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)


def _hub() -> Path:
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache)
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface") / "hub"


def _in_cache(name: str) -> Path | None:
    """The snapshot that `main` points to."""
    if name.count("/") != 1 or name.startswith((".", "/")):
        return None
    home = _hub() / f"models--{name.replace('/', '--')}"
    try:
        revision = (home / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    snapshot = home / "snapshots" / revision
    return snapshot if (snapshot / "config.json").is_file() else None
