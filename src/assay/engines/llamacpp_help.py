"""llama-server's `--help`, parsed: the installed build's own word on its flags."""

from __future__ import annotations

import re

from assay.records.machine import FlagInfo

HEAD = re.compile(r"^(-{1,2}[A-Za-z])")
SPELLING = re.compile(r"^-{1,2}[A-Za-z][\w.-]*$")
DESCRIPTION_COLUMN = 40
"""Where the help's right-hand column begins; a longer head has a line of its own."""
CHOICES = (
    re.compile(r"^\[([\w|.-]+\|[\w|.-]+)\]$"),
    re.compile(r"^\{([\w,.-]+)\}$"),
    re.compile(r"^<([\w|.-]+\|[\w|.-]+)>$"),
    re.compile(r"^([a-z][\w-]*(?:,[a-z][\w-]*){2,})$"),
)
BULLET = re.compile(r"^\s*- ([a-z][\w+.-]*)(?: \(default\))?:")
"""A line such as `- mmap: memory-map the model`: one choice, explained."""
FEWEST_BULLETS = 2
ALLOWED = re.compile(r"allowed values:\s*([\w, .-]+?)\s*(?:\(|$)")
DEFAULT = re.compile(r"\(default: '?([^',)]*)'?")


def parse_help(text: str) -> list[FlagInfo]:
    """Parse the whole help text; lines that are no flag are left out. Never raises."""
    flags = []
    block: list[str] = []
    for line in text.splitlines():
        if HEAD.match(line) and block:
            flags.append(_flag(block))
            block = []
        if HEAD.match(line) or block:
            block.append(line)
        if line.startswith("-----") or not line.strip():
            flags += [_flag(block)] if block and HEAD.match(block[0]) and not HEAD.match(line) else []
            block = [] if not HEAD.match(line) else block
    if block:
        flags.append(_flag(block))
    return [flag for flag in flags if flag.names]


def _flag(block: list[str]) -> FlagInfo:
    head, rest = _split_head(block[0])
    names, value = _names_and_value(head)
    words = [rest, *(line.strip() for line in block[1:])]
    text = " ".join(word for word in words if word).strip()
    default = DEFAULT.search(text)
    return FlagInfo(
        names=names,
        value=value,
        choices=_choices(value, text) or _bulleted(value, block, default.group(1).strip() if default else None),
        default=default.group(1).strip() if default else None,
        help=text,
        removed="the argument has been removed" in text,
    )


def _split_head(line: str) -> tuple[str, str]:
    if len(line) > DESCRIPTION_COLUMN and line[DESCRIPTION_COLUMN - 1] == " ":
        return line[:DESCRIPTION_COLUMN].strip(), line[DESCRIPTION_COLUMN:].strip()
    return line.strip(), ""


def _names_and_value(head: str) -> tuple[list[str], str | None]:
    names: list[str] = []
    words = head.split()
    for i, word in enumerate(words):
        spelling = word.rstrip(",")
        if not SPELLING.match(spelling):
            return names, " ".join(words[i:])
        names.append(spelling)
    return names, None


def _choices(value: str | None, text: str) -> list[str]:
    for pattern in CHOICES:
        if value and (found := pattern.match(value)):
            return re.split(r"[|,]", found.group(1))
    if found := ALLOWED.search(text):
        return [word.strip() for word in found.group(1).split(",") if word.strip()]
    return []


def _bulleted(value: str | None, block: list[str], default: str | None) -> list[str]:
    """Choices explained one by one; the default is one of them even where the list leaves it out."""
    found = [bullet.group(1) for line in block[1:] if (bullet := BULLET.match(line))]
    if value is None or len(found) < FEWEST_BULLETS:
        return []
    return found if default is None or default in found or not default.isidentifier() else [default, *found]
