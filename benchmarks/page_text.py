"""Markdown pages out of templates: prose is wrapped after its numbers are filled in, tables stay as they are."""

from __future__ import annotations

import re
import textwrap

WIDTH = 118
_ITEM = re.compile(r"^(- |\d+\. )")


def wrapped(text: str) -> str:
    """Every paragraph and list item at one width; headings, tables and comments untouched."""
    blocks = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def _block(block: str) -> str:
    if block.lstrip().startswith(("|", "#", "<!--")):
        return block
    parts: list[str] = []
    for line in block.splitlines():
        if _ITEM.match(line.strip()) or not parts:
            parts.append(line.strip())
        else:
            parts[-1] += " " + line.strip()
    return "\n".join(_filled(part) for part in parts)


def _filled(part: str) -> str:
    mark = _ITEM.match(part)
    indent = " " * len(mark[0]) if mark else ""
    return textwrap.fill(part, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
