"""A text split into words as a shell would split it, without expanding or running anything."""

from __future__ import annotations

import re
import shlex

from assay.errors import UsageError

_EXPANSION = re.compile(r"\$\((?:[^()]|\((?:[^()]|\([^()]{0,200}\)){0,200}\)){0,300}\)|`[^`]{0,300}`")
"""`$((8 * $N))`, `$(hostname)` and the same in backticks: what a shell would put there stays one word with what it
stands in."""
_QUOTED_OR_COMMENT = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|(?<![^\s;&|()])#[^\n]*""", re.DOTALL)
"""A comment begins a word; within a quotation, or escaped, it is none."""
_ELSEWHERE = re.compile(r"(?<=[ \t])[`^][ \t]*\n")
"""How PowerShell and cmd say that a line goes on: a text from there is read as it was meant."""
_UNFINISHED = re.compile(r"(?<!\\)\\\n*\Z")
"""A last line that says it goes on: it was copied without the next."""
_HELD = ("\ue000", "\ue001")
_PLACE = re.compile(f"{_HELD[0]}(\\d{{1,6}}){_HELD[1]}")
_TO_ANOTHER = re.compile(r"(?<!\S)\d?[<>]&\d(?!\S)")
"""`2>&1`, which is no background sign."""


def shell_words(text: str) -> list[str]:
    """The words of a text, quotation marks taken away; what a shell would expand stays as it is written.

    Raises:
        UsageError: a quotation is not closed.
    """
    expansions: list[str] = []
    code = _QUOTED_OR_COMMENT.sub(_no_comment, _UNFINISHED.sub("", _ELSEWHERE.sub(" ", text.replace("\r\n", "\n"))))

    def kept(match: re.Match[str]) -> str:
        expansions.append(match[0])
        return f"{_HELD[0]}{len(expansions) - 1}{_HELD[1]}"

    plain = _EXPANSION.sub(kept, _TO_ANOTHER.sub(" ", code.replace("\\\n", "")))
    return [
        _PLACE.sub(lambda match: expansions[int(match[1])] if int(match[1]) < len(expansions) else match[0], word)
        for word in _lexed(plain)
    ]


def _no_comment(match: re.Match[str]) -> str:
    return "" if match[0].startswith("#") else match[0]


def _lexed(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();&|\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError as error:
        message = f"the command cannot be split: {str(error).lower()}"
        raise UsageError(message, hint="close the quotation, or give the words one by one after --") from error
