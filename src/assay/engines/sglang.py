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
from assay.engines.folder_engine import FolderEngine
from assay.engines.launch_prefix import serving
from assay.engines.sglang_in_force import contradiction
from assay.engines.sglang_program import find_build
from assay.engines.sglang_server import MODEL_NAME, SglangServer
from assay.ports import Engine
from assay.records.base import Flags
from assay.records.machine import EngineBuild
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


class Sglang(FolderEngine):
    """Implements `assay.ports.Engine`."""

    name = "sglang"
    title = "SGLang"
    owned = OWNED

    def find(self, target: Target) -> EngineBuild:
        """The Python that has SGLang, its version and the flags of its own help."""
        return find_build(self.name, target)

    def argv(self, build: EngineBuild, model_path: str, flags: Flags, port: int) -> list[str]:
        """The launch command, on loopback."""
        declared_flags.refuse_owned(build, flags, OWNED)
        words = [*build.argv, "--model-path", model_path, "--host", "127.0.0.1", "--port", str(port)]
        words += ["--served-model-name", MODEL_NAME, "--enable-metrics", *declared_flags.rendered(build, flags)]
        return serving(build, words, model_path, port)

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
