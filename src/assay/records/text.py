r"""Foreign text (of a file, a server, a log) as it can be shown: nothing in it that a terminal obeys.

>>> shown("red \x1b[31m alert")
'red �[31m alert'
"""

from __future__ import annotations

import re

_OBEYED = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)"
)
"""Control codes but for tabs and ends of lines, what turns the direction of writing, and half surrogates."""


def shown(text: str) -> str:
    """The text with a replacement character for everything that a terminal would obey."""
    return _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)
