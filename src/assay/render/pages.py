"""The template environment of every page: strict about names, escaping unless told otherwise."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).parent.parent / "data" / "templates"


def environment(*, autoescape: bool = True) -> Environment:
    """A fresh one, for a page's own filters and names; without escaping for Markdown only."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,  # noqa: S701 - off for Markdown only, whose templates escape what comes from outside
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
