"""vLLM behind the engine port: a `vllm` program, a virtual environment, or a Python that has the package.

    [target]
    engine = "vllm"
    model = "/models/qwen3-30b-a3b"
    executable = "/opt/vllm"            # absent: the `vllm` in PATH
    flags = { "--max-num-seqs" = 256, "--enable-prefix-caching" = false }
    env = { VLLM_ATTENTION_BACKEND = "FLASH_ATTN" }

Of variables that begin with VLLM_ a server sees those that assay.toml names and no others: what a shell happens to hold
would change a campaign without being recorded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.engines import declared_flags
from assay.engines.folder_facts import find_model, read_facts
from assay.engines.launch_prefix import serving
from assay.engines.launch_prefix_model import facts_elsewhere
from assay.engines.vllm_flags import OWNED, rendered
from assay.engines.vllm_in_force import contradiction
from assay.engines.vllm_program import OURS, find_build
from assay.engines.vllm_server import MODEL_NAME, VllmServer
from assay.ports import Engine, LaunchFailed
from assay.records.base import Flags
from assay.records.failure import Cause
from assay.records.hypothesis import Requantize
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.run import Failure
from assay.records.spec import Target

ENVIRONMENT = "VLLM_"


class Vllm:
    """Implements `assay.ports.Engine`."""

    name = "vllm"
    owned = OWNED

    def find(self, target: Target) -> EngineBuild:
        """The program named in the target, else the one in PATH."""
        return find_build(self.name, target)

    def model(self, target: Target) -> ModelFacts:
        """The model's folder, or the hub's name of one that is in the local cache; behind ssh a folder over there."""
        return facts_elsewhere(target) or read_facts(find_model(target.model))

    def argv(self, build: EngineBuild, model_path: str, flags: Flags, port: int) -> list[str]:
        """The launch command, on loopback."""
        declared_flags.refuse_owned(build, flags, OWNED)
        words = [*build.argv, model_path, "--host", "127.0.0.1", "--port", str(port)]
        words += ["--served-model-name", MODEL_NAME, *rendered(build, flags)]
        return serving(build, words, model_path, port)

    def check_flags(self, build: EngineBuild, flags: Flags) -> str | None:
        """Unknown, renamed, removed, or a value that this build does not take."""
        return declared_flags.problem(build, flags)

    def canonical(self, build: EngineBuild, flags: Flags) -> Flags:
        """Long spellings (`-tp` becomes `--tensor-parallel-size`, `-O3` `--optimization-level`), `--no-` as False."""
        return declared_flags.canonical(build, flags)

    def make_artifact(self, model: ModelFacts, artifact: Requantize, folder: Path) -> str:  # noqa: ARG002 - the port's
        """GGUF types are no artifacts of this engine.

        Raises:
            LaunchFailed: always.
        """
        line = f"vLLM serves no GGUF made by Assay: {artifact.type} cannot be made of {model.name}"
        raise LaunchFailed(Failure(stage="artifact", cause=Cause.ARTIFACT, line=line, log=""))

    def launch(self, argv: list[str], env: dict[str, str], log: Path, log_name: str) -> VllmServer:
        """Start it in its own session; does not wait."""
        port = int(argv[argv.index("--port") + 1])
        return VllmServer(argv, {**OURS, **env}, log, log_name, port, without=ENVIRONMENT)

    def in_force(self, flags: Flags, effective: dict[str, Any], fallbacks: list[str]) -> str | None:
        """Compare with what the server reports; a warning about the flag's subject counts too."""
        return contradiction(flags, effective, fallbacks)


def create() -> Engine:
    """The adapter (entry point `assay.engines`)."""
    return Vllm()
