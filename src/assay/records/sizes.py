"""Whole numbers as engines let people write them: `16k`, `25.6k`, `1M`, `8Ki`.

One letter means different numbers: vLLM reads `16K` as 16,384 and SGLang refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

SUFFIXES: Mapping[str, Mapping[str, int]] = {
    "vllm": {
        "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
        "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40,
    },
    "sglang": {
        "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
        "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
    },
}  # fmt: skip
"""Of engines that take such numbers; only decimal factors take fractions.

Source: `human_readable_int` of vLLM 0.9.0 to 0.33.0 (engine/arg_utils.py, later utils/argparse_utils.py) and of SGLang
0.5.10 to 0.5.23 (srt/utils/common.py)."""
_WRITTEN = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)([A-Za-z]{1,2})")
_PLAIN = re.compile(r"[+-]?\d{1,18}")


def whole(text: str, engine: str) -> int | None:
    """The number that an engine reads; None where it is none to it.

    >>> whole("16K", "vllm"), whole("1.5k", "sglang"), whole("1.5Ki", "sglang"), whole("16K", "sglang")
    (16384, 1500, None, None)
    """
    plain = text.strip()
    if _PLAIN.fullmatch(plain):
        return int(plain)
    written = _WRITTEN.fullmatch(plain)
    factor = SUFFIXES.get(engine, {}).get(written[2]) if written else None
    if written is None or factor is None or ("." in written[1] and factor % 10):
        return None
    return int(Decimal(written[1]) * factor)


def meant(text: str, engine: str) -> str | None:
    """What was probably meant by a size of another engine's spelling: `16K` is `16Ki` to SGLang; None: nobody knows.

    >>> meant("16K", "sglang"), meant("16Ki", "vllm"), meant("many", "vllm")
    ('16Ki', '16K', None)
    """
    for other in SUFFIXES:
        number = whole(text, other)
        if other == engine or number is None or whole(text, engine) is not None:
            continue
        fitting = (f"{number // factor}{suffix}" for suffix, factor in _largest_first(engine) if number % factor == 0)
        return next(fitting, str(number))
    return None


def _largest_first(engine: str) -> list[tuple[str, int]]:
    return sorted(SUFFIXES.get(engine, {}).items(), key=lambda one: -one[1])
