"""The commands that the pages tell people to type, read out of their Markdown."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")),
        *(path for folder in ("docs", "benchmarks", "examples") for path in (ROOT / folder).glob("**/*.md")),
    ]
)
WRITTEN_BY_CAMPAIGNS = ("improvements", "report")
"""Folders of pages inside recorded campaigns: what a campaign of their version said."""
STEPS = re.compile(r"[;&|<>]+")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One command, up to the next shell operator."""

    page: str
    words: tuple[str, ...]
    is_whole: bool
    """From a block that is meant to be typed; else named in a sentence, perhaps with arguments left out."""

    @property
    def program(self) -> str:
        """`assay`, `python` or whatever else it begins with."""
        return self.words[0].rpartition("/")[2]

    @property
    def options(self) -> list[str]:
        """What looks like an option, without its value; nothing after `--`, which belongs to another program."""
        mine = self.words[1 : self.words.index("--")] if "--" in self.words else self.words[1:]
        return [word.partition("=")[0] for word in mine if re.match(r"--[a-z]|-[a-zA-Z]$", word)]


def pages() -> Iterator[tuple[str, str]]:
    """Every page of ours, and what a benchmark says of itself, by its name in the repository."""
    for path in PAGES:
        if not set(WRITTEN_BY_CAMPAIGNS) & set(path.parts):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "benchmarks").glob("**/*.py")):
        words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        yield str(path.relative_to(ROOT)), f"{words or ''}\n"


def commands(page: str, text: str) -> Iterator[Written]:
    """Commands in fenced and indented blocks, and those that a sentence names."""
    fences = r"^```[a-z]*\n(.*?)^```"
    blocks = re.findall(fences, text, re.DOTALL | re.MULTILINE)
    prose = re.sub(fences, "", text, flags=re.DOTALL | re.MULTILINE)
    blocks += re.findall(r"(?<=\n\n)((?: {4,}\S.*\n)+)", prose)
    for block in blocks:
        for line in block.replace("\\\n", " ").splitlines():
            yield from _steps(page, line, is_whole=True)
    prose = re.sub(r"(?<=\n\n)((?: {4,}\S.*\n)+)", "", prose)
    for span in re.findall(r"`([^`]+)`", prose):
        yield from _steps(page, span.replace("\n", " "), is_whole=False)


def named_paths(text: str) -> Iterator[str]:
    """Files and folders of the repository that a sentence names."""
    yield from re.findall(r"`((?:benchmarks|docs|examples|src|tests)/[\w./-]+)`", text)


def linked_paths(text: str) -> Iterator[str]:
    """What links lead to, relative to their page; without those into the web and within the page."""
    yield from re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", text)


def _steps(page: str, line: str, *, is_whole: bool) -> Iterator[Written]:
    """A line's commands: apart at shell operators, without redirections, settings of variables and brackets."""
    lexer = shlex.shlex(re.sub(r"(?<=\s)\d>", ">", line), posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return  # prose, or code of another language, with a quote that does not end
    step: list[str] = []
    for word in [*words, ";"]:
        if not STEPS.fullmatch(word):
            step.append(word.strip("[]") if not is_whole or word[0] == "[" or word[-1] == "]" else word)
            continue
        while step and ASSIGNMENT.match(step[0]):
            step.pop(0)
        if step and step[0]:
            yield Written(page=page, words=tuple(step), is_whole=is_whole)
        step = []
