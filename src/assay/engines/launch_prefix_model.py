"""A model that is on another machine: known by what it is called there."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path, PurePath

from assay.engines.folder_facts import read_facts
from assay.engines.launch_prefix import ask
from assay.errors import UsageError
from assay.records.machine import ModelFacts
from assay.records.spec import Target

PYTHON = "python3"
READ = """
import hashlib, json, os, sys
folder = os.path.expanduser(sys.argv[1])
config = os.path.join(folder, "config.json")
if not os.path.isfile(config):
    sys.exit("no config.json in " + folder)
files = sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if not name.startswith("."))
digest = hashlib.sha256()
for path in files:
    size = os.path.getsize(path)
    digest.update(("%s %d\\n" % (os.path.relpath(path, folder), size)).encode())
    with open(path, "rb") as source:
        digest.update(source.read(1 << 20))
        source.seek(max(0, size - (1 << 20)))
        digest.update(source.read(1 << 20))
told = json.load(open(config))
print(json.dumps([os.path.abspath(folder), digest.hexdigest(), sum(map(os.path.getsize, files)), told]))
"""
"""Every file's name and size, its first and last MiB, and the configuration."""
TIMEOUT_S = 300.0
QUOTED_CHARACTERS = 300


def facts_elsewhere(target: Target) -> ModelFacts | None:
    """What a folder on another machine says of itself; None where the model is on this one.

    Raises:
        UsageError: there is no such folder over there.
    """
    if target.launch is None or target.launch.host is None:
        return None
    said = ask(target.launch, [PYTHON, "-c", READ, target.model], timeout_s=TIMEOUT_S)
    try:
        path, sha256, size_bytes, config = json.loads(said.output.strip().splitlines()[-1])
    except (ValueError, IndexError, TypeError) as error:
        raise UsageError(
            f"{target.model} is no model folder on {target.launch.host}: {said.output.strip()[-QUOTED_CHARACTERS:]}",
            hint="give the folder over there that holds config.json and the weights",
        ) from error
    with tempfile.TemporaryDirectory(prefix="assay-model-") as scratch:
        (Path(scratch) / "config.json").write_text(json.dumps(config), encoding="utf-8")
        facts = read_facts(Path(scratch))
    there = {"path": path, "sha256": sha256, "size_bytes": size_bytes, "name": PurePath(path).name}
    return facts.model_copy(update=there)
