"""The simulated engine behind the engine port: a server process whose times are calculated. Everything is SIMULATED.

The target names a model that Assay knows (or a config.json); box, layout, world and time scale are flags of the server:

    [target]
    engine = "rehearsal"
    model = "glm-5-nvfp4"
    flags = { "--box" = "8xRTX-PRO-6000", "--tp-size" = 8, "--world" = "world.toml", "--time-scale" = 60 }
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from assay.engines.embedded_model import sha256_of
from assay.engines.flag_check import problem
from assay.engines.folder_facts import main_storage
from assay.engines.rehearsal_help import parse_help
from assay.engines.rehearsal_server import RehearsalServer
from assay.errors import EngineError, UsageError
from assay.models import library, load
from assay.models.paths import user_path
from assay.ports import Engine, LaunchFailed
from assay.process import run_quiet, start
from assay.records.base import Flags, FlagValue
from assay.records.failure import Cause
from assay.records.hypothesis import Requantize
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.run import Failure
from assay.records.spec import Target

ARGV = [sys.executable, "-m", "assay.rehearsal.server"]
VERSION = f"rehearsal {version('assay')} (simulated)"
SOURCE = "simulated: no machine, no model"
WORLD = "--world"
HELP_TIMEOUT_S = 60.0


class Rehearsal:
    """Implements `assay.ports.Engine`."""

    name = "rehearsal"
    owned = frozenset({"--model", "--host", "--port", "--seed", "-h", "--help", "--version"})

    def find(self, target: Target) -> EngineBuild:
        """The server of this installation, with the flags of the target's world.

        Raises:
            EngineError: it does not run, or its world file cannot be read.
        """
        world = [WORLD, str(target.flags[WORLD])] if WORLD in target.flags else []
        flags = parse_help(_asked([*ARGV, *world, "--help"]))
        return EngineBuild(engine=self.name, argv=list(ARGV), version=VERSION, source=SOURCE, flags=flags)

    def model(self, target: Target) -> ModelFacts:
        """The file that tells the model's shape.

        Raises:
            UsageError: no such model.
        """
        shape = load(target.model)
        path = _file_of(target.model)
        return ModelFacts(
            path=str(path),
            sha256=sha256_of(path),
            size_bytes=path.stat().st_size,
            architecture=shape.architecture,
            quantization=main_storage(shape),
            num_layers=shape.num_layers,
            context_length=shape.max_positions,
            num_experts=shape.num_experts or None,
            name=f"{shape.name} (simulated)",
        )

    def argv(self, build: EngineBuild, model_path: str, flags: Flags, port: int) -> list[str]:
        """The launch command, on loopback.

        Raises:
            UsageError: a flag is one of Assay's own.
        """
        if owned := sorted(self.owned & set(flags)):
            raise UsageError(f"{', '.join(owned)}: Assay sets this itself", hint="remove it from target.flags")
        words = [*build.argv, "--model", model_path, "--host", "127.0.0.1", "--port", str(port)]
        for name, value in flags.items():
            if value is not False:
                words += [name] if value is True else [name, str(value)]
        return words

    def check_flags(self, build: EngineBuild, flags: Flags) -> str | None:
        """Unknown, a value missing or superfluous, or not a choice."""
        return problem(build, flags)

    def canonical(self, build: EngineBuild, flags: Flags) -> Flags:  # noqa: ARG002 - the port's signature
        """Every flag has one spelling."""
        return dict(flags)

    def make_artifact(self, model: ModelFacts, artifact: Requantize, folder: Path) -> str:  # noqa: ARG002
        """There are no weights that could be converted.

        Raises:
            LaunchFailed: always.
        """
        line = f"a simulated model has no weights to convert to {artifact.type}"
        raise LaunchFailed(Failure(stage="artifact", cause=Cause.ARTIFACT, line=line, log=""))

    def launch(self, argv: list[str], env: dict[str, str], log: Path, log_name: str) -> RehearsalServer:
        """Start it in its own session; does not wait."""
        port = int(argv[argv.index("--port") + 1])
        return RehearsalServer(start(argv, env, log), port, argv, log, log_name)

    def in_force(self, flags: Flags, effective: dict[str, Any], fallbacks: list[str]) -> str | None:
        """Compare with what the server reports; a line of its log about the flag counts too."""
        for name, value in flags.items():
            said = next((line for line in fallbacks if name in line), None)
            reported = effective.get(name.removeprefix("--").replace("-", "_"))
            if said is None and reported is not None and not _same(reported, value):
                said = f"the server reports {name} = {str(reported).lower()}"
            if said is not None:
                shown = "" if value is True else f" {value}"
                return f"{name}{shown} is not in force: {said}"
        return None


def create() -> Engine:
    """The adapter (entry point `assay.engines`)."""
    return Rehearsal()


def _asked(argv: list[str]) -> str:
    done = run_quiet(argv, timeout_s=HELP_TIMEOUT_S)
    if done.exit_code != 0:
        raise EngineError(
            f"the rehearsal server does not start: {done.output.strip()[-500:]}",
            hint="check --world in target.flags: the file's path is looked up from where assay is started",
        )
    return done.output.strip()


def _file_of(model: str) -> Path:
    path = user_path(model)
    if path.is_dir():
        path /= "config.json"
    return (path if path.is_file() else library.find(model)).resolve()


def _same(reported: Any, value: FlagValue) -> bool:
    if isinstance(reported, int | float) and not isinstance(reported, bool):
        try:
            return float(value) == float(reported)
        except ValueError:
            return False
    return str(reported).lower() == str(value).lower()
