"""Words of a shell as the commands that they make: what parts them, and the variables before each."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(?!=)(.*)$", re.DOTALL)
"""`vllm==0.11.0` is a package to install."""
_LIST = re.compile(r"^\s*(?:-?\s*(?:command|args|entrypoint|CMD|ENTRYPOINT)\s*:?\s*)?(\[.*\])\s*,?\s*$", re.DOTALL)
_KEYWORDS = frozenset({"if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "{", "}"})
"""Of a shell, before a command."""
PUNCTUATION = frozenset("();&|\n")
"""Letters of the words that part commands, or group them."""
_REDIRECTION = re.compile(r"^\d*(>{1,2}|<)(&?\d+|.*)$")


def commands(words: Sequence[str]) -> list[list[str]]:
    """Between `&&`, `;` and the like; redirections are left out."""
    found: list[list[str]] = [[]]
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word and set(word) <= PUNCTUATION:
            found.append([])
        elif word in _KEYWORDS and not found[-1]:
            continue
        elif (redirection := _REDIRECTION.match(word)) and "{" not in word:
            skip = not redirection.group(2)
        else:
            found[-1].append(word)
    return [command for command in found if command]


def inner_script(words: Sequence[str]) -> str | None:
    """What follows the `-c` of a shell."""
    for at, word in enumerate(words):
        if not word.startswith("-"):
            return None
        if word.endswith("c") and not word.startswith("--"):
            return words[at + 1] if at + 1 < len(words) else None
    return None


def listed(text: str) -> list[str] | None:
    """A command as files of containers write it: `command: ["vllm", "serve", "M"]`; None where it is no such list."""
    form = _LIST.match(text)
    try:
        words = json.loads(form[1]) if form else None
    except (ValueError, RecursionError):
        return None
    return words if isinstance(words, list) and words and all(isinstance(word, str) for word in words) else None


def assignments(words: Sequence[str]) -> dict[str, str]:
    """Variables among words that look like `NAME=value`."""
    return {match.group(1): match.group(2) for word in words if (match := _ASSIGNMENT.match(word))}


def is_assignment(word: str) -> bool:
    """Whether a word sets a variable."""
    return _ASSIGNMENT.match(word) is not None


def without_assignments(words: Sequence[str]) -> tuple[str, ...]:
    """The other words."""
    return tuple(word for word in words if not _ASSIGNMENT.match(word))
