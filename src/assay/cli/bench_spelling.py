"""How the options of `assay bench` and `assay compare` are spelled: text in, values or a mistake of usage out."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.bench import Slo

UNITS_S = {"us": 1e-6, "\N{MICRO SIGN}s": 1e-6, "ms": 1e-3, "s": 1.0}
SLO_NAMES = {"ttft": "ttft_s", "tpot": "tpot_s", "e2e": "e2e_s", "e2el": "e2e_s", "e2e_latency": "e2e_s"}
SLO_HINT = "for example --slo ttft=500ms,tpot=50ms,e2e=10s"
BOUND = re.compile(
    r"(?P<name>\w+)(?::(?P<part>p\d+|median|mean))?(?:=|<=?)(?P<number>\d+(?:\.\d+)?)(?P<unit>[a-z\u00b5]*)"
)


def read_share(text: str) -> float:
    """A share of something: "5%" or "0.05".

    Raises:
        click.BadParameter: it is none, or not from 0 to below 1.
    """
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no share: write 5% or 0.05") from None
    if not 0 <= share < 1:
        raise click.BadParameter(f"{text!r} is not from 0% to below 100%")
    return share


def read_slo(text: str | None) -> tuple[Slo, list[str]]:
    """Bounds of a good request, and what of the spelling does not count.

    `ttft=500ms` and `ttft<500ms` say the same; so does `ttft:p95<500ms`, for goodput counts single requests: the
    percentile is left to the table, and a note says so.

    Raises:
        UsageError: a bound cannot be read, is unknown, is given twice, or has no unit.
    """
    from assay.records.bench import Slo

    bounds: dict[str, float] = {}
    notes = []
    for word in re.split(r"[,\s]+", text.strip()) if text else []:
        found = BOUND.fullmatch(word)
        name = SLO_NAMES.get(found["name"].lower()) if found else None
        if found is None or name is None:
            raise UsageError(f"--slo {word}: not a bound on ttft, tpot or e2e", hint=SLO_HINT)
        if found["unit"] not in UNITS_S:
            raise UsageError(f"--slo {word}: the bound wants a unit, one of us, ms, s", hint=SLO_HINT)
        if name in bounds:
            raise UsageError(f"--slo {word}: {found['name']} is bounded twice", hint=SLO_HINT)
        bounds[name] = float(found["number"]) * UNITS_S[found["unit"]]
        if bounds[name] <= 0:
            raise UsageError(f"--slo {word}: a bound is above zero", hint=SLO_HINT)
        if found["part"]:
            notes.append(f"{word}: goodput counts each request against the bound; {found['part']} is in the table")
    return Slo.model_validate(bounds), notes


def read_numbers(option: str, text: str) -> list[int]:
    """Whole numbers with commas, ascending, none twice.

    Raises:
        UsageError: anything else.
    """
    words = [word.strip() for word in text.split(",")]
    numbers = [int(word) for word in words if re.fullmatch(r"\d{1,5}", word)]
    if len(numbers) < len(words) or 0 in numbers or len(set(numbers)) < len(numbers):
        raise UsageError(
            f"{option} {text} is no list of different numbers of streams", hint=f"write {option} 1,4,16,64"
        )
    return sorted(numbers)


def read_extra_body(pairs: Sequence[str]) -> dict[str, bool | int | float | str]:
    """Fields of every request, as name=value; a value that is JSON counts as that, any other as text.

    Raises:
        UsageError: no name, a name twice, or a value that is a list or an object.
    """
    fields: dict[str, bool | int | float | str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals or name in fields:
            raise UsageError(f"--extra-body {pair}: want name=value, each name once", hint="--extra-body top_k=1")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if not isinstance(value, bool | int | float | str):
            raise UsageError(
                f"--extra-body {pair}: the value is neither number, text nor true or false", hint="leave it out"
            )
        fields[name] = value
    return fields


def read_url(url: str) -> str:
    """A server's base, without `/v1`.

    Raises:
        UsageError: it is no http address.
    """
    if not re.match(r"https?://[^/\s]+", url):
        raise UsageError(f"{url} is no http address", hint=f"write http://{url.partition('://')[2] or url}")
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


def check_key(name: str | None) -> None:
    """Refuse a variable that is not set, and anything that looks like the key itself (which is not repeated).

    Raises:
        UsageError: either of them.
    """
    if name is None:
        return
    if not re.fullmatch(r"[A-Za-z_]\w{0,63}", name):
        hint = "export API_KEY=..., then --api-key-env API_KEY"
        raise UsageError("--api-key-env wants the name of an environment variable, not the key itself", hint=hint)
    if not os.environ.get(name):
        raise UsageError(f"the environment variable {name} is not set", hint=f"export {name}=... in this shell")


def read_target(side: str) -> str:
    """An address without `/v1`, or a launch command as it was given.

    Raises:
        UsageError: it is neither.
    """
    if re.match(r"\S*://", side):
        return read_url(side)
    if re.fullmatch(r"[\w.-]+:\d+(/\S*)?", side):
        raise UsageError(f"{side} looks like an address", hint=f"write http://{side}")
    try:
        words = shlex.split(side)
    except ValueError as error:
        raise UsageError(f"the launch command {side!r} cannot be read: {error}", hint="quote it once") from error
    if not words:
        raise UsageError("a side is empty", hint="give an address, or a launch command in quotes")
    return side
