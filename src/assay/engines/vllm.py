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
from assay.engines.folder_engine import FolderEngine
from assay.engines.launch_prefix import serving
from assay.engines.vllm_flags import OWNED, rendered
from assay.engines.vllm_in_force import contradiction
from assay.engines.vllm_program import OURS, find_build
from assay.engines.vllm_server import MODEL_NAME, VllmServer
from assay.ports import Engine
from assay.records.base import Flags
from assay.records.machine import EngineBuild
from assay.records.spec import Target

ENVIRONMENT = "VLLM_"


class Vllm(FolderEngine):
    """Implements `assay.ports.Engine`."""

    name = "vllm"
    title = "vLLM"
    owned = OWNED

    def find(self, target: Target) -> EngineBuild:
        """The program named in the target, else the one in PATH."""
        return find_build(self.name, target)

    def argv(self, build: EngineBuild, model_path: str, flags: Flags, port: int) -> list[str]:
        """The launch command, on loopback."""
        declared_flags.refuse_owned(build, flags, OWNED)
        words = [*build.argv, model_path, "--host", "127.0.0.1", "--port", str(port)]
        words += ["--served-model-name", MODEL_NAME, *rendered(build, flags)]
        return serving(build, words, model_path, port)

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
