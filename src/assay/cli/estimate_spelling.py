"""How the options of `assay estimate` are spelled: text in, values or a mistake of usage out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.estimate import Host, Layout, Routing, Scheduling
    from assay.records.estimate_report import Load

INPUT_TOKENS, OUTPUT_TOKENS = 1024, 256
LAYOUT_HINT = "tp, pp, dp and ep with numbers, such as tp8, tp4pp2 or tp2,dp4,ep8"
BOUNDS_HINT = "for example --slo ttft=500ms,tpot=50ms"
ROUTING_HINT = "uniform, or zipf:1.0 for experts chosen in proportion to 1/rank"
MAX_IN_FLIGHT = 1_000_000


def read_layout(text: str) -> Layout:
    """`tp8`, `tp4pp2`, `tp2,dp4,ep8`.

    Raises:
        UsageError: it says something else, or one thing twice.
    """
    from assay.records.estimate import Layout

    words = re.findall(r"([a-z]+)[=:]?(\d+)", text.lower())
    spelled = "".join(f"{name}{size}" for name, size in words)
    names = [name for name, _ in words]
    if not words or spelled != re.sub(r"[\s,;+x/_=:-]", "", text.lower()):
        raise UsageError(f"--layout {text} cannot be read", hint=LAYOUT_HINT)
    if len(set(names)) < len(names) or not set(names) <= set(Layout.model_fields) or 0 in (int(n) for _, n in words):
        raise UsageError(f"--layout {text}: each of tp, pp, dp and ep at most once, from 1 up", hint=LAYOUT_HINT)
    return Layout(**{name: int(size) for name, size in words})


def read_concurrencies(text: str) -> list[int]:
    """Requests in flight, ascending.

    Raises:
        UsageError: anything but whole numbers above zero, with commas.
    """
    words = [word.strip() for word in text.split(",")]
    numbers = sorted({int(word) for word in words if re.fullmatch(r"\d{1,7}", word)})
    if len(numbers) < len(words) or not 0 < numbers[0] <= numbers[-1] <= MAX_IN_FLIGHT:
        hint = f"whole numbers from 1 to {MAX_IN_FLIGHT:,}, none twice: --concurrency 1,8,64"
        raise UsageError(f"--concurrency {text} cannot be read", hint=hint)
    return numbers


def read_routing(text: str) -> Routing:
    """`uniform` or `zipf:1.0`.

    Raises:
        UsageError: anything else.
    """
    from assay.records.estimate import Routing

    law, _, exponent = text.lower().partition(":")
    if law == "uniform" and not exponent:
        return Routing()
    if law == "zipf" and re.fullmatch(r"\d{1,2}(\.\d+)?", exponent):
        return Routing(law="zipf", exponent=float(exponent))
    raise UsageError(f"--routing {text} cannot be read", hint=ROUTING_HINT)


def read_host(engine: str | None, scheduling: Scheduling | None) -> Host | None:
    """`vllm`, `vllm==0.11.1`: how it schedules by default, or as told; None: nothing is told.

    Raises:
        UsageError: the version cannot be read.
    """
    from assay.roofline import scheduling as schedulings

    if engine is None and scheduling is None:
        return None
    name, pinned, version = (engine or "").partition("==")
    name = name.strip().lower()
    if engine is not None and name not in schedulings.ENGINES:
        raise UsageError(f"--engine {engine}: unknown", hint=f"known: {', '.join(schedulings.ENGINES)}")
    if pinned and not _is_version(version):
        raise UsageError(f"--engine {engine}: {version!r} is no version", hint="as vllm==0.11.1")
    host = schedulings.host_of(name, version)
    if scheduling is None:
        return host
    return host.model_copy(update={"scheduling": scheduling, "why": "--scheduling"})


def _is_version(text: str) -> bool:
    """A whole version and nothing beside it."""
    from packaging.version import InvalidVersion, Version

    try:
        return len(Version(text).release) > 1
    except InvalidVersion:
        return False


def read_load(input_tokens: int | None, output_tokens: int | None, context_tokens: int | None) -> Load:
    """What every request is."""
    from assay.roofline.serving import load_at_context, load_of_requests

    if context_tokens is not None:
        return load_at_context(context_tokens)
    return load_of_requests(input_tokens or INPUT_TOKENS, output_tokens or OUTPUT_TOKENS)


def read_bounds(text: str) -> tuple[float | None, float | None]:
    """Bounds on TTFT and TPOT in seconds, spelled as for `assay bench`.

    Raises:
        UsageError: they cannot be read, or bound something else.
    """
    from assay.cli.bench_spelling import read_slo

    try:
        slo, _ = read_slo(text)
    except UsageError as error:
        raise UsageError(error.message, hint=BOUNDS_HINT) from error
    if slo.e2e_s is not None:
        raise UsageError("--search keeps bounds on ttft and tpot, not on e2e", hint=BOUNDS_HINT)
    return slo.ttft_s, slo.tpot_s
