"""Secrets that would be lost on the way into the record: refused, with the way that works."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.base import Flags
    from assay.records.hypothesis import Hypothesis, Optimization
    from assay.records.spec import Target

VARIABLES = {"--hf-token": "HF_TOKEN", "-hft": "HF_TOKEN"}
"""What an engine reads in place of a flag. Source: huggingface_hub, environment variables; llama.cpp's own help."""

REMEDIES = {
    "model": "leave user and password out; export what the engine reads in their place (for s3:// AWS_ACCESS_KEY_ID "
    "and AWS_SECRET_ACCESS_KEY) in the shell that runs Assay: the server inherits it. A folder whose name looks like a "
    "token needs another name",
    "executable": "name the program alone",
    "url": "leave it out; api_key_env names the variable that holds the key",
    "api_key_env": "give the name of the variable that holds the key, and not the key itself",
    "launch": "give it as target.env in assay.toml, whose values are masked in the record",
}
"""What to do about a secret, by the part of a target that holds it."""


def refuse_secret_flags(flags: Flags, where: str) -> None:
    """Refuse flags whose value is a secret: the record masks it, and the server would be given the mask.

    Raises:
        UsageError: there is one.
    """
    if not (names := _secrets(flags)):
        return
    known = [VARIABLES[name] for name in names if name in VARIABLES]
    how = (
        f"export {known[0]}=... in the shell that runs Assay" if known else "export the variable that the engine reads"
    )
    raise UsageError(
        f"{where}: {', '.join(names)} holds a secret, and assay.toml and the record keep none",
        hint=f"remove it; {how}: the server inherits it. (Assay's servers listen on loopback and need no API key.)",
    )


def refuse_secret_target(target: Target) -> None:
    """Refuse a target that the record would hold masked: its flags, or an address that holds a user or a key.

    Its variables may hold secrets: a server is given those of assay.toml, and the record masks them.

    Raises:
        UsageError: it holds a secret.
    """
    refuse_secret_flags(target.flags, "target.flags")
    named = {name: getattr(target, name) for name in REMEDIES if name != "launch"}
    options = {"launch": " ".join(target.launch.options)} if target.launch else {}
    if names := _secrets({**named, **options}):
        raise UsageError(
            f"target.{names[0]} holds a secret, and assay.toml and the record keep none", hint=REMEDIES[names[0]]
        )


def refuse_secret_variables(env: Mapping[str, str]) -> None:
    """Refuse to write variables with a secret into assay.toml; who writes them there by hand has decided it.

    Raises:
        UsageError: there is one.
    """
    if names := _secrets(env):
        raise UsageError(
            f"target.env: {', '.join(names)} holds a secret, and none is written down",
            hint=f"remove it; export {names[0]}=... in the shell that runs Assay: the server inherits it. Or add it to "
            "target.env by hand: the record masks its values",
        )


def refuse_secret_deltas(hypotheses: Iterable[Hypothesis]) -> None:
    """Refuse improvement documents and entries that hold secrets.

    Raises:
        UsageError: there is one.
    """
    refuse_secrets_of(one.optimization for one in hypotheses)


def refuse_secrets_of(optimizations: Iterable[Optimization]) -> None:
    """The same for what was not made a hypothesis yet.

    Raises:
        UsageError: there is one.
    """
    for one in optimizations:
        refuse_secret_flags(one.flags, f"{one.id}: flags")
        if names := _secrets(one.env):
            raise UsageError(
                f"{one.id}: env: {', '.join(names)} holds a secret, and the record keeps none",
                hint="remove it there; give it as target.env in assay.toml, whose values are masked in the record, "
                "or export it in the shell that runs Assay",
            )


def _secrets(values: Mapping[str, object]) -> list[str]:
    from assay.store.redact import redact

    shown = {name: _read(value) for name, value in values.items()}
    masked = redact(shown)
    return [name for name, value in shown.items() if masked[name] != value]


def _read(value: object) -> object:
    """JSON as what it says: names in it then tell secrets of any kind, a number as well; what is none stays a text."""
    if not (isinstance(value, str) and value.lstrip().startswith(("{", "["))):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
