"""Which engine a word of a command starts: a program, a script, or a module behind `python -m`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from assay.flags.dialect import Dialect, dialects

_PYTHON = re.compile(r"^python[\d.]*$")


def engine_at(words: Sequence[str], at: int) -> tuple[Dialect, int] | None:
    """The engine that starts at this word, and how many words that takes; None: none does."""
    name = PurePath(words[at]).name
    for dialect in dialects().values():
        length = _length(dialect.programs.get(name), words[at + 1 :])
        if length or _script(words[at], dialect):
            return dialect, length or 1
    return _python(words, at)


def _length(subcommands: Sequence[str] | None, following: Sequence[str]) -> int:
    """How many words start an engine: its program and what it is told to do; 0: it does not serve.

    Args:
        subcommands: that serve; "" among them: it serves without one as well, when anything follows; none: it does
            nothing else. None: not a program of the engine.
        following: the words after the program.
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


def _python(words: Sequence[str], at: int) -> tuple[Dialect, int] | None:
    if not _PYTHON.match(PurePath(words[at]).name):
        return None
    for offset, word in enumerate(words[at + 1 : at + 8], start=1):
        if word == "-m" and at + offset + 1 < len(words):
            return _module(words[at + offset + 1], words[at + offset + 2 :], offset + 2)
        if word.endswith(".py"):
            found = next((each for each in dialects().values() if _script(word, each)), None)
            return (found, offset + 1) if found else None
    return None


def _module(module: str, following: Sequence[str], taken: int) -> tuple[Dialect, int] | None:
    """The engine behind `python -m MODULE`: a module that serves, or one that is told to (`... cli.main serve`)."""
    for dialect in dialects().values():
        if module in dialect.modules:
            return dialect, taken
        if length := _length(dialect.programs.get(module), following):
            return dialect, taken + length - 1
    return None
