"""Variables and arrays that a script sets itself, put where it uses them: `ARGS="--tp 4"`, then `vllm serve M $ARGS`.

Nothing is executed. What the script does not set (`$SLURM_NODEID`), and every other expansion, stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from assay.errors import UsageError
from assay.flags.shell_commands import PUNCTUATION
from assay.flags.shell_words import shell_words

_USE = re.compile(r"\$(?:\{(\w{1,80})\}|(\w{1,80}))")
_ALL_OF_ARRAY = re.compile(r"\$\{(\w{1,80})\[[@*]\]\}")
_ARRAY = re.compile(r"^([A-Za-z_]\w{0,80})\+?=$")
_LONGEST = 20_000
"""Characters that a command may grow by: variables of variables double each time."""


def arrays(words: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The words without `NAME=( ... )`, and what each such array holds, added parts (`+=`) included."""
    rest: list[str] = []
    found: dict[str, list[str]] = {}
    at, is_open = 0, False
    while at < len(words):
        name = _ARRAY.match(words[at])
        begins = name is not None and words[at + 1 : at + 2] == ["("]
        end = _end_of_array(words, at + 2) if begins and not is_open else None
        is_open |= begins and end is None
        if name is None or end is None:
            rest.append(words[at])
            at += 1
            continue
        inside = [word for word in words[at + 2 : end] if not set(word) <= PUNCTUATION]
        found[name[1]] = [*(found.get(name[1], []) if "+" in words[at] else []), *inside]
        rest.append("\n")
        at = end + 1
    return rest, found


def expanded(words: Sequence[str], variables: Mapping[str, str], lists: Mapping[str, list[str]]) -> list[str]:
    """The words with the values of known variables.

    A word that is one variable becomes several where the value holds flags, or stands where the program does: whether
    it was quoted is not known here, and nobody quotes those.
    """
    found: list[str] = []
    left = _LONGEST
    for word in words:
        grown = _growth(word, variables, lists)
        if grown is None or grown > left:
            found.append(word)
        else:
            left -= max(grown, 0)
            found += _with_values(word, variables, lists, is_first=not found)
    return found


def _growth(word: str, variables: Mapping[str, str], lists: Mapping[str, list[str]]) -> int | None:
    """By how many characters the values are longer than what stands for them; None where nothing does."""
    array = _ALL_OF_ARRAY.fullmatch(word)
    if array is not None:
        return sum(map(len, lists[array[1]])) if array[1] in lists else None
    uses = [use for use in _USE.finditer(word) if (use[1] or use[2]) in variables]
    return sum(len(variables[use[1] or use[2]]) - len(use[0]) for use in uses) if uses else None


def _with_values(
    word: str, variables: Mapping[str, str], lists: Mapping[str, list[str]], *, is_first: bool
) -> list[str]:
    if array := _ALL_OF_ARRAY.fullmatch(word):
        return lists[array[1]]
    plain = _USE.sub(lambda use: variables.get(use[1] or use[2], use[0]), word)
    is_several = _USE.fullmatch(word) and (is_first or re.search(r"(?:^|\s)-", plain))
    return _split(plain) if is_several else [plain]


def _split(text: str) -> list[str]:
    try:
        return shell_words(text)
    except UsageError:
        return [text]


def _end_of_array(words: Sequence[str], begin: int) -> int | None:
    for at in range(begin, len(words)):
        if words[at] and set(words[at]) <= PUNCTUATION and ")" in words[at]:
            return at
    return None
