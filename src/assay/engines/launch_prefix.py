"""Where an engine's commands run: here, in a container, behind ssh, or as a Slurm step.

Commands are lists of words; none is ever given to a shell here. What a server was started with tells how it is ended:
`begin` and `end_orphan` read it from the command alone, so that a record is enough to find what a killed Assay left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from assay.engines import launch_prefix_container as container
from assay.engines import launch_prefix_ssh as ssh
from assay.process import Child, end_recorded, run_quiet, start
from assay.process.children import Quiet
from assay.process.guardian import VARIABLE
from assay.records.launch import LaunchPrefix
from assay.records.machine import EngineBuild
from assay.records.run import ServerIdentity
from assay.records.spec import Target

SRUN = "--job-name=assay"


def variables(target: Target, engines: Iterable[str] = ()) -> list[str]:
    """Names of the variables that a server is handed, for a build's `variables`; `engines`: what its adapter sets."""
    return sorted({*target.env, *engines, VARIABLE}) if target.launch else []


def sees_this_machine(launch: LaunchPrefix | None) -> bool:
    """Whether programs and files are looked up on this machine: not in a container, not behind ssh."""
    return launch is None or launch.kind == "srun"


def ask(launch: LaunchPrefix | None, words: Sequence[str], *, timeout_s: float) -> Quiet:
    """Run a short command of the engine (its help, its version) to its end, where the engine is.

    Raises:
        EngineError: it cannot be executed, or does not end in time.
    """
    if launch is None:
        return run_quiet(words, timeout_s=timeout_s)
    if launch.image is not None:
        return container.ask(launch, words, timeout_s=timeout_s)
    if launch.host is not None:
        return run_quiet(ssh.short(launch, words), timeout_s=timeout_s)
    return run_quiet(_step(launch, words), timeout_s=timeout_s)


def serving(
    build: EngineBuild, words: Sequence[str], model_path: str, port: int, files: Sequence[str] = ()
) -> list[str]:
    """The launch command: the engine's words, wrapped as its build says.

    Args:
        build: whose `launch` and `variables` count.
        words: the engine's own command; its host is loopback, its port `port`.
        model_path: seen read-only inside a container, where it is a file or folder here.
        port: the same inside and outside.
        files: more files that the command names.

    Raises:
        UsageError: a path cannot be mounted, or not be seen from where the engine runs.
    """
    launch = build.launch
    if launch is None:
        return list(words)
    if launch.image is not None:
        return container.serving(launch, words, [model_path, *files], build.variables)
    if launch.host is not None:
        ssh.refuse_files(files)
        return ssh.serving(launch, words, port)
    return _step(launch, words)


def begin(argv: list[str], env: dict[str, str], log: Path, *, without: str | None = None) -> Child:
    """Start a launch command in its own session, its output going to `log`; ending it ends what it started elsewhere.

    Raises:
        EngineError: the program cannot be executed.
    """
    if name := container.name_in(argv):
        child = start(argv, env, log, before_end=lambda: container.end_behind(child, argv[0], name))
        return child
    if ssh.is_ours(argv):
        ours = {VARIABLE: env[VARIABLE]} if VARIABLE in env else {}
        return start(argv, ours, log, said=ssh.greeting(env))
    return start(argv, env, log, without=without)


def is_elsewhere(argv: Sequence[str]) -> bool:
    """Whether the server's processes are not below the process that we start (a container, another machine, a step)."""
    return container.name_in(argv) is not None or ssh.is_ours(argv) or SRUN in argv


def listens_elsewhere(argv: Sequence[str]) -> bool:
    """Whether its listener is none of our processes; behind ssh it is ssh itself that listens here."""
    return is_elsewhere(argv) and not ssh.is_ours(argv)


def end_orphan(identity: ServerIdentity) -> bool:
    """End what is left of a server that an earlier Assay recorded, also its container; True when something was.

    A server behind ssh ends by itself when the connection does, a step with its srun.
    """
    name = container.name_in(identity.argv)
    contained = container.end(identity.argv[0], name) if name else False
    return end_recorded(identity) or contained


def _step(launch: LaunchPrefix, words: Sequence[str]) -> list[str]:
    """One task on one node. A single interrupt ends it, and nothing waits for more output."""
    fixed = [
        SRUN,
        "--nodes=1",
        "--ntasks=1",
        "--export=ALL",
        "--unbuffered",
        "--quit-on-interrupt",
        "--kill-on-bad-exit=1",
    ]
    return ["srun", *fixed, *launch.options, *words]
