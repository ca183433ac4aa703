"""Somebody else's server with an OpenAI-compatible API: measured, never started, changed or stopped.

    [target]
    engine = "openai"
    url = "http://10.0.0.7:8000"        # its base address; the host may be another one
    model = "llama-3.1-8b"              # as it lists it; absent: the only one that it serves
    api_key_env = "TEAM_API_KEY"        # name of the variable that holds the key; absent: none

`assay run` then calibrates: the server against itself, which gives the noise that every comparison on it has to beat.
Hypotheses are blocked, since nothing of it can be changed. To compare it with another one: `assay compare URL URL`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from assay.engines.openai_client import OpenAiClient, base_url
from assay.engines.openai_listing import listed, served, version_of
from assay.engines.openai_server import SomebodysServer
from assay.errors import RecordError, UsageError
from assay.ports import Engine, LaunchFailed
from assay.records.base import Flags
from assay.records.failure import Cause
from assay.records.hypothesis import Requantize
from assay.records.machine import EngineBuild, ModelFacts
from assay.records.run import Failure
from assay.records.spec import EMBEDDED, Target

SOURCE = "somebody else's server"
MEASURE = ["assay", "bench"]
"""What stands where other engines have a launch command: the one that measures the server again."""
KEY, MODEL = "--api-key-env", "--model"


class OpenAi:
    """Implements `assay.ports.Engine`."""

    name = "openai"
    owned: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._gone: set[str] = set()

    def find(self, target: Target) -> EngineBuild:
        """What answers at the address.

        Raises:
            EngineError: nobody, or nothing that lists models.
        """
        url, client = _address(target)
        owner = next((str(one["owned_by"]) for one in listed(client) if one.get("owned_by")), "server of unknown kind")
        key = [KEY, target.api_key_env] if target.api_key_env else []
        version = " ".join(word for word in (owner, version_of(client)) if word)
        return EngineBuild(engine=self.name, argv=[*MEASURE, url, *key], version=version, source=SOURCE, flags=[])

    def model(self, target: Target) -> ModelFacts:
        """The model as the server lists it; what its weights are cannot be seen from here.

        Raises:
            EngineError: nobody answers.
            UsageError: it is not served, or none was named and several are.
        """
        url, client = _address(target)
        name = served(client, url, None if target.model == EMBEDDED else target.model)
        entry = next(one for one in listed(client) if one["id"] == name)
        lasting = {key: entry.get(key) for key in ("id", "root", "owned_by", "max_model_len")}
        context = entry.get("max_model_len")
        return ModelFacts(
            path=name,
            sha256=hashlib.sha256(json.dumps([url, lasting], sort_keys=True).encode()).hexdigest(),
            size_bytes=None,
            architecture="unknown",
            quantization="unknown",
            context_length=context if isinstance(context, int) else None,
            name=name,
        )

    def argv(self, build: EngineBuild, model_path: str, flags: Flags, port: int) -> list[str]:  # noqa: ARG002
        """There is no launch command: the one that measures it again.

        Raises:
            UsageError: flags were given.
        """
        if reason := self.check_flags(build, flags):
            raise UsageError(reason, hint="remove the flags; what can be changed there is for its owner to change")
        return [*build.argv, MODEL, model_path]

    def check_flags(self, build: EngineBuild, flags: Flags) -> str | None:
        """Every flag is refused."""
        if not flags:
            return None
        return f"the server is not ours: {build.argv[len(MEASURE)]} cannot be started with {', '.join(flags)}"

    def canonical(self, build: EngineBuild, flags: Flags) -> Flags:  # noqa: ARG002 - the port's signature
        """As given."""
        return dict(flags)

    def make_artifact(self, model: ModelFacts, artifact: Requantize, folder: Path) -> str:  # noqa: ARG002
        """Its model is not ours either.

        Raises:
            LaunchFailed: always.
        """
        line = f"the server is not ours: it cannot be given {model.name} as {artifact.type}"
        raise LaunchFailed(Failure(stage="artifact", cause=Cause.ARTIFACT, line=line, log=""))

    def launch(self, argv: list[str], env: dict[str, str], log: Path, log_name: str) -> SomebodysServer:  # noqa: ARG002
        """Nothing is started; the log says so.

        Raises:
            RecordError: the log cannot be written.
        """
        url = argv[len(MEASURE)]
        try:
            log.write_text(f"measured, not started: {url}\n", encoding="utf-8")
        except OSError as error:
            raise RecordError(f"cannot write {log}: {error}", hint="free disk space, or move the campaign") from error
        key = argv[argv.index(KEY) + 1] if KEY in argv else None
        return SomebodysServer(url, argv[argv.index(MODEL) + 1], key, log_name, self._gone)

    def in_force(self, flags: Flags, effective: dict[str, Any], fallbacks: list[str]) -> str | None:  # noqa: ARG002
        """Flags never come this far."""
        return f"the server is not ours: {', '.join(flags)}" if flags else None


def create() -> Engine:
    """The adapter (entry point `assay.engines`)."""
    return OpenAi()


def _address(target: Target) -> tuple[str, OpenAiClient]:
    assert target.url is not None  # the spec's own rule for this engine
    return base_url(target.url), OpenAiClient(target.url, target.api_key_env)
