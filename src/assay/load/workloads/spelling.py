"""How workloads and arrival laws are spelled on the command line.

Workloads: `synthetic`, `synthetic:input=LENGTHS,output=LENGTHS,prefix=GROUPSxTOKENS` (each part optional), `KIND:FILE`,
or a file alone, whose kind is found out. LENGTHS: `512`, `128-1024` (uniform), `normal(MEAN,SD)`, `lognormal(MEAN,SD)`.
Arrival: `closed`, `constant`, `poisson`, `gamma:CV`, `trace`, `ramp:FROM-TO`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from assay.errors import UsageError
from assay.load.workloads.detect import Kind, detect
from assay.records.bench import Arrival, Dataset, Lengths, Synthetic

KINDS: tuple[Kind, ...] = get_args(Kind)
PARTS = ("input", "output", "prefix")
ARRIVALS = ("closed", "constant", "poisson", "gamma", "trace", "ramp")
MAX_LENGTH = 1_048_576
NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)"
LENGTHS_HINT = "lengths are `512`, `128-1024` (uniform), `normal(512,64)` or `lognormal(512,256)`"
WORKLOAD_HINT = f"a workload is `synthetic`, a file, or one of {', '.join(f'{kind}:FILE' for kind in KINDS)}"
ARRIVAL_HINT = "arrival is `closed`, `constant`, `poisson`, `gamma:CV`, `trace` or `ramp:FROM-TO`"


def parse_workload(text: str) -> Synthetic | Dataset:
    """A workload as spelled; of a file alone, its beginning is read.

    Raises:
        UsageError: it is none.
    """
    head, colon, rest = text.strip().partition(":")
    if head == "synthetic":
        return _synthetic(rest)
    for kind in KINDS:
        if head == kind and (colon or not _is_file(text)):
            if not rest:
                raise UsageError(f"workload {text!r} names no file", hint=f"for example {kind}:FILE")
            return Dataset(kind=kind, path=rest)
    if _is_file(text):
        return Dataset(kind=detect(text), path=text)
    if head.partition("=")[0].strip() in PARTS:
        return _synthetic(text)
    raise UsageError(
        f"{text!r} is neither a workload nor a file", hint=_near(head, ("synthetic", *KINDS)) or WORKLOAD_HINT
    )


def parse_arrival(text: str, *, concurrency: int | None, rate: float | None) -> Arrival:
    """An arrival law as spelled, with the concurrency and the requests per second that were given beside it.

    Raises:
        UsageError: it is none, or what it needs is missing, or something was given that it has no use for.
    """
    kind, _, argument = text.strip().partition(":")
    if kind not in ARRIVALS:
        raise UsageError(f"{text!r} is no arrival law", hint=_near(kind, ARRIVALS) or ARRIVAL_HINT)
    fields: dict[str, Any] = {"kind": kind, "concurrency": concurrency, "rate_per_s": rate}
    if kind == "gamma":
        fields["cv"] = _numbers(text, argument, NUMBER, "`gamma:CV`, for example gamma:2")[0]
    elif kind == "ramp":
        if rate is not None:
            raise UsageError(
                f"arrival {text!r} says its own rates, and --rate {rate:g} was given too", hint="leave --rate out"
            )
        start, end = _numbers(text, argument, f"{NUMBER}-{NUMBER}", "`ramp:FROM-TO`, for example ramp:1-50")
        fields |= {"start_rate_per_s": start, "rate_per_s": end}
    elif argument:
        raise UsageError(f"arrival {text!r}: {kind} takes nothing after the colon", hint=ARRIVAL_HINT)
    _check_needs(kind, concurrency, rate)
    try:
        return Arrival(**fields)
    except ValidationError as error:
        raise UsageError(f"arrival {text!r}: {_told(error)}", hint=ARRIVAL_HINT) from error


def _check_needs(kind: str, concurrency: int | None, rate: float | None) -> None:
    if kind == "closed" and rate is not None:
        raise UsageError(
            f"closed arrival takes no rate, and --rate {rate:g} was given",
            hint=f"add --arrival poisson --rate {rate:g}",
        )
    if kind == "closed" and concurrency is None:
        raise UsageError("closed arrival wants a concurrency", hint="add --concurrency 8")
    if kind in {"constant", "poisson", "gamma"} and rate is None:
        raise UsageError(f"{kind} arrival wants a rate", hint="add --rate, in requests per second")


def _synthetic(text: str) -> Synthetic:
    fields: dict[str, Any] = {}
    for part in re.split(r",(?![^()]*\))", text) if text.strip() else []:
        key, equals, value = (word.strip() for word in part.partition("="))
        if key not in PARTS or not equals:
            hint = _near(key, PARTS) or "for example synthetic:input=512,output=128,prefix=4x1024"
            raise UsageError(f"{part.strip()!r} is no part of a synthetic workload", hint=hint)
        if key in fields:
            raise UsageError(f"{key} is given twice in {text!r}", hint="give it once")
        fields[key] = value if key == "prefix" else _lengths(key, value)
    groups, tokens = _prefix(fields.pop("prefix")) if "prefix" in fields else (0, 0)
    return Synthetic(**fields, prefix_groups=groups, prefix_tokens=tokens)


def _lengths(key: str, text: str) -> Lengths:
    if found := re.fullmatch(r"[0-9]+", text):
        return Lengths(kind="fixed", mean=_count(key, found[0]))
    if found := re.fullmatch(r"([0-9]+)\s*-\s*([0-9]+)", text):
        low, high = (_count(key, number) for number in found.groups())
        if low > high:
            raise UsageError(f"{key}={text}: {low} is above {high}", hint=f"for example {key}={high}-{low}")
        return Lengths(kind="uniform", mean=(low + high) / 2, low=low, high=high)
    if found := re.fullmatch(rf"(normal|lognormal)\(\s*{NUMBER}\s*,\s*{NUMBER}\s*\)", text):
        mean, sd = (float(number) for number in found.groups()[1:])
        if not (1 <= mean <= MAX_LENGTH and sd <= MAX_LENGTH):
            raise UsageError(
                f"{key}={text}: the mean must be from 1 to {MAX_LENGTH:,}, the deviation at most that",
                hint=LENGTHS_HINT,
            )
        return Lengths(kind="normal" if found[1] == "normal" else "lognormal", mean=mean, sd=sd)
    raise UsageError(f"{key}={text} is no distribution of lengths", hint=_law(text) or LENGTHS_HINT)


def _law(text: str) -> str:
    return _near(text.partition("(")[0], ("normal", "lognormal")) if "(" in text else ""


def _prefix(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]+)\s*x\s*([0-9]+)", text)
    if not found:
        raise UsageError(
            f"prefix={text} is not GROUPSxTOKENS", hint="prefix=4x1024: 4 groups, each sharing its first 1,024 tokens"
        )
    return _count("prefix", found[1]), _count("prefix", found[2])


def _count(key: str, text: str) -> int:
    if len(text) > len(str(MAX_LENGTH)) or not 1 <= int(text) <= MAX_LENGTH:
        raise UsageError(f"{key}: {text} is not from 1 to {MAX_LENGTH:,}", hint=LENGTHS_HINT)
    return int(text)


def _numbers(text: str, argument: str, pattern: str, want: str) -> Sequence[float]:
    found = re.fullmatch(pattern, argument.replace(" ", ""))
    if not found:
        raise UsageError(f"arrival {text!r} is not spelled {want}", hint=ARRIVAL_HINT)
    return [float(number) for number in found.groups()]


def _near(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word.strip().lower(), known, n=1)
    return f"did you mean {close[0]}?" if close else ""


def _told(error: ValidationError) -> str:
    first: Mapping[str, Any] = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    return f"{key}: {first['msg']} (found {first['input']!r})" if key else str(first["msg"])


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False
