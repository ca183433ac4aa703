"""The installed vLLM: where it is, its version, and the flags of its own help."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from assay.engines.cache import remember, remembered
from assay.engines.declared_flags import to_info
from assay.engines.launch_prefix import ask, sees_this_machine, variables
from assay.engines.venv import PYTHON, Program, locate, package_at
from assay.errors import EngineError
from assay.flags.help_text import joined, parse_argparse
from assay.flags.knowledge import from_help
from assay.records.machine import EngineBuild, FlagInfo
from assay.records.spec import Target

PROGRAM = "vllm"
MODULE = ["-m", "vllm.entrypoints.cli.main"]
OURS = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1"}
"""A server's variables unless assay.toml says otherwise. Development endpoints tell the whole configuration
(`/server_info`) and empty the prefix cache; the server listens on loopback only. Usage reports leave the machine, and
take time."""
HELP_TIMEOUT_S = 300.0
"""Importing vLLM takes tens of seconds, on a cold disk minutes."""
HELP = ("--help=all", "--help")
"""Newer versions show groups unless all is asked for; older ones know only the second."""
KNOWN = "--max-num-seqs"
"""A flag of every version: a help without it is that of something else, or cut short."""
READING = 1
"""Raised whenever the help is read differently: what an older Assay remembered is then not used."""
CACHE = "vllm-flags.json"
QUOTED_CHARACTERS = 600
INFOS = TypeAdapter(list[FlagInfo])


def find_build(engine: str, target: Target) -> EngineBuild:
    """The program named in the target, else the one in PATH; remembered by version and place.

    Raises:
        EngineError: there is none, or it does not run here.
    """
    program = _program(target)
    found = package_at(target, program.python, PROGRAM)
    argv = [*program.argv, "serve"]
    place = target.launch.title if target.launch else "here"
    stamp = f"vllm {found.version} {place} {found.folder} {' '.join(argv)} reading {READING}"
    flags = _remembered(stamp)
    if flags is None:
        flags = _flags(target, argv, found.version)
        remember(CACHE, stamp, INFOS.dump_python(flags))
    return EngineBuild(
        engine=engine,
        argv=argv,
        version=f"vLLM {found.version}",
        source=program.source,
        flags=flags,
        launch=target.launch,
        variables=variables(target, OURS),
    )


def _program(target: Target) -> Program:
    if target.launch is None or sees_this_machine(target.launch):
        return locate(target.executable, PROGRAM, MODULE)
    return Program(argv=[target.executable or PROGRAM], python=PYTHON, source=target.launch.title)


def _flags(target: Target, argv: list[str], version: str) -> list[FlagInfo]:
    said = ""
    for word in HELP:
        done = ask(target.launch, [*argv, word], timeout_s=HELP_TIMEOUT_S)
        if done.exit_code == 0 and KNOWN in done.output:
            specs = from_help("vllm", version, joined(parse_argparse(done.output)), "").specs
            return [to_info(spec) for spec in specs]
        said = f"`{' '.join([*argv, word])}` ended with exit code {done.exit_code}: {_end_of(done.output)}"
    raise EngineError(said, hint="this vLLM does not run here; start it by hand to see why: " + " ".join(argv))


def _end_of(output: str) -> str:
    return output.strip()[-QUOTED_CHARACTERS:] or "no output"


def _remembered(stamp: str) -> list[FlagInfo] | None:
    try:
        return INFOS.validate_python(remembered(CACHE, stamp))
    except ValidationError:
        return None
