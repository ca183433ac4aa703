"""An engine on this machine, asked for its version, its help, and where its source is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import EngineError

if TYPE_CHECKING:
    from assay.flags.knowledge import Knowledge
    from assay.flags.spec import FlagSpec
    from assay.flags.words import Found
    from assay.records.doctor import Evidence

_HELP_TIMEOUT_S = 180.0
"""Importing an engine's Python takes tens of seconds on a cold disk."""
_ASK_TIMEOUT_S = 30.0
_ABOUT = (
    "import importlib.metadata as m, importlib.util as u, json, sys; n = sys.argv[1]; s = u.find_spec(n);"
    "print(json.dumps([m.version(n), list(s.submodule_search_locations or []) if s else []]))"
)
"""Version and folder of a package, without importing it."""
_READING = 1
"""Raised whenever help or source is read differently: what an older Assay remembered is then not used."""
_CACHE = "engine-flags.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What was found."""

    version: str
    specs: list[FlagSpec]
    """Empty when its help cannot be read."""
    package: Path | None = None
    """The folder of its source."""
    stamp: str = ""
    problem: str = ""
    """Why its help cannot be read."""


def ask(found: Found) -> Installed | None:
    """Ask the program that the command names; None when it is not on this machine."""
    program = shutil.which(found.program[0]) if found.program else None
    if program is None:
        return None
    if not found.dialect.package:
        return _program(found, program)
    about = _about(_python_of(program), found.dialect.package)
    if about is None:
        return None
    version, package = about
    stamp = f"{found.dialect.engine} {version} {package} reading {_READING}"
    try:
        help_text = _remembered_help([program, *found.program[1:]], _help_flag(found), stamp)
    except EngineError as error:
        return Installed(version=version, specs=[], package=package, stamp=stamp, problem=error.message)
    return Installed(version=version, specs=_read(found, help_text), package=package, stamp=stamp)


def unread_flags(installed: Installed, found: Found, knowledge: Knowledge) -> Mapping[str, Evidence]:
    """Flags of the command that no file of the installed source reads, by main spelling."""
    from assay.engines.cache import remember, remembered
    from assay.flags.command import launch
    from assay.flags.consumers import unread
    from assay.records.doctor import Evidence

    if installed.package is None:
        return {}
    given = {
        spec.field: spec.name for flag in launch(found, knowledge).flags if (spec := knowledge.resolve(flag.name).spec)
    }
    stamp = f"unread {installed.stamp} {' '.join(sorted(given))}"
    known = remembered(_CACHE, stamp)
    if not isinstance(known, list):
        known = sorted(unread(installed.package, list(given)))
        remember(_CACHE, stamp, known)
    source = f"scan of {installed.package}: declared, and read by no file outside argument handling"
    return {given[name]: Evidence(source=source, basis="source") for name in known if name in given}


def _program(found: Found, program: str) -> Installed | None:
    """An engine that is one program: llama-server."""
    from assay.engines.cache import file_stamp
    from assay.engines.llamacpp_help import parse_help
    from assay.flags.help_text import from_infos
    from assay.process import run_quiet

    stamp = f"{found.dialect.engine} {file_stamp(Path(program))} reading {_READING}"
    try:
        text = _remembered_help([program], "--help", stamp)
        said = run_quiet([program, "--version"], timeout_s=_ASK_TIMEOUT_S).output.split()
    except EngineError:  # the file is there and does not run: what is recorded is the better guide
        return None
    version = next((word for word in said if word.isdigit()), "0")
    return Installed(version=version, specs=from_infos(parse_help(text)), stamp=stamp)


def _about(python: str | None, package: str) -> tuple[str, Path | None] | None:
    from assay.process import run_quiet

    if python is None:
        return None
    try:
        said = run_quiet([python, "-c", _ABOUT, package.replace("-", "_")], timeout_s=_ASK_TIMEOUT_S)
        version, folders = json.loads(said.output.strip().splitlines()[-1])
    except (EngineError, ValueError, IndexError, TypeError):
        return None  # the package is not there, or this is no Python
    return str(version), Path(folders[0]) if folders else None


def _python_of(program: str) -> str | None:
    """The interpreter of a program: itself, or the one beside the script."""
    path = Path(program)
    if path.name.startswith("python"):
        return program
    for folder in (path.parent, path.resolve().parent):
        beside = shutil.which("python", path=str(folder)) or shutil.which("python3", path=str(folder))
        if beside:
            return beside
    return None


def _help_flag(found: Found) -> str:
    return "--help=all" if found.dialect.engine == "vllm" and found.program[-1:] == ("serve",) else "--help"


def _remembered_help(argv: Sequence[str], flag: str, stamp: str) -> str:
    from assay.engines.cache import remember, remembered
    from assay.process import run_quiet

    known = remembered(_CACHE, f"{stamp} {flag}")
    if isinstance(known, str):
        return known
    said = run_quiet([*argv, flag], timeout_s=_HELP_TIMEOUT_S)
    if said.exit_code != 0:
        raise EngineError(
            f"`{' '.join([*argv, flag])}` ended with exit code {said.exit_code}", hint="run it by hand to see why"
        )
    remember(_CACHE, f"{stamp} {flag}", said.output)
    return said.output


def _read(found: Found, text: str) -> list[FlagSpec]:
    from assay.flags.help_text import joined, parse_argparse, parse_click

    return joined(parse_click(text) if found.dialect.engine == "trtllm" else parse_argparse(text))
