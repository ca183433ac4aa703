"""SGLang behind the engine port: `python -m sglang.launch_server` of an environment, a container, behind ssh or srun.

    [target]
    engine = "sglang"
    model = "/models/glm-5-nvfp4"
    executable = "/opt/sglang"          # a Python, or the folder of its environment; absent: the one in PATH
    flags = { "--tp-size" = 8, "--mem-fraction-static" = 0.92 }

Of variables that begin with SGLANG_ a server sees those that assay.toml names and no others: what a shell happens to
hold would change a campaign without being recorded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.engines import declared_flags
from assay.engines.folder_facts import find_model, read_facts
from assay.engines.launch_prefix import serving
from assay.engines.launch_prefix_model import facts_elsewhere
from assay.engines.sglang_in_force import contradiction
from assay.engines.sglang_program import find_build
from assay.engines.sglang_server import MODEL_NAME, SglangServer
from assay.ports import Engine, LaunchFailed
from assay.records.base import Flags
from assay.records.failure import Cause
from assay.records.hypothesis import Requantize
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.run import Failure
from assay.records.spec import Target

ENVIRONMENT = "SGLANG_"
OWNED = frozenset(
    {
        "--model-path", "--model", "--host", "--port", "--served-model-name", "--enable-metrics", "--api-key",
        "--admin-api-key", "--log-level", "--log-level-http", "--config", "--help", "-h", "--skip-tokenizer-init",
        "--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs", "--fastapi-root-path", "--grpc-mode", "--smg-grpc-mode",
    }
)  # fmt: skip
"""Flags that Assay sets itself, or that would keep it from talking to the server, reading its log or its flags."""


class Sglang:
    """Implements `assay.ports.Engine`."""

    name = "sglang"
    owned = OWNED

    def find(self, target: Target) -> EngineBuild:
        """The Python that has SGLang, its version and the flags of its own help."""
        return find_build(self.name, target)

    def model(self, target: Target) -> ModelFacts:
        """The model's folder, or the hub's name of one that is in the local cache; behind ssh a folder over there."""
        return facts_elsewhere(target) or read_facts(find_model(target.model))

    def argv(self, build: EngineBuild, model_path: str, flags: Flags, port: int) -> list[str]:
        """The launch command, on loopback."""
        declared_flags.refuse_owned(build, flags, OWNED)
        words = [*build.argv, "--model-path", model_path, "--host", "127.0.0.1", "--port", str(port)]
        words += ["--served-model-name", MODEL_NAME, "--enable-metrics", *declared_flags.rendered(build, flags)]
        return serving(build, words, model_path, port)

    def check_flags(self, build: EngineBuild, flags: Flags) -> str | None:
        """Unknown, renamed, removed, or a value that this build does not take."""
        return declared_flags.problem(build, flags)

    def canonical(self, build: EngineBuild, flags: Flags) -> Flags:
        """The spelling that the build's help names first: `--tp-size` or `--tensor-parallel-size`, by version."""
        return declared_flags.canonical(build, flags)

    def make_artifact(self, model: ModelFacts, artifact: Requantize, folder: Path) -> str:  # noqa: ARG002 - the port's
        """GGUF types are no artifacts of this engine.

        Raises:
            LaunchFailed: always.
        """
        line = f"SGLang serves no GGUF made by Assay: {artifact.type} cannot be made of {model.name}"
        raise LaunchFailed(Failure(stage="artifact", cause=Cause.ARTIFACT, line=line, log=""))

    def launch(self, argv: list[str], env: dict[str, str], log: Path, log_name: str) -> SglangServer:
        """Start it in its own session; does not wait."""
        port = int(argv[argv.index("--port") + 1])
        return SglangServer(argv, env, log, log_name, port, without=ENVIRONMENT)

    def in_force(self, flags: Flags, effective: dict[str, Any], fallbacks: list[str]) -> str | None:
        """Compare with what the server reports; a flag that its version never reads is not in force either."""
        return contradiction(flags, effective, fallbacks)


def create() -> Engine:
    """The adapter (entry point `assay.engines`)."""
    return Sglang()
