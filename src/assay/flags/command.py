"""A launch command, taken apart: which engine, which flags with which values, which variables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.flags.containers import is_one_of, name_and_tag
from assay.flags.dialect import Dialect
from assay.flags.knowledge import Knowledge
from assay.flags.spec import FlagSpec
from assay.flags.words import Found, locate, split
from assay.records.doctor import GivenFlag, Launch

_NUMBER = re.compile(r"^-(\d|\.\d)")
_BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0"})
_TAG_VERSION = re.compile(r"(?:^|[^\d])v?(\d+\.\d+(?:\.\d+)?(?:\.post\d+|rc\d+)?)")


def parse(words: Sequence[str], engine: str | None = None) -> Found:
    """Split a command and find the engine in it.

    Raises:
        UsageError: it cannot be split, or starts no known engine.
    """
    return locate(split(words), engine)


def launch(found: Found, knowledge: Knowledge) -> Launch:
    """The flags of a command, each with the words that belong to it by what the engine takes."""
    flags, positionals = _bound(found.rest, knowledge)
    return Launch(
        engine=found.dialect.engine,
        program=list(found.program),
        wrapper=list(found.wrapper),
        image=found.image,
        environment=dict(found.environment),
        flags=flags,
        positionals=positionals,
    )


def image_version(image: str, dialect: Dialect) -> str | None:
    """The engine's version that an image's tag names; None when it names none, or the image is somebody else's.

    >>> from assay.flags.dialect import dialects
    >>> image_version("vllm/vllm-openai:v0.11.0", dialects()["vllm"])
    '0.11.0'
    """
    if not is_one_of(image, dialect.images):
        return None
    found = _TAG_VERSION.search(name_and_tag(image)[1])
    return found.group(1) if found else None


def model_of(given: Launch, dialect: Dialect, knowledge: Knowledge) -> str | None:
    """The model that a command serves, as it was named."""
    wanted = {knowledge.find(name) for name in dialect.model} - {None}
    for flag in reversed(given.flags):
        is_named = flag.name in dialect.model or knowledge.find(flag.name) in wanted
        if is_named and flag.values:
            return flag.values[0]
    return given.positionals[0] if given.positionals and dialect.positional_model else None


def _bound(words: Sequence[str], knowledge: Knowledge) -> tuple[list[GivenFlag], list[str]]:
    flags: list[GivenFlag] = []
    positionals: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not _is_flag(word):
            positionals.append(word)
            continue
        name, joined, value = word.partition("=")
        if joined and not name.strip("-"):
            positionals.append(word)
        elif joined:
            flags.append(GivenFlag(name=name, values=[value], joined=True))
        else:
            taken = _taken(words[at:], knowledge.resolve(name).spec or _formerly(name, knowledge), name)
            flags.append(GivenFlag(name=name, values=list(words[at : at + taken])))
            at += taken
    return flags, positionals


def _formerly(name: str, knowledge: Knowledge) -> FlagSpec | None:
    """What a flag took in the last version that had it: its words are no strays, whatever became of it."""
    spans = knowledge.past.of(name.replace("_", "-") if knowledge.dialect.underscores else name)
    return spans[-1].spec if spans else None


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)


def _taken(following: Sequence[str], spec: FlagSpec | None, name: str) -> int:
    """How many of the following words belong to a flag."""
    num_values = next((i for i, word in enumerate(following) if _is_flag(word)), len(following))
    if num_values == 0:
        return 0
    if spec is None:
        return 0 if name.startswith("--no-") else 1
    if spec.is_switch:  # a word that looks like its value is told as such, though the engine would not take it
        return 1 if following[0].lower() in _BOOLEANS else 0
    return num_values if spec.many else 1
