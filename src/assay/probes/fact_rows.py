"""One fact of a device as a file tells it: a name that something is calculated from, in the unit of that name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.errors import UsageError
from assay.records.device import Fact

ARITHMETIC = ("fp32", "bf16", "fp8", "fp4", "int8")
NAMES = frozenset(
    {
        "memory_bytes",
        "memory_read_bytes_per_s",
        "memory_copy_bytes_per_s",
        "l2_bytes",
        "l2_read_bytes_per_s",
        "smem_per_block_bytes",
        "sms",
        "compute_capability",
        *(f"{each}_flop_per_s" for each in ARITHMETIC),
        "launch_s",
        "power_w",
        "link_bytes_per_s",
        "host_link_bytes_per_s",
        "cores",
    }
)
"""The facts that something is calculated from (`assay.records.device.Device`)."""
UNITS = {"_bytes_per_s": "bytes/s", "_flop_per_s": "flop/s", "_bytes": "bytes", "_s": "s", "_w": "w"}


def unit_of(name: str) -> str:
    """The unit that a fact is given in, by the end of its name."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "1")


def read_fact(path: Path, name: str, row: Mapping[str, Any], hint: str) -> Fact:
    """The fact that a row of a file tells.

    Args:
        path: the file, for what is said of a mistake.
        name: of the fact.
        row: value, unit, basis, source, and perhaps a date.
        hint: how such a file looks.

    Raises:
        UsageError: the name is unknown, a key is missing or strange, the unit is another one, or the value no number
            above zero.
    """
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=3)
        known = f"did you mean {' or '.join(near)}?" if near else f"known facts: {', '.join(sorted(NAMES))}"
        raise UsageError(f"{path}: {name} is no fact of a device", hint=known)
    try:
        fact = Fact.model_validate(row)
    except ValidationError as error:
        raise UsageError(f"{path}: {name}: {first_problem(error)}", hint=hint) from error
    unit = unit_of(name)
    if fact.unit != unit:
        raise UsageError(
            f"{path}: {name} is in {fact.unit[:20]!r}, and only {unit!r} is read",
            hint=f"give it in {unit}, without prefixes" if unit != "1" else "leave the unit out",
        )
    if not 0 < fact.value < math.inf:
        raise UsageError(f"{path}: {name} = {fact.value:g}: a ceiling is a number above zero", hint=hint)
    return fact


def first_problem(error: ValidationError) -> str:
    """Where the first mistake is, and what it is."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
