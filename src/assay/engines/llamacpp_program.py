"""The program: where llama-server is, whether it runs here, and what it says of itself."""

from __future__ import annotations

import shutil
import signal
import sys
from importlib import metadata
from pathlib import Path

from pydantic import ValidationError

from assay.engines.cache import file_stamp, remember, remembered
from assay.engines.llamacpp_help import parse_help
from assay.errors import EngineError
from assay.models.paths import user_path
from assay.process import run_quiet
from assay.records.machine import EngineBuild
from assay.records.spec import EMBEDDED, Target

PROGRAM = "llama-server"
EMBEDDED_ARGV = [sys.executable, "-m", "assay.engines.embedded_server"]
HELP_TIMEOUT_S = 60.0
READING = 2
"""Raised whenever the help is read differently: what an older Assay remembered is then not used."""
QUOTED_CHARACTERS = 600
"""How much of a failing program's output an error quotes, from its end."""


def find_build(engine: str, target: Target) -> EngineBuild:
    """The program named in the target, else the one in PATH, else the embedded one.

    Raises:
        EngineError: there is none, it does not run here, or it is another program.
    """
    argv, source = _locate(target)
    stamp = f"{_stamp(argv)} reading {READING}"
    if (known := _remembered(stamp)) is not None:
        return known.model_copy(update={"source": source})
    version = _version(argv)
    build = EngineBuild(
        engine=engine, argv=argv, version=version, source=source, flags=parse_help(_ask(argv, "--help"))
    )
    if build.flag("--model") is None or build.flag("--port") is None:
        raise EngineError(
            f"`{' '.join(argv)} --help` lists no --model or no --port: it is not llama-server",
            hint=_other_program(argv),
        )
    remember("builds.json", stamp, build.model_dump(mode="json"))
    return build


def _locate(target: Target) -> tuple[list[str], str]:
    if target.executable == EMBEDDED:
        return list(EMBEDDED_ARGV), "the embedded wheel"
    if target.executable is not None:
        found = shutil.which(str(user_path(target.executable)))
        if found is None:
            raise EngineError(
                f"target.executable = {target.executable!r} is not an executable file",
                hint='give its full path, or "embedded" for the packaged engine',
            )
        return [found], "target.executable"
    if found := shutil.which(PROGRAM):
        return [found], "PATH"
    return list(EMBEDDED_ARGV), "the embedded wheel"


def _stamp(argv: list[str]) -> str:
    if argv == EMBEDDED_ARGV:
        try:
            return f"xllamacpp {metadata.version('xllamacpp')} {sys.executable}"
        except metadata.PackageNotFoundError as error:
            raise EngineError(
                "there is no llama-server in PATH, and the embedded engine is not installed",
                hint="pip install 'assay[embedded]', or set target.executable",
            ) from error
    return file_stamp(Path(argv[0]))


def _remembered(stamp: str) -> EngineBuild | None:
    """What was read before; None when nothing was, or another version of Assay wrote it."""
    try:
        return EngineBuild.model_validate(remembered("builds.json", stamp))
    except ValidationError:
        return None


def _ask(argv: list[str], word: str) -> str:
    done = run_quiet([*argv, word], timeout_s=HELP_TIMEOUT_S)
    if done.exit_code != 0:
        tail = done.output.strip()[-QUOTED_CHARACTERS:] or "no output"
        raise EngineError(
            f"`{' '.join(argv)} {word}` {_ending(done.exit_code)}: {tail}",
            hint=_other_program(argv),
        )
    return done.output


def _ending(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else f"signal {-exit_code}"
    meaning = " (an instruction that this CPU lacks)" if -exit_code == signal.SIGILL else ""
    return f"was ended by {name}{meaning}"


def _other_program(argv: list[str]) -> str:
    if argv == EMBEDDED_ARGV:
        return "install the pinned wheel: pip install 'assay[embedded]', or set target.executable"
    return 'this build does not run on this machine; try another, or target.executable = "embedded"'


def _version(argv: list[str]) -> str:
    lines = [line.strip() for line in _ask(argv, "--version").splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("version:")), lines[0] if lines else "unknown version")
    return "llama.cpp " + said.removeprefix("version:").strip()
