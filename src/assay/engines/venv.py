"""A Python engine on this machine: its program, its interpreter, its version and the folder of its source."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from assay.engines.launch_prefix import ask
from assay.errors import EngineError
from assay.models.paths import user_path
from assay.process import run_quiet
from assay.records.spec import Target

PYTHON = "python3"
"""Behind a prefix, where nothing else is said."""
QUOTED_CHARACTERS = 300
ASK_TIMEOUT_S = 60.0
"""Starting an interpreter and reading metadata, on a cold disk."""
ABOUT = """
import importlib.metadata as m, importlib.util as u, json, sys
name = sys.argv[1]
spec = u.find_spec(name.replace('-', '_'))
try:
    version = m.version(name)
except m.PackageNotFoundError:
    owners = m.packages_distributions().get(name.replace('-', '_'), [])
    version = m.version(owners[0]) if owners else None
print(json.dumps([version, list(spec.submodule_search_locations or []) if spec else []]))
"""
"""Version and folder of a package, without importing it. A distribution of another name (a build for CPUs) counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How an engine is started, before any flag."""

    argv: list[str]
    python: str | None
    """Its interpreter; None when none is beside it."""
    source: str
    """Where it was found: PATH, or target.executable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """An installed package."""

    version: str
    folder: Path | None
    """Of its source."""


def locate(executable: str | None, program: str, module: list[str]) -> Program:
    """Find an engine's program.

    Args:
        executable: what target.executable says: the program, the folder of a virtual environment, or a Python; None:
            the one in PATH.
        program: its name, as `vllm`.
        module: words after a Python that start the same, as ["-m", "vllm.entrypoints.cli.main"].

    Raises:
        EngineError: it is not there.
    """
    if executable is None:
        found = shutil.which(program)
        if found is None:
            raise EngineError(
                f"there is no `{program}` in PATH",
                hint=f"install {program}, or set target.executable to it, its virtual environment or its Python",
            )
        return Program(argv=[found], python=interpreter_of(found), source="PATH")
    path = user_path(executable)
    if path.is_dir():
        return _in_environment(path, program, module)
    found = shutil.which(str(path))
    if found is None:
        raise EngineError(
            f"target.executable = {executable!r} is neither an executable file nor a folder",
            hint=f"give the path of `{program}`, of its virtual environment, or of its Python",
        )
    if Path(found).name.startswith("python"):
        return Program(argv=[found, *module], python=found, source="target.executable")
    return Program(argv=[found], python=interpreter_of(found), source="target.executable")


def package(python: str | None, name: str) -> Package:
    """Version and folder of a package, by the interpreter that would import it.

    Raises:
        EngineError: it is not installed there.
    """
    if python is None:
        raise EngineError(
            f"there is no Python beside the program of {name}",
            hint="set target.executable to the virtual environment's folder, or to its Python",
        )
    said = run_quiet([python, "-c", ABOUT, name], timeout_s=ASK_TIMEOUT_S)
    try:
        version, folders = json.loads(said.output.strip().splitlines()[-1])
    except (ValueError, IndexError, TypeError):
        version, folders = None, []
    if said.exit_code != 0 or not version:
        why = f": {said.output.strip()[-QUOTED_CHARACTERS:] or 'no output'}" if said.exit_code != 0 else ""
        raise EngineError(
            f"{python} has no package {name}{why}",
            hint=f"install {name} there, or set target.executable to an environment that has it",
        )
    return Package(version=str(version), folder=Path(folders[0]) if folders else None)


def package_at(target: Target, python: str | None, name: str) -> Package:
    """The same wherever the target is launched; behind a prefix without a folder.

    Raises:
        EngineError: it is not installed there.
    """
    if target.launch is None:
        return package(python, name)
    python = python or PYTHON
    said = ask(target.launch, [python, "-c", ABOUT, name], timeout_s=ASK_TIMEOUT_S)
    try:
        version = json.loads(said.output.strip().splitlines()[-1])[0]
    except (ValueError, IndexError, TypeError):
        version = None
    if said.exit_code != 0 or not version:
        raise EngineError(
            f"{python} has no package {name} in {target.launch.title}: "
            f"{said.output.strip()[-QUOTED_CHARACTERS:] or 'no output'}",
            hint="try it by hand; target.executable names the program over there",
        )
    return Package(version=str(version), folder=None)


def interpreter_of(program: str) -> str | None:
    """The Python beside a program: of its virtual environment, not of the system."""
    for folder in (Path(program).parent, Path(program).resolve().parent):
        for name in ("python", "python3"):
            if found := shutil.which(name, path=str(folder)):
                return found
    return None


def _in_environment(folder: Path, program: str, module: list[str]) -> Program:
    for place in (folder / "bin", folder):
        if found := shutil.which(program, path=str(place)):
            return Program(argv=[found], python=interpreter_of(found), source="target.executable")
        if python := shutil.which("python", path=str(place)) or shutil.which("python3", path=str(place)):
            return Program(argv=[python, *module], python=python, source="target.executable")
    raise EngineError(
        f"target.executable = {str(folder)!r} holds no bin/{program} and no bin/python",
        hint="give the folder of a virtual environment",
    )
