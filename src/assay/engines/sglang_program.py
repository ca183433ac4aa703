"""The installed SGLang: its Python, its version, and the flags of its own help.

Where the help does not run (no GPU on this node, a broken import), the flags that are recorded of that very version
stand in for it, and the build's source says so.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from assay.engines.cache import file_stamp, remember, remembered
from assay.engines.declared_flags import to_info
from assay.engines.launch_prefix import ask, sees_this_machine, variables
from assay.engines.venv import PYTHON, QUOTED_CHARACTERS, Package, Program, interpreter_of, locate, package_at
from assay.errors import EngineError
from assay.flags import versions
from assay.flags.help_text import joined, parse_argparse
from assay.flags.history import history
from assay.flags.knowledge import from_help
from assay.records.machine import EngineBuild, FlagInfo
from assay.records.spec import Target

MODULE = ["-m", "sglang.launch_server"]
"""Of every version; the program `sglang serve` came later."""
PACKAGE = "sglang"
HELP_TIMEOUT_S = 300.0
"""The first import on a cold disk takes minutes."""
KNOWN = "--mem-fraction-static"
"""A flag of every version: a help without it is that of something else, or cut short."""
READING = 1
"""Raised whenever the help is read differently: what an older Assay remembered is then not used."""
CACHE = "sglang-flags.json"
INFOS = TypeAdapter(list[FlagInfo])


@dataclass(frozen=True, slots=True, kw_only=True)
class Flagged:
    """Flags, and what is to be said of where they are from; "" when it is the help."""

    infos: list[FlagInfo]
    note: str = ""


def find_build(engine: str, target: Target) -> EngineBuild:
    """The Python that has SGLang: of target.executable, of the `sglang` in PATH, or the one in PATH.

    Raises:
        EngineError: there is none, or nothing is known of its flags.
    """
    program = _program(target)
    assert program.python is not None
    found = package_at(target, program.python, PACKAGE)
    flagged = _flags(target, program.python, found)
    return EngineBuild(
        engine=engine,
        argv=[program.python, *MODULE],
        version=f"SGLang {found.version}",
        source=program.source + flagged.note,
        flags=flagged.infos,
        launch=target.launch,
        variables=variables(target),
    )


def _program(target: Target) -> Program:
    if target.launch is not None and not sees_this_machine(target.launch):
        python = target.executable or PYTHON
        return Program(argv=[python, *MODULE], python=python, source=target.launch.title)
    if target.executable is None:
        return _in_path()
    found = locate(target.executable, PACKAGE, MODULE)
    if found.python is None:
        raise EngineError(
            f"there is no Python beside {target.executable}",
            hint="set target.executable to the virtual environment's folder, or to its Python",
        )
    return found


def _in_path() -> Program:
    script = shutil.which(PACKAGE)
    python = interpreter_of(script) if script else shutil.which(PYTHON)
    if python is None:
        raise EngineError("there is no Python in PATH", hint="set target.executable to one that has sglang")
    return Program(argv=[python, *MODULE], python=python, source="PATH")


def _flags(target: Target, python: str, found: Package) -> Flagged:
    stamp = _stamp(target, python, found)
    try:
        return Flagged(infos=INFOS.validate_python(remembered(CACHE, stamp)))
    except ValidationError:
        pass
    try:
        infos = _from_help(target, python, found.version)
    except EngineError as error:
        return _recorded(found.version, error)
    remember(CACHE, stamp, INFOS.dump_python(infos))
    return Flagged(infos=infos)


def _stamp(target: Target, python: str, found: Package) -> str:
    place = target.launch.title if target.launch else "here"
    arguments = found.folder / "srt" / "server_args.py" if found.folder else None
    source = file_stamp(arguments) if arguments and arguments.is_file() else str(found.folder)
    return f"{PACKAGE} {found.version} {place} {python} {source} reading {READING}"


def _from_help(target: Target, python: str, version: str) -> list[FlagInfo]:
    done = ask(target.launch, [python, *MODULE, "--help"], timeout_s=HELP_TIMEOUT_S)
    if done.exit_code != 0 or KNOWN not in done.output:
        said = done.output.strip()[-QUOTED_CHARACTERS:] or "no output"
        raise EngineError(
            f"`{' '.join([python, *MODULE])} --help` ended with exit code {done.exit_code}: {said}",
            hint="run it by hand to see why",
        )
    return [to_info(spec) for spec in from_help(PACKAGE, version, joined(parse_argparse(done.output)), "").specs]


def _recorded(version: str, problem: EngineError) -> Flagged:
    """What was read of the published wheels.

    Raises:
        EngineError: that version is older than all that were read.
    """
    past = history(PACKAGE)
    stand = versions.standing_for(version, past.checked)
    if stand is None:
        raise problem
    last = problem.message.strip().splitlines()[-1]
    note = f"; its --help does not run here ({last}), so the flags are those recorded of the {stand} wheel"
    return Flagged(infos=[to_info(spec) for spec in past.at(version)], note=note)
