"""The help of an argparse program, parsed: every flag with its placeholder, choices, default and text."""

from __future__ import annotations

import re

from assay.records.machine import FlagInfo

HEAD = re.compile(r"^  (-\S.*?)(?:\s{2,}(.*))?$")
CHOICES = re.compile(r"\{([^}]*)\}")
DEFAULT = re.compile(r"\(default: ([^)]*)\)")


def parse_help(text: str) -> list[FlagInfo]:
    """Parse a whole help text; `--help` itself is left out. Never raises."""
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if HEAD.match(line):
            blocks.append([line])
        elif blocks and line.startswith("    "):
            blocks[-1].append(line)
    flags = [_flag(block) for block in blocks]
    return [flag for flag in flags if "--help" not in flag.names]


def _flag(block: list[str]) -> FlagInfo:
    found = HEAD.match(block[0])
    assert found is not None
    head = found[1]
    words = " ".join([found[2] or "", *(line.strip() for line in block[1:])]).strip()
    names = [part.split()[0] for part in re.split(r", (?=-)", head)]
    value = head.split(" ", 1)[1].strip() if " " in head and not head.endswith(names[-1]) else None
    choices = CHOICES.search(head)
    default = DEFAULT.search(words)
    return FlagInfo(
        names=names,
        value=value,
        choices=choices[1].split(",") if choices else [],
        default=default[1] if default else None,
        help=words,
    )
