"""Where the expressions of an entry stand: conditions, computed values, and those of a dial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from assay.records.dials import Dial
from assay.records.hypothesis import Optimization


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """One of an entry."""

    key: str
    """`applies_when`, `flags.--threads`, `dial.knobs.threads.high`."""
    text: str
    is_condition: bool = False
    knobs: tuple[str, ...] | None = None
    """Names that it may use as `dial.<name>`; None: it does not belong to a dial."""


def expressions_of(one: Optimization) -> Iterator[Expression]:
    """Every expression of an entry, for one engine."""
    yield Expression(key="applies_when", text=one.applies_when, is_condition=True)
    yield Expression(key="regime_when", text=one.regime_when, is_condition=True)
    yield from _computed("flags", one.flags)
    yield from _computed("env", one.env)
    if one.dial is not None:
        yield from _of_a_dial(one.dial)


def _of_a_dial(dial: Dial) -> Iterator[Expression]:
    knobs = tuple(knob.name for knob in dial.knobs)
    for knob in dial.knobs:
        place = f"dial.knobs.{knob.name}"
        yield from _computed(place, {"low": knob.low, "high": knob.high}, ())
        yield from _computed(place, {"baseline": knob.baseline})
    for text in dial.constraints:
        yield Expression(key="dial.constraints", text=text, is_condition=True, knobs=knobs)
    if dial.estimate is not None:
        yield Expression(key="dial.estimate", text=dial.estimate, knobs=knobs)
    yield from _computed("dial.flags", dial.flags, knobs)


def _computed(place: str, values: Mapping[str, object], knobs: tuple[str, ...] | None = None) -> Iterator[Expression]:
    """Values that begin with "=" are expressions; all others stand for themselves."""
    for name, value in values.items():
        if isinstance(value, str) and value.startswith("="):
            yield Expression(key=f"{place}.{name}", text=value[1:], knobs=knobs)
