"""From what people write to the words of one engine: wrappers, containers, variables, shells inside of shells.

Nothing is executed. A text is split as a shell would split it; what a shell would expand stays as it is written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from assay.errors import UsageError
from assay.flags import containers
from assay.flags.dialect import Dialect, dialects
from assay.flags.shell_words import shell_words
from assay.flags.starts import engine_at

MAX_WORDS = 2000
MAX_CHARACTERS = 200_000
_MAX_DEPTH = 4
"""Shells inside of shells; deeper nesting is nobody's launch command."""
_ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(.*)$", re.DOTALL)
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_SEPARATORS = frozenset({"&&", "||", ";", "|", "&", "\n"})
_REDIRECTION = re.compile(r"^\d*(>{1,2}|<)(&?\d+|.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An engine inside of a command."""

    dialect: Dialect
    program: tuple[str, ...]
    rest: tuple[str, ...]
    """The words that the engine reads."""
    wrapper: tuple[str, ...] = ()
    image: str | None = None
    cut_off: tuple[str, ...] = ()
    """Flags that stand first on lines behind the end of the command: a shell takes them for commands."""
    environment: Mapping[str, str] = field(default_factory=dict)


def split(words: Sequence[str]) -> list[str]:
    """The words of a command that may have been given as one text.

    Raises:
        UsageError: it is empty, too long, or a quotation is not closed.
    """
    if sum(map(len, words)) > MAX_CHARACTERS or len(words) > MAX_WORDS:
        message = f"a command of {len(words)} words is too long to be one"
        raise UsageError(message, hint=f"at most {MAX_WORDS} words and {MAX_CHARACTERS} characters are read")
    is_text = len(words) == 1 and re.search(r"\s", words[0].strip())
    found = shell_words(words[0]) if is_text else [word for word in words if word.strip() not in {"", "\\"}]
    if not found:
        raise UsageError("there is no launch command", hint="assay doctor -- vllm serve MODEL --max-num-seqs 256")
    return found


def locate(words: Sequence[str], engine: str | None = None) -> Found:
    """Find the engine that a command starts.

    Args:
        words: as `split` gives them.
        engine: take the words for this engine's when no program of it is named.

    Raises:
        UsageError: no known engine is started there, or another one than was said.
    """
    found = _locate(list(words), {}, 0)
    if found is None and engine is not None:
        return _flags_alone(words, dialects()[engine])
    if found is None:
        raise UsageError(
            f"no known engine is started by: {shlex.join(words[:8])}{' ...' if len(words) > 8 else ''}",  # noqa: PLR2004
            hint="vllm serve, python -m sglang.launch_server, trtllm-serve, llama-server; or say --engine",
        )
    if engine is not None and found.dialect.engine != engine:
        raise UsageError(
            f"--engine {engine} was said, but the command starts {found.dialect.title}", hint="leave --engine out"
        )
    return found


def _flags_alone(words: Sequence[str], dialect: Dialect) -> Found:
    """Words without a program: `--engine vllm -- --max-num-seqs 256`."""
    first = next((i for i, word in enumerate(words) if not _ASSIGNMENT.match(word) or word.startswith("-")), len(words))
    return Found(dialect=dialect, program=(), rest=tuple(words[first:]), environment=assignments(words[:first]))


def _locate(words: list[str], environment: Mapping[str, str], depth: int) -> Found | None:
    """The engine in the first command that starts one; variables set by earlier ones go on."""
    if depth > _MAX_DEPTH:
        return None
    so_far, commands = dict(environment), _commands(words)
    for at, command in enumerate(commands):
        found = _locate_one(command, so_far, depth)
        if found is not None:
            behind = [later[0] for later in commands[at + 1 :] if later[0].startswith("--")]
            return replace(found, cut_off=(*found.cut_off, *behind))
        if command[0] == "export" or all(_ASSIGNMENT.match(word) for word in command):
            so_far |= assignments(command)
    return None


def _commands(words: Sequence[str]) -> list[list[str]]:
    """Between `&&`, `;` and the like; redirections are left out."""
    commands: list[list[str]] = [[]]
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in _SEPARATORS or (word and set(word) <= set(";&|\n()")):
            commands.append([])
        elif (redirection := _REDIRECTION.match(word)) and "{" not in word:
            skip = not redirection.group(2)
        else:
            commands[-1].append(word)
    return [command for command in commands if command]


def _locate_one(words: list[str], environment: Mapping[str, str], depth: int) -> Found | None:
    container = _container(words, environment, depth)
    if container is not None:
        return container
    for at, word in enumerate(words):
        name = PurePath(word).name
        if name in _SHELLS and (inner := _inner_script(words[at + 1 :])):
            found = _locate(shell_words(inner), {**environment, **assignments(words[:at])}, depth + 1)
            if found is not None:
                return found
        start = engine_at(words, at)
        if start is not None:
            dialect, length = start
            return Found(
                dialect=dialect,
                program=tuple(words[at : at + length]),
                rest=tuple(words[at + length :]),
                wrapper=tuple(word for word in words[:at] if not _ASSIGNMENT.match(word)),
                environment={**environment, **assignments(words[:at])},
            )
    return None


def _inner_script(words: Sequence[str]) -> str | None:
    """What follows the `-c` of a shell."""
    for at, word in enumerate(words):
        if not word.startswith("-"):
            return None
        if word.endswith("c") and not word.startswith("--"):
            return words[at + 1] if at + 1 < len(words) else None
    return None


def _container(words: list[str], environment: Mapping[str, str], depth: int) -> Found | None:
    """The engine inside of `docker run [options] IMAGE [command]`."""
    box = containers.unpack(words)
    if box is None:
        return None
    inside = {**environment, **assignments(box.variables)}
    found = _locate(box.command, inside, depth + 1)
    if found is None and not box.has_entrypoint:
        found = _by_entrypoint(box.image, box.command)
    if found is None:
        return None
    wrapper = tuple(word for word in box.wrapper if not _ASSIGNMENT.match(word))
    return replace(found, wrapper=wrapper, image=box.image, environment={**inside, **found.environment})


def _by_entrypoint(image: str, command: Sequence[str]) -> Found | None:
    """An image that starts its engine by itself; everything after it are the engine's words."""
    name = image.partition("@")[0].rsplit(":", maxsplit=1)[0]
    found = next((each for each in dialects().values() if any(name.endswith(one) for one in each.entrypoints)), None)
    return None if found is None else Found(dialect=found, program=(), rest=tuple(command))


def assignments(words: Sequence[str]) -> dict[str, str]:
    """Variables among words that look like `NAME=value`."""
    return {match.group(1): match.group(2) for word in words if (match := _ASSIGNMENT.match(word))}
