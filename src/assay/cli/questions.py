"""What `assay init` was given, and what it asks a person at a terminal for."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import click

from assay.errors import UsageError

EMBEDDED = "embedded"
DEFAULT_CONCURRENCY = 8
CONCURRENCY = click.IntRange(1, 4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTarget:
    """The options of `assay init` that say what is optimized; None where an option was not given."""

    model: str | None
    launch: str | None
    url: str | None
    executable: str | None
    concurrency: int | None
    api_key_env: str | None = None
    engine_version: str | None = None

    def refuse_contradictions(self) -> None:
        """Refuse what could only be ignored.

        Raises:
            UsageError: two sources, or an option that the source has its own answer to.
        """
        sources = {"--model": self.model, "--command": self.launch, "--url": self.url}
        given = [option for option, value in sources.items() if value is not None]
        if self.api_key_env and not self.url:
            raise UsageError("--api-key-env belongs to --url", hint="add the server's address: --url http://...")
        if self.engine_version and not self.launch:
            hint = "add today's launch command: --command '...'"
            raise UsageError("--engine-version belongs to --command", hint=hint)
        if len(given) > 1 and given != ["--model", "--url"]:
            raise UsageError(f"{' and '.join(given)} contradict each other", hint="give one of them")
        if given and not sources[given[0]]:
            raise UsageError(f"{given[0]} is empty", hint="see `assay init --help`")
        extras = {"--executable": self.executable, "--concurrency": self.concurrency}
        unused = [option for option, value in extras.items() if value is not None]
        if unused and given and given != ["--model"]:
            where = "target.executable and workload.concurrency"
            raise UsageError(
                f"{' and '.join(unused)} cannot be given with {given[-1]}",
                hint=f"edit {where} in assay.toml afterwards",
            )


def ask(given: GivenTarget) -> GivenTarget:
    """Ask for what is missing, on stderr.

    Raises:
        UsageError: there is no terminal to ask at.
    """
    if not sys.stdin.isatty():
        raise UsageError("no model was given", hint="give one of --model FILE.gguf, --command '...' and --url URL")
    model = click.prompt(
        "Model: path of a GGUF file, or embedded", default=EMBEDDED, value_proc=_checked_model, err=True
    )
    concurrency = given.concurrency or click.prompt(
        "Requests in flight at any time", default=DEFAULT_CONCURRENCY, type=CONCURRENCY, err=True
    )
    return replace(given, model=model, concurrency=concurrency)


def model_path(model: str) -> str:
    """Make a model's path absolute; `embedded` stays.

    Raises:
        UsageError: there is no such file.
    """
    if model == EMBEDDED:
        return model
    from assay.models.paths import user_path

    path = user_path(model).resolve()
    if not path.is_file():
        raise UsageError(f"there is no model file {path}", hint="name a GGUF file, or `embedded`")
    return str(path)


def _checked_model(text: str) -> str:
    try:
        return model_path(text)
    except UsageError as error:
        raise click.BadParameter(error.message) from error
