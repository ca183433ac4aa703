"""A file of measured ceilings laid over a device: what was measured here goes before what is known of its kind."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.errors import UsageError
from assay.records.ceilings import GpuCeilings
from assay.records.device import Box, Fact, LinkCurve

HINT = (
    'a JSON object such as {"memory_read_bytes_per_s": 1.5e12, "bf16_flop_per_s": {"value": 3.1e14, "unit": '
    '"flop/s", "basis": "measured", "source": "..."}, "curves": []}'
)
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


SAID = frozenset({"device", "about", "chip", "readings", "problems", "took_s"})
"""What the program that measures GPUs writes beside facts and curves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFile:
    """What such a file holds."""

    facts: dict[str, Fact]
    curves: list[LinkCurve]
    rest: dict[str, Any]
    """`SAID`, as far as it is there."""


def with_measured(box: Box, measured: Path | MeasuredFile | GpuCeilings) -> Box:
    """The box with facts and curves that were measured before its own.

    Args:
        box: what is known of the device and its links.
        measured: a file, as of `parsed`, or what one holds.

    Raises:
        UsageError: as `parsed`.
    """
    found = parsed(measured) if isinstance(measured, Path) else measured
    facts = dict(box.device.facts)
    for name, fact in found.facts.items():
        facts[name] = [fact, *_others(facts.get(name, []))]
    curves = [curve for curve in found.curves if curve.world <= box.count]
    replaced = {(curve.collective, curve.world, curve.algorithm) for curve in curves}
    kept = [each for each in box.curves if (each.collective, each.world, each.algorithm) not in replaced]
    device = box.device.model_copy(update={"facts": facts})
    return box.model_copy(update={"device": device, "curves": [*curves, *kept]})


def parsed(path: Path) -> MeasuredFile:
    """A file of measured ceilings.

    A fact is a number, which then counts as measured here, or an object with value, unit, basis and source. Facts may
    also stand under `facts`; `curves` is a list of link curves.

    Raises:
        UsageError: the file is missing or malformed, a fact is unknown, not above zero, or in another unit.
    """
    content = _read(path)
    rows = {key: value for key, value in content.items() if key not in SAID | {"facts", "curves"}}
    rows |= content.get("facts", {})
    facts = {name: _fact(path, name, value) for name, value in rows.items()}
    if not facts and not content.get("curves"):
        raise UsageError(f"{path} holds no fact of a device and no curve", hint=HINT)
    try:
        curves = [LinkCurve.model_validate(row) for row in content.get("curves", [])]
    except ValidationError as error:
        raise UsageError(f"{path}: a curve is malformed: {_first(error)}", hint=HINT) from error
    return MeasuredFile(facts=facts, curves=curves, rest={key: content[key] for key in SAID if key in content})


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint=HINT) from error
    if not isinstance(content, dict) or not isinstance(content.get("facts", {}), dict):
        raise UsageError(f"{path} holds no object of facts", hint=HINT)
    if "measurements" in content:
        hint = "`assay characterize` estimates with it; here, name facts of a device, as memory_read_bytes_per_s"
        raise UsageError(f"{path} is a record of what a CPU's kernels reached, no facts of a device", hint=hint)
    if not isinstance(content.get("curves", []), list):
        raise UsageError(f"{path}: curves is no list", hint=HINT)
    return content


def _fact(path: Path, name: str, value: Any) -> Fact:
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known facts: {', '.join(sorted(NAMES))}"
        raise UsageError(f"{path}: {name} is no fact of a device", hint=hint)
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "1")
    row = value if isinstance(value, dict) else {"value": value}
    try:
        fact = Fact.model_validate({"unit": unit, "basis": "measured", "source": str(path), **row})
    except ValidationError as error:
        raise UsageError(f"{path}: {name}: {_first(error)}", hint=HINT) from error
    if fact.unit != unit:
        raise UsageError(
            f"{path}: {name} is in {fact.unit[:20]!r}, and only {unit!r} is read",
            hint=f"give it in {unit}, without prefixes" if unit != "1" else "leave the unit out",
        )
    if not 0 < fact.value < math.inf:
        raise UsageError(f"{path}: {name} = {fact.value:g}: a ceiling is a number above zero", hint=HINT)
    return fact


def _others(facts: list[Fact]) -> list[Fact]:
    """An older measurement of here gives way."""
    return [fact for fact in facts if fact.basis != "measured"]


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
