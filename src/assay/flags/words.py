"""From what people write to the words of one engine: wrappers, containers, variables, shells inside of shells.

Nothing is executed. A text is split as a shell would split it; what a shell would expand stays as it is written.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from assay.errors import UsageError
from assay.flags import containers
from assay.flags.dialect import Dialect, dialects
from assay.flags.shell_commands import (
    assignments,
    commands,
    inner_script,
    is_assignment,
    listed,
    without_assignments,
)
from assay.flags.shell_variables import arrays, expanded
from assay.flags.shell_words import shell_words
from assay.flags.starts import engine_at

MAX_WORDS = 2000
MAX_CHARACTERS = 200_000
_MAX_DEPTH = 4
"""Shells inside of shells; deeper nesting is nobody's launch command."""
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_RUN_A_TEXT = frozenset(
    {"tmux", "screen", "ssh", "eval", "su", "runuser", "script", "flock", "sbatch", "watch", "parallel"}
)
"""Programs that give a text to a shell."""
_MOST_SHOWN = 8
_MOST_TEXTS = 50
"""Texts for a shell within one command that are looked into."""
_IMAGE = frozenset({"--container-image", "--image"})
_KEYS = re.compile(r"(?:\\[nr]|\^M)+\Z")
"""How `screen -X stuff` is told to press the return key."""
_OPTION = re.compile(r"^--?[\w-]+=")
_ELSEWHERE = frozenset({"ssh", "kubectl", "oc", "docker", "podman", "nerdctl", "enroot", "wsl"})
"""Programs that run the rest on another machine, or where other files are."""


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

    @property
    def required(self) -> str | None:
        """The version of the engine that the command asks to be installed for it: `uv run --with vllm==0.11.0`."""
        pinned = re.compile(rf"(?:--with=|--from=)?{re.escape(self.dialect.package or '?')}(?:\[[\w,-]*\])?==([\w.]+)")
        found = [match[1] for word in self.wrapper if (match := pinned.fullmatch(word))]
        return found[-1] if found else None

    @property
    def is_elsewhere(self) -> bool:
        """Whether the engine is another one than the one on this machine."""
        return (
            self.image is not None
            or self.required is not None
            or not _ELSEWHERE.isdisjoint(PurePath(word).name for word in self.wrapper)
        )


def split(words: Sequence[str]) -> list[str]:
    """The words of a command that may have been given as one text.

    Raises:
        UsageError: it is empty, too long, or a quotation is not closed.
    """
    if sum(map(len, words)) > MAX_CHARACTERS or len(words) > MAX_WORDS:
        message = f"a command of {len(words)} words is too long to be one"
        raise UsageError(message, hint=f"at most {MAX_WORDS} words and {MAX_CHARACTERS} characters are read")
    is_text = len(words) == 1 and re.search(r"\s", words[0].strip())
    of_list = listed(words[0]) if is_text else None
    found = of_list or shell_words(words[0]) if is_text else [word for word in words if word.strip() not in {"", "\\"}]
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
        told = [word for word in words if word.strip()]
        raise UsageError(
            f"no known engine is started by: {_shown_start(told)}",
            hint="vllm serve, python -m sglang.launch_server, trtllm-serve, llama-server; or say --engine",
        )
    if engine is not None and found.dialect.engine != engine:
        raise UsageError(
            f"--engine {engine} was said, but the command starts {found.dialect.title}", hint="leave --engine out"
        )
    return found


def _shown_start(words: Sequence[str]) -> str:
    """How a command begins, up to its first option or `name: value`: what comes after may hold a secret."""
    begun = list(itertools.takewhile(lambda word: not word.startswith("-") and ":" not in word, words[:_MOST_SHOWN]))
    shown = [f"{word.partition('=')[0]}=..." if "=" in word else shlex.quote(word) for word in begun]
    return " ".join(shown if len(begun) == len(words) else [*shown, "..."])


def _flags_alone(words: Sequence[str], dialect: Dialect) -> Found:
    """Words without a program: `--engine vllm -- --max-num-seqs 256`."""
    first = next((i for i, word in enumerate(words) if not is_assignment(word) or word.startswith("-")), len(words))
    return Found(dialect=dialect, program=(), rest=tuple(words[first:]), environment=assignments(words[:first]))


def _locate(words: list[str], environment: Mapping[str, str], depth: int) -> Found | None:
    """The engine in the first command that starts one; variables set by earlier ones go on."""
    if depth > _MAX_DEPTH:
        return None
    plain, lists = arrays(words)
    so_far, parts = dict(environment), commands(plain)
    for at, written in enumerate(parts):
        command = expanded(written, so_far, lists)
        found = _locate_one(command, so_far, depth) if command else None
        if found is not None:
            behind = [later[0] for later in parts[at + 1 :] if later[0].startswith("--")]
            return replace(found, cut_off=(*found.cut_off, *behind))
        if command[:1] == ["export"] or all(is_assignment(word) for word in command):
            so_far |= assignments(command)
    return None


def _locate_one(words: list[str], environment: Mapping[str, str], depth: int) -> Found | None:
    container = _container(words, environment, depth)
    if container is not None:
        return container
    num_texts = 0
    for at, word in enumerate(words):
        name = PurePath(word).name
        if name in _SHELLS and num_texts < _MOST_TEXTS and (inner := inner_script(words[at + 1 :])):
            num_texts += 1
            found = _within(inner, words[:at], environment, depth)
            if found is not None:
                return found
        start = engine_at(words, at)
        if start is not None:
            return Found(
                dialect=start.dialect,
                program=start.program,
                rest=tuple(words[at + start.length :]),
                wrapper=(*without_assignments(words[:at]), *start.launcher),
                image=_image_of_step(words[:at]),
                environment={**environment, **assignments(words[:at])},
            )
    return _in_a_text(words, environment, depth)


def _in_a_text(words: list[str], environment: Mapping[str, str], depth: int) -> Found | None:
    """The engine in a text that a program gives to a shell: `tmux new -d 'vllm serve M'`, `sbatch --wrap="..."`."""
    if not any(PurePath(word).name in _RUN_A_TEXT for word in words):
        return None
    texts = [
        (at, text)
        for at, word in enumerate(words)
        if re.search(r"\s", text := _KEYS.sub("", _OPTION.sub("", word, count=1)).strip())
    ]
    for at, text in texts[:_MOST_TEXTS]:
        with suppress(UsageError):  # a text that no shell would read
            found = _within(text, words[:at], environment, depth)
            if found is not None:
                return found
    return None


def _within(text: str, before: Sequence[str], environment: Mapping[str, str], depth: int) -> Found | None:
    """The engine in a text for a shell; what stands before that stays part of the wrapper."""
    found = _locate(shell_words(text), {**environment, **assignments(before)}, depth + 1)
    return None if found is None else replace(found, wrapper=(*without_assignments(before), *found.wrapper))


def _image_of_step(before: Sequence[str]) -> str | None:
    """The image of a step of Slurm, or of a pod: `srun --container-image=vllm/vllm-openai:v0.11.0`."""
    for at, word in enumerate(before):
        name, joined, value = word.partition("=")
        if name in _IMAGE:
            return value if joined else next(iter(before[at + 1 :]), None)
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
    return replace(
        found, wrapper=without_assignments(box.wrapper), image=box.image, environment={**inside, **found.environment}
    )


def _by_entrypoint(image: str, command: Sequence[str]) -> Found | None:
    """An image that starts its engine by itself; everything after it are the engine's words."""
    found = next((each for each in dialects().values() if containers.is_one_of(image, each.entrypoints)), None)
    return None if found is None else Found(dialect=found, program=(), rest=tuple(command))
