"""Inference servers on this machine that we did not start: found by what runs and by who listens; never touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import PurePath

import psutil

from assay.probes.listening import Listener, listeners
from assay.probes.server_dialects import identify
from assay.records.snapshot import Server

_PROGRAMS = {"llama-server", "vllm", "trtllm-serve", "ollama", "text-generation-launcher"}
_MODULES = {"sglang.launch_server", "vllm.entrypoints.openai.api_server", "llama_cpp.server"}
_OWN_PREFIX = "assay.engines."
"""Assay's embedded engine, started by another campaign."""
_THREADS = 16
_MOST_ASKED = 64
"""A machine with more listening ports than this is not asked through: its busiest ones by number come first."""


def servers() -> list[Server]:
    """Every one: those that listen are asked what they are, those known by their program alone are listed with it."""
    programs = dict(foreign_servers())
    asked = [listener for listener in listeners(own_processes()) if _worth_asking(listener, programs)][:_MOST_ASKED]
    with ThreadPoolExecutor(_THREADS) as pool:
        answers = list(pool.map(lambda listener: identify(listener, programs.get(listener.pid or -1)), asked))
    found = [answer for answer in answers if answer]
    told = {server.pid for server in found}
    silent = [Server(pid=pid, program=program) for pid, program in programs.items() if pid not in told]
    return [*found, *silent]


def foreign_servers() -> list[tuple[int, str]]:
    """Id and program of every process that serves, without command lines: those may hold keys."""
    ours = own_processes()
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        program = program_of(process.info["cmdline"] or [])
        if program and process.pid not in ours:
            found.append((process.pid, program))
    return found


def own_processes() -> set[int]:
    """This process, what it started, and what started it."""
    own = psutil.Process()
    return {own.pid, *(child.pid for child in own.children(recursive=True)), *(parent.pid for parent in own.parents())}


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


def _worth_asking(listener: Listener, programs: Mapping[int, str]) -> bool:
    return listener.pid in programs or not listener.is_other_protocol
