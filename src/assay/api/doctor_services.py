"""A container as a file of Compose or Kubernetes describes it, taken for the `docker run` that starts the same.

The file's text is the command itself, or the file is named: `docker compose -f FILE up`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from assay.api.doctor_compose import Files

_IMAGE = re.compile(r"^[ \t]*(?:-[ \t]+)?image[ \t]*:[ \t]*\S", re.MULTILINE)
_WITH_DEFAULT = re.compile(r"\$\{\w{1,80}:?-([^${}]{0,200})\}")
"""`${TAG:-v0.11.0}` of Compose: of an image the default is taken."""
_LONGEST_BITS = 64
"""Of a whole number that is written out: Python refuses to write one of thousands of digits."""
_INSIDE = ("entrypoint", "command", "args")
_MOST = 50
"""Containers of one file that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is to be taken apart."""

    words: Sequence[str]
    notes: Sequence[str] = ()
    """What was read for it."""


def as_command(words: Sequence[str], engine: str | None) -> Command:
    """The words of the first container that starts an engine; the same words where they name and are no such file.

    Raises:
        UsageError: a file that is named is not here, is no YAML, or starts no engine.
    """
    if len(words) == 1 and _IMAGE.search(words[0]):
        contents: list[Any] = []
        with suppress(UsageError):  # told where the command is taken apart
            contents = _loaded(words[0], "the text")
        found = _commands(_containers(contents), engine)
        return Command(words=found[0] if found else words)
    named = _named(words)
    if named is None:
        return Command(words=words)
    return _of_files(named, engine)


def _named(words: Sequence[str]) -> Files | None:
    from assay.api.doctor_compose import files_of
    from assay.flags.words import split

    try:
        plain = split(words)
    except UsageError:  # told where the command is taken apart
        return None
    return files_of(plain)


def _of_files(files: Files, engine: str | None) -> Command:
    from assay.api.doctor_compose import merged
    from assay.api.doctor_files import text_of

    contents: list[Any] = []
    for name in files.names:
        _refuse_stream(name)
        file = text_of(name)
        if file.text is None:
            raise UsageError(
                f"{file.path} {file.reason}",
                hint='run this where the file is, or give its text: assay doctor -- "$(cat FILE)"',
            )
        contents += _loaded(file.text, file.path)
    services = merged(contents, files.services)
    found = _commands(_containers(services or contents), engine) if services or not files.services else []
    told = ", ".join(files.names)
    if not found:
        which = f" as {', '.join(files.services)}" if files.services else ""
        raise UsageError(
            f"no container with an image and a command of a known engine is in {told}{which}",
            hint="name the service behind `up`; what `extends`, `include` and a build bring is not read",
        )
    more = f"; it is the first of {len(found)} that start an engine" if len(found) > 1 else ""
    is_open = any("${" in word for word in found[0])
    unknown = "; what stands in place of ${...} is not known here" if is_open else ""
    return Command(words=found[0], notes=[f"read of {told}{more}{unknown}"])


def _refuse_stream(name: str) -> None:
    """Refuse what is no file: an address is not fetched, and standard input is not read."""
    from assay.store.redact import redact

    hint = 'give its text: assay doctor -- "$(cat FILE)"'
    if "://" in name:
        raise UsageError(f"{redact(name)} is an address, and nothing is fetched", hint=f"fetch it yourself, and {hint}")
    if name == "-":
        raise UsageError("the file is standard input (-f -), which is not read", hint=hint)


def _commands(containers: Iterator[Mapping[str, Any]], engine: str | None) -> list[list[str]]:
    """The commands of those that start an engine."""
    from assay.flags.command import parse

    found: list[list[str]] = []
    for container in itertools.islice(containers, _MOST):
        command = _command(container)
        try:
            parse(command, engine)
        except UsageError:
            continue
        if not found:
            _refuse_nested(container)
        found.append(command)
    return found


def _refuse_nested(container: Mapping[str, Any]) -> None:
    """Refuse a list that holds more than words: `- --port: 8000` is a mapping, which would be passed over."""
    for key in _INSIDE:
        items = container.get(key)
        if isinstance(items, list) and any(isinstance(item, list | dict) for item in items):
            raise UsageError(
                f"`{key}` of the container with an engine holds a list or a mapping in place of a word",
                hint="write every word as an item of its own: `- --port` and `- '8000'`, or `- --port=8000`",
            )


def _loaded(text: str, path: Path | str) -> list[Any]:
    """The documents of a YAML file.

    Raises:
        UsageError: it is none.
    """
    import yaml

    from assay.api.doctor_files import yaml_loader, yaml_problem

    try:
        return list(yaml.load_all(text, yaml_loader()))
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply to be read", hint="mend the file") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{path} is no YAML: {yaml_problem(error)}", hint="mend the file") from error


def _containers(content: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping with an image and words for it, each once: aliases of YAML repeat one without end."""
    left, seen = [content], set[int]()
    for one in left:  # grows while it is read
        if id(one) in seen or not isinstance(one, dict | list):
            continue
        seen.add(id(one))
        if isinstance(one, dict) and isinstance(one.get("image"), str) and ("command" in one or "args" in one):
            yield one
        left += list(one.values()) if isinstance(one, dict) else one


def _command(container: Mapping[str, Any]) -> list[str]:
    """Compose says `entrypoint` and `command`, Kubernetes `command` and `args`."""
    inside = [word for key in _INSIDE for word in _words(container.get(key))]
    variables = {**_variables(container.get("environment")), **_variables(container.get("env"))}
    given = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
    image = _WITH_DEFAULT.sub(r"\1", str(container["image"]))
    return ["docker", "run", *given, image, *inside]


def _words(value: Any) -> list[str]:
    from assay.flags.shell_words import shell_words

    if isinstance(value, list):
        return [str(word) for word in value if _is_plain(word)]
    try:
        return [word for word in shell_words(value) if word.strip()] if isinstance(value, str) else []
    except UsageError:
        return []


def _variables(value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {str(name): str(item) for name, item in value.items() if _is_plain(name) and _is_plain(item)}
    rows = value if isinstance(value, list) else []
    pairs = [str(row).partition("=") for row in rows if isinstance(row, str)]
    named = {
        row["name"]: str(row["value"])
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("name"), str) and _is_plain(row.get("value"))
    }
    return {name: item for name, joined, item in pairs if joined} | named


def _is_plain(value: Any) -> bool:
    """Whether it is written out: a list of lists of aliases would grow without end."""
    return isinstance(value, str | float) or (isinstance(value, int) and value.bit_length() <= _LONGEST_BITS)
