"""A file of measured ceilings laid over a device: what was measured here goes before what is known of its kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.errors import UsageError
from assay.probes.fact_rows import first_problem, read_fact, unit_of
from assay.records.ceilings import GpuCeilings
from assay.records.device import Box, Fact, LinkCurve

HINT = (
    'a JSON object such as {"memory_read_bytes_per_s": 1.5e12, "bf16_flop_per_s": {"value": 3.1e14, "unit": '
    '"flop/s", "basis": "measured", "source": "..."}, "curves": []}'
)
SAID = frozenset({"device", "about", "chip", "readings", "problems", "took_s", "tries"})
"""What the program that measures GPUs writes beside facts and curves, and in how many calls it was measured."""


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
        raise UsageError(f"{path}: a curve is malformed: {first_problem(error)}", hint=HINT) from error
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
    if not isinstance(content.get("problems") or {}, dict):
        raise UsageError(f"{path}: problems is no object of reasons", hint=HINT)
    return content


def _fact(path: Path, name: str, value: Any) -> Fact:
    row = value if isinstance(value, dict) else {"value": value}
    return read_fact(path, name, {"unit": unit_of(name), "basis": "measured", "source": str(path), **row}, HINT)


def _others(facts: list[Fact]) -> list[Fact]:
    """An older measurement of here gives way."""
    return [fact for fact in facts if fact.basis != "measured"]
