"""llama.cpp behind the engine port: the user's own llama-server, or the embedded one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.engines.artifact import make_artifact
from assay.engines.embedded_model import embedded_model
from assay.engines.flag_check import problem
from assay.engines.gguf_facts import read_facts
from assay.engines.llamacpp_flags import OWNED, canonical, refuse_owned, rendered
from assay.engines.llamacpp_in_force import contradiction
from assay.engines.llamacpp_program import find_build
from assay.engines.llamacpp_server import LlamaServer
from assay.models.paths import user_path
from assay.ports import Engine
from assay.process import start
from assay.records.base import Flags
from assay.records.hypothesis import Requantize
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.spec import EMBEDDED, Target

ENVIRONMENT = "LLAMA_ARG_"
"""Prefix of variables that set flags behind our back: a server sees only those that assay.toml names."""


class LlamaCpp:
    """Implements `assay.ports.Engine`."""

    name = "llamacpp"
    owned = OWNED

    def find(self, target: Target) -> EngineBuild:
        """The program named in the target, else the one in PATH, else the embedded one."""
        return find_build(self.name, target)

    def model(self, target: Target) -> ModelFacts:
        """The embedded model, or the GGUF file at the target's path."""
        path = embedded_model() if target.model == EMBEDDED else user_path(target.model)
        return read_facts(path)

    def argv(self, build: EngineBuild, model_path: str, flags: Flags, port: int) -> list[str]:
        """The launch command, on loopback."""
        refuse_owned(build, flags)
        words = [*build.argv, "--model", model_path, "--host", "127.0.0.1", "--port", str(port)]
        words += ["--metrics"] if build.flag("--metrics") else []
        return words + rendered(build, flags)

    def check_flags(self, build: EngineBuild, flags: Flags) -> str | None:
        """Unknown, removed, or a value that this build does not take."""
        return problem(build, flags)

    def canonical(self, build: EngineBuild, flags: Flags) -> Flags:
        """Long spellings (`-np` becomes `--parallel`), negative switches as False."""
        return canonical(build, flags)

    def make_artifact(self, model: ModelFacts, artifact: Requantize, folder: Path) -> str:
        """Requantize once; the file's name holds what it was made from."""
        return make_artifact(model, artifact, folder)

    def launch(self, argv: list[str], env: dict[str, str], log: Path, log_name: str) -> LlamaServer:
        """Start it in its own session; does not wait."""
        port = int(argv[argv.index("--port") + 1])
        return LlamaServer(start(argv, env, log, without=ENVIRONMENT), port, argv, log, log_name)

    def in_force(self, flags: Flags, effective: dict[str, Any], fallbacks: list[str]) -> str | None:
        """Compare with what the server reports; a warning about the flag's subject counts too."""
        return contradiction(flags, effective, fallbacks)


def create() -> Engine:
    """The adapter (entry point `assay.engines`)."""
    return LlamaCpp()
