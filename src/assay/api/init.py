"""The verbs that write assay.toml: from what is given, from a launch command, from a running server."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from assay.api.command_words import leading_variables, read_flags
from assay.api.launch import split
from assay.errors import EngineError, UsageError

if TYPE_CHECKING:
    from assay.ports import Engine
    from assay.records.machine import EngineBuild
    from assay.records.spec import CampaignSpec, Target

SPEC = "assay.toml"
PYTHON_ENGINES = frozenset({"vllm", "sglang", "trtllm-serve"})
"""Programs that have subcommands, only one of which serves."""


def init(folder: Path, spec: CampaignSpec, comments: Mapping[str, str] | None = None) -> Path:
    """Write a commented assay.toml; refuses to overwrite one, and to write a secret down.

    Args:
        folder: where.
        spec: the question.
        comments: more to say, by dotted key.

    Raises:
        UsageError: there is one already, or the target holds a secret.
    """
    from assay.api.secret_flags import refuse_secret_target, refuse_secret_variables
    from assay.store.spec_file import write_spec

    refuse_secret_target(spec.target)
    refuse_secret_variables(spec.target.env)
    folder.mkdir(parents=True, exist_ok=True)
    write_spec(folder / SPEC, spec, comments)
    return folder / SPEC


def init_from_command(
    folder: Path, command: str, *, name: str | None = None, engine_version: str | None = None
) -> Path:
    """Write assay.toml from today's launch command, given as one string.

    The string is split as a shell would split it, and never given to one. Flags get the long spellings of the
    program that the command names; of a version that is somewhere else, those that are recorded of it.

    Args:
        folder: where.
        command: the launch command.
        name: of the campaign.
        engine_version: of vLLM, SGLang or TensorRT-LLM on another machine.

    Raises:
        UsageError: it names no model, cannot be split, or the version is none.
    """
    from assay.api.command_target import stand_in, target_of
    from assay.records.spec import CampaignSpec

    if (target := target_of(command, engine_version)) is None:
        if engine_version is not None:
            raise UsageError(
                f"--engine-version {engine_version}: the command starts no engine whose versions are told apart",
                hint="leave it out: flags are read as llama-server's",
            )
        target = _local_target(command)
    comments = {"target.engine_version": stand_in(target)}
    return init(folder, CampaignSpec(name=name or folder.name, target=target), comments)


def _local_target(command: str) -> Target:
    """Of a program that is no Python engine: its flags are read as llama-server's."""
    from assay import wiring
    from assay.api.secret_flags import refuse_secret_target
    from assay.models.paths import user_path
    from assay.records.spec import Target
    from assay.store.redact import is_secret_name, redact

    env, words = leading_variables(split(command))
    shown = shlex.join(redact(words))
    if not words:
        raise UsageError("the launch command starts nothing", hint="give the whole command, its program included")
    executable, flags = words[0], read_flags(words[1:])
    model = next((flags.pop(key) for key in ("--model", "-m") if key in flags), None)
    engine = wiring.engine("llamacpp")
    flags = {name: value for name, value in flags.items() if name not in engine.owned}
    if not isinstance(model, str) and Path(executable).name in PYTHON_ENGINES:
        raise UsageError(
            f"{shown} starts no server whose model is known", hint="give the whole command, as `vllm serve MODEL`"
        )
    if not isinstance(model, str):
        raise UsageError(f"no --model in: {shown}", hint="Assay serves a local GGUF file: add `--model FILE.gguf`")
    inherited = {name: value for name, value in env.items() if not is_secret_name(name)}
    target = Target(model=model, executable=executable, flags=flags, env=inherited)
    refuse_secret_target(target)  # before the model becomes a path, which no longer looks like an address
    flags = engine.canonical(_build(engine, target), flags)
    return target.model_copy(update={"model": str(user_path(model).resolve()), "flags": flags})


def _build(engine: Engine, target: Target) -> EngineBuild:
    """The program that is here, else what is recorded of the newest version: `assay plan` checks where it is."""
    from assay.api.catalogue import recorded_build
    from assay.flags.knowledge import of_named_version

    try:
        return engine.find(target)
    except EngineError:
        return recorded_build(of_named_version(engine.name, None))


def init_from_url(
    folder: Path, url: str, *, name: str | None = None, model: str | None = None, api_key_env: str | None = None
) -> Path:
    """Write assay.toml from what a running server says of itself.

    A llama.cpp server is started again with changes; every other one is measured and left as it is.

    Args:
        folder: where.
        url: of any OpenAI-compatible server.
        name: of the campaign.
        model: as the server lists it; needed where it serves several.
        api_key_env: name of the environment variable that holds the server's key.

    Raises:
        UsageError: nobody answers there, or it serves several models and none was named.
    """
    from assay.api.init_url import target_at
    from assay.records.spec import CampaignSpec

    target = target_at(url, model=model, api_key_env=api_key_env)
    return init(folder, CampaignSpec(name=name or folder.name, target=target))
