"""How every page is made: templates that are strict about names and escape, and no line that ends within a flag."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).parent.parent / "data" / "templates"
PIECE = re.compile(
    r"<(?P<kind>style|title|svg)\b.*?</(?P=kind)>|<[^>]*>|(?<![\w-])(?P<flag>--?[A-Za-z][\w-]{1,38})(?![\w-])",
    re.DOTALL,
)
"""What is no text, or a flag in the text; one that is longer may be wider than a telephone, and has to break."""


def environment(*, autoescape: bool = True) -> Environment:
    """A fresh one, for a page's own filters and names; without escaping for Markdown only."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,  # noqa: S701 - off for Markdown only, whose templates escape what comes from outside
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def html_page(page: Environment, template: str, context: Mapping[str, Any]) -> str:
    """The page that a template makes, with every flag in one piece."""
    return whole_flags(page.get_template(template).render(context))


def whole_flags(html: str) -> str:
    """The page with its flags marked as words that do not break; what is copied from it stays as it was.

    A browser may end a line after any hyphen, and "--" at the end of one with "ctx-size" on the next reads as no flag.
    """
    return PIECE.sub(lambda found: _kept(found) if found["flag"] else found[0], html)


def _kept(found: re.Match[str]) -> str:
    return f'<span class="flag">{found[0]}</span>'
