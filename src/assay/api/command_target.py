"""From today's launch command of a Python engine (vLLM, SGLang, TensorRT-LLM) to a campaign's target."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from assay.errors import EngineError, UsageError

if TYPE_CHECKING:
    from assay.flags.knowledge import Knowledge
    from assay.flags.words import Found
    from assay.ports import Engine
    from assay.records.base import Flags, FlagValue
    from assay.records.doctor import GivenFlag
    from assay.records.spec import Target

_TRANSPARENT = frozenset({"env", "exec", "nohup", "time"})
"""Words before a program that change nothing of how it serves."""


def target_of(command: str, version: str | None = None) -> Target | None:
    """The target that a launch command describes; None where it starts no engine whose flags are described.

    The command is split as a shell would split it, and never given to one. Flags get the spellings of the installed
    build, or those that are recorded of a version; where the engine is not here and none is named, of the newest.
    Variables that hold secrets are left out: the server inherits them from the shell that runs Assay.

    Args:
        command: as one string.
        version: of an engine that is somewhere else.

    Raises:
        UsageError: it cannot be split, is wrapped in something that would get lost, or names no model.
    """
    from assay.flags import parse
    from assay.records.spec import Target
    from assay.store.redact import is_secret_name

    try:
        found = parse([command])
    except UsageError:
        return None  # a program of its own: read as llama-server's
    if found.dialect.engine == "llamacpp":
        return None
    _refuse_wrappers(found)
    adapter, executable = _adapter(found.dialect.engine), _executable(found)
    environment = {name: value for name, value in found.environment.items() if not is_secret_name(name)}
    draft = Target(engine=adapter.name, model="", executable=executable, env=environment)
    flags, model = _read(found, _knowledge(adapter, draft, version), adapter)
    return draft.model_copy(update={"model": _absolute(model), "flags": flags, "engine_version": version})


def stand_in(target: Target) -> str:
    """Whose flags stand for those of the version that was asked for, where that one was not read; else nothing."""
    from assay.flags import of_named_version, versions

    if target.engine_version is None:
        return ""
    known = of_named_version(target.engine, target.engine_version)
    stand = versions.standing_for(known.version, known.past.checked) or known.past.checked[0]
    if versions.release(stand) == versions.release(known.version):
        return ""
    return f"{known.dialect.title} {known.version} itself was not read: the flags of {stand} stand for it."


def _adapter(name: str) -> Engine:
    from assay import wiring

    return wiring.engine(name)


def _executable(found: Found) -> str | None:
    """The program as it was named; None for the one in PATH."""
    named = found.program[0] if found.program else ""
    return named if "/" in named or named.startswith("python") else None


def _refuse_wrappers(found: Found) -> None:
    if found.image is not None:
        raise UsageError(
            f"the command runs {found.dialect.title} in the image {found.image}",
            hint="give the command inside of the container here, and the container as [target.launch] in assay.toml",
        )
    lost = [word for word in found.wrapper if word not in _TRANSPARENT]
    if lost:
        raise UsageError(
            f"{' '.join(lost)} stands before the engine, and would get lost",
            hint="give the engine's own command here, and the rest as [target.launch] in assay.toml",
        )


def _knowledge(adapter: Engine, target: Target, version: str | None) -> Knowledge:
    from assay.engines.declared_flags import knowledge_of
    from assay.flags import from_history, of_named_version

    if version is not None:
        return of_named_version(adapter.name, version)
    with suppress(EngineError):  # not on this machine: `assay plan` will say so
        return knowledge_of(adapter.find(target))
    return from_history(adapter.name)


def _read(found: Found, knowledge: Knowledge, adapter: Engine) -> tuple[Flags, str]:
    from assay.flags.command import launch, model_of

    given = launch(found, knowledge)
    model = model_of(given, found.dialect, knowledge)
    if model is None:
        raise UsageError(
            f"the command names no model for {found.dialect.title}", hint="add the model's folder to the command"
        )
    _refuse_rest(given.positionals, by_position=found.dialect.positional_model)
    flags: Flags = {}
    for flag in given.flags:
        what = knowledge.resolve(flag.name)
        name = flag.name if what.spec is None else what.spec.name
        if not adapter.owned.isdisjoint(what.spec.names if what.spec else (name,)):
            continue
        is_part = what.key is not None and what.spec is not None and what.spec.kind == "json"
        flags[f"{name}.{what.key}" if is_part else name] = _value(flag, negated=what.negated, key=what.key)
    return flags, model


def _refuse_rest(positionals: list[str], *, by_position: bool) -> None:
    """Words that are neither the model nor of a flag would get lost: a typing error, or what only a shell can read."""
    if rest := positionals[1 if by_position else 0 :]:
        raise UsageError(
            f"{' '.join(rest)} belongs to no flag", hint="give one launch command alone; nothing is given to a shell"
        )


def _value(flag: GivenFlag, *, negated: bool, key: str | None) -> FlagValue:
    from assay.api.command_words import as_value

    if flag.values:
        return as_value(" ".join(flag.values))
    return as_value(key) if key is not None and "." not in flag.name else not negated


def _absolute(model: str) -> str:
    from assay.models.paths import user_path

    path = user_path(model)
    return str(path.resolve()) if path.exists() else model
