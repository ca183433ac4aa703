"""Inference servers on this machine that we did not start."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath

import psutil

_PROGRAMS = {"llama-server", "vllm", "trtllm-serve", "ollama", "text-generation-launcher"}
_MODULES = {"sglang.launch_server", "vllm.entrypoints.openai.api_server", "llama_cpp.server"}
_OWN_PREFIX = "assay.engines."
"""Assay's embedded engine, started by another campaign."""


def foreign_servers() -> list[tuple[int, str]]:
    """Id and program of every one, without command lines: those may hold keys."""
    own = psutil.Process()
    ours = {own.pid, *(child.pid for child in own.children(recursive=True)), *(parent.pid for parent in own.parents())}
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        program = program_of(process.info["cmdline"] or [])
        if program and process.pid not in ours:
            found.append((process.pid, program))
    return found


def program_of(argv: Sequence[str]) -> str | None:
    """Which inference server a command line starts; None when it starts none.

    Looked for: the program itself, or a script or module right after an interpreter; an argument that merely names a
    server (`less llama-server.log`, `pip install vllm`) does not count.
    """
    names = [PurePath(argument).name for argument in argv[:2]]
    if names and names[0] in _PROGRAMS:
        return names[0]
    if not names or not names[0].startswith("python"):
        return None
    if len(names) > 1 and names[1] in _PROGRAMS:
        return names[1]
    module = next((after for before, after in pairwise(argv) if before == "-m"), "")
    return module if module in _MODULES or module.startswith(_OWN_PREFIX) else None
