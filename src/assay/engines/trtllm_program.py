"""The installed TensorRT-LLM: `trtllm-serve`, its version, and the options of its own help."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import TypeAdapter, ValidationError

from assay.engines.cache import remember, remembered
from assay.engines.declared_flags import to_info
from assay.engines.launch_prefix import ask, sees_this_machine, variables
from assay.engines.venv import QUOTED_CHARACTERS, Program, locate, package
from assay.errors import EngineError
from assay.flags.help_text import joined, parse_click
from assay.flags.knowledge import from_help
from assay.records.machine import EngineBuild, FlagInfo
from assay.records.spec import Target

PACKAGE = "tensorrt_llm"
PROGRAM = "trtllm-serve"
MODULE = ["-m", "tensorrt_llm.commands.serve"]
SERVE = "serve"
USAGE = re.compile(r"^Usage: .*?\b(serve )?\[OPTIONS\] MODEL", re.MULTILINE)
"""Older programs have no subcommand, and their help's usage does not name one."""
VERSION = re.compile(r"TensorRT[- ]LLM version: (\S+)")
"""Printed on every import."""
KNOWN = "--max_batch_size"
HELP_TIMEOUT_S = 300.0
READING = 1
"""Raised whenever the help is read differently: what an older Assay remembered is then not used."""
CACHE = "trtllm-flags.json"
REMEMBERED = TypeAdapter(tuple[bool, list[FlagInfo]])


def find_build(engine: str, target: Target) -> EngineBuild:
    """The program named in the target, else the one in PATH.

    Raises:
        EngineError: there is none, or it does not run here.
    """
    program = _program(target)
    version = _version(target, program)
    has_serve, infos = _flags(target, program.argv, version)
    return EngineBuild(
        engine=engine,
        argv=[*program.argv, SERVE] if has_serve else program.argv,
        version=f"TensorRT-LLM {version}",
        source=program.source,
        flags=infos,
        launch=target.launch,
        variables=variables(target),
    )


def _program(target: Target) -> Program:
    if target.launch is not None and not sees_this_machine(target.launch):
        return Program(argv=[target.executable or PROGRAM], python=None, source=target.launch.title)
    return locate(target.executable, PROGRAM, MODULE)


def _version(target: Target, program: Program) -> str:
    """By its metadata where its Python is here, else by what it prints on every start.

    Raises:
        EngineError: it does not start.
    """
    if target.launch is None and program.python is not None:
        try:
            return package(program.python, PACKAGE).version
        except EngineError:
            pass  # the Python beside it is another one
    said = ask(target.launch, [*program.argv, "--help"], timeout_s=HELP_TIMEOUT_S)
    found = VERSION.search(said.output)
    if said.exit_code != 0 and found is None:
        raise _does_not_run(program.argv, said.exit_code, said.output)
    return found[1] if found else "0"


def _flags(target: Target, words: Sequence[str], version: str) -> tuple[bool, list[FlagInfo]]:
    place = target.launch.title if target.launch else "here"
    stamp = f"trtllm {version} {place} {' '.join(words)} reading {READING}"
    try:
        return REMEMBERED.validate_python(remembered(CACHE, stamp))
    except ValidationError:
        pass
    said = ask(target.launch, [*words, SERVE, "--help"], timeout_s=HELP_TIMEOUT_S)
    usage = USAGE.search(said.output)
    if said.exit_code != 0 or usage is None or KNOWN not in said.output:
        raise _does_not_run([*words, SERVE], said.exit_code, said.output)
    specs = from_help("trtllm", version, joined(parse_click(said.output)), "").specs
    found = (usage[1] is not None, [to_info(spec) for spec in specs])
    remember(CACHE, stamp, REMEMBERED.dump_python(found, mode="json"))
    return found


def _does_not_run(words: Sequence[str], exit_code: int, output: str) -> EngineError:
    said = output.strip()[-QUOTED_CHARACTERS:] or "no output"
    return EngineError(
        f"`{' '.join([*words, '--help'])}` is no help of trtllm-serve (exit code {exit_code}): {said}",
        hint="run it by hand to see why; target.executable names the program",
    )
