"""The verbs that write assay.toml: from what is given, from a launch command, from a running server."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from assay.api.command_words import read_flags
from assay.api.launch import split
from assay.errors import EngineError, UsageError

if TYPE_CHECKING:
    from assay.records.spec import CampaignSpec

SPEC = "assay.toml"
PYTHON_ENGINES = frozenset({"vllm", "sglang", "trtllm-serve"})
"""Programs that have subcommands, only one of which serves."""


def init(folder: Path, spec: CampaignSpec) -> Path:
    """Write a commented assay.toml; refuses to overwrite one.

    Raises:
        UsageError: there is one already.
    """
    from assay.store.spec_file import write_spec

    folder.mkdir(parents=True, exist_ok=True)
    write_spec(folder / SPEC, spec)
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
    from assay import wiring
    from assay.api.command_target import target_of
    from assay.models.paths import user_path
    from assay.records.spec import CampaignSpec, Target

    if (python_engine := target_of(command, engine_version)) is not None:
        return init(folder, CampaignSpec(name=name or folder.name, target=python_engine))
    if engine_version is not None:
        raise UsageError(
            f"--engine-version {engine_version}: the command starts no engine whose versions are told apart",
            hint="leave it out: flags are read as llama-server's",
        )
    words = split(command)
    executable, flags = words[0], read_flags(words[1:])
    model = next((flags.pop(key) for key in ("--model", "-m") if key in flags), None)
    flags = {name: value for name, value in flags.items() if name not in wiring.engine("llamacpp").owned}
    if not isinstance(model, str) and Path(executable).name in PYTHON_ENGINES:
        raise UsageError(
            f"{command} starts no server whose model is known", hint="give the whole command, as `vllm serve MODEL`"
        )
    if not isinstance(model, str):
        raise UsageError(f"no --model in: {command}", hint="Assay serves a local GGUF file: add `--model FILE.gguf`")
    target = Target(model=str(user_path(model).resolve()), executable=executable, flags=flags)
    engine = wiring.engine(target.engine)
    with suppress(EngineError):  # not on this machine: `assay plan` will say so, and check the spellings where it is
        target = target.model_copy(update={"flags": engine.canonical(engine.find(target), target.flags)})
    return init(folder, CampaignSpec(name=name or folder.name, target=target))


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
