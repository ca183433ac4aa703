"""Secrets that would be lost on the way into the record: refused, with the way that works."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.base import Flags
    from assay.records.hypothesis import Hypothesis, Optimization

VARIABLES = {"--hf-token": "HF_TOKEN", "-hft": "HF_TOKEN"}
"""What an engine reads in place of a flag. Source: huggingface_hub, environment variables; llama.cpp's own help."""


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

    masked = redact(dict(values))
    return [name for name, value in values.items() if masked[name] != value]
