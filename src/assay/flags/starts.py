"""Which engine a word of a command starts: a program, a script, or a module behind `python -m`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from assay.flags.dialect import Dialect, dialects

_PYTHON = re.compile(r"^python[\d.]*$")
_MOST = 8
"""Words of Python's own before the module."""
_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed"})
_LAUNCHER_MODULES = frozenset({"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"})
"""Programs and modules that start a module of Python, given with `-m` or `--module`, once for each rank."""
_MOST_OF_LAUNCHER = 40


@dataclass(frozen=True, slots=True)
class Start:
    """An engine that begins at a word."""

    dialect: Dialect
    program: tuple[str, ...]
    """The words that start it."""
    length: int
    """How many words of the command that takes."""
    launcher: tuple[str, ...] = ()
    """Those of them that start Python in the engine's place: `torchrun --nproc-per-node 8`."""


def engine_at(words: Sequence[str], at: int) -> Start | None:
    """The engine that starts at this word; None: none does."""
    name = PurePath(words[at]).name
    for dialect in dialects().values():
        length = _length(dialect.programs.get(name), words[at + 1 : at + 2])
        if length or _script(words[at], dialect):
            return Start(dialect, tuple(words[at : at + (length or 1)]), length or 1)
    if _PYTHON.match(name):
        return _python(words, at)
    return _launched(words, at) if name in _LAUNCHERS else None


def _length(subcommands: Sequence[str] | None, following: Sequence[str]) -> int:
    """How many words start an engine: its program and what it is told to do; 0: it does not serve.

    Args:
        subcommands: that serve; "" among them: it serves without one as well, when anything follows; none: it does
            nothing else. None: not a program of the engine.
        following: the word after the program; none where that is the last.
    """
    if subcommands is None:
        return 0
    if following and following[0] and following[0] in subcommands:
        return 2
    return 1 if not subcommands or ("" in subcommands and following) else 0


def _script(word: str, dialect: Dialect) -> bool:
    """Whether a path is one of the engine's modules: `/x/vllm/entrypoints/openai/api_server.py`."""
    plain = word.removesuffix(".py").replace("/", ".")
    return word.endswith(".py") and any(plain.endswith(module) for module in dialect.modules)


def _python(words: Sequence[str], at: int) -> Start | None:
    for offset, word in enumerate(words[at + 1 : at + _MOST], start=1):
        if word == "-m" and at + offset + 1 < len(words):
            if words[at + offset + 1] in _LAUNCHER_MODULES:
                return _launched(words, at)
            found = _module(words[at + offset + 1], words[at + offset + 2 : at + offset + 3], offset + 2)
            return Start(found[0], tuple(words[at : at + found[1]]), found[1]) if found else None
        if word.endswith(".py"):
            script = next((each for each in dialects().values() if _script(word, each)), None)
            return Start(script, tuple(words[at : at + offset + 1]), offset + 1) if script else None
    return None


def _launched(words: Sequence[str], at: int) -> Start | None:
    """The module that a launcher starts: `torchrun --nproc-per-node 8 -m sglang.launch_server`; Python is beside it."""
    beside = PurePath(words[at])
    python = str(beside.with_name("python")) if len(beside.parts) > 1 else "python"
    for offset in range(1, min(_MOST_OF_LAUNCHER, len(words) - at - 1)):
        if words[at + offset] not in {"-m", "--module"}:
            continue
        found = _module(words[at + offset + 1], words[at + offset + 2 : at + offset + 3], 2)
        if found is not None:
            module = words[at + offset + 1 : at + offset + found[1]]
            return Start(found[0], (python, "-m", *module), offset + found[1], tuple(words[at : at + offset]))
    return None


def _module(module: str, following: Sequence[str], taken: int) -> tuple[Dialect, int] | None:
    """The engine behind `python -m MODULE`: a module that serves, or one that is told to (`... cli.main serve`)."""
    for dialect in dialects().values():
        if module in dialect.modules:
            return dialect, taken
        if length := _length(dialect.programs.get(module), following):
            return dialect, taken + length - 1
    return None
