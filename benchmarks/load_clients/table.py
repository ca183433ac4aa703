"""The results as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from results import Row

HEAD = (
    "client",
    "tokens/s",
    "achieved / offered",
    "in flight",
    "CPU s per 1M tokens",
    "whole command",
    "TTFT p50 error, ms",
    "TTFT p99 error, ms",
    "ITL p99 error, ms",
    "server's ITL p99, ms",
    "peak RSS, MB",
    "failed",
    "said that it was saturated",
)
STAMP_HEAD = ("client", "streams", "chunks", "chunk p50", "chunk p99", "chunk max", "ITL p50", "ITL p99", "ITL max")
LEGEND = """\
Errors: the client's percentile minus the same percentile of the server's own log. Achieved: tokens while every stream
should have been busy, by the server's log or, where the client keeps them, by its stamps. CPU: all processes of the
client from the first request to the last token; "whole command" adds start, statistics and report. TTFT errors contain
the time for which a request waited for the server to read it: the kernel-stamped loop, which has no lag of its own,
shows how much that is. Where the server's ITL p99 is well above its pace, the server was the limit. A dash: the tool
does not report it."""


def markdown(rows: Sequence[Row], about: dict[str, Any], settings: dict[str, Any]) -> str:
    """Everything: where and how it was measured, one table for each load, and the stamps' errors."""
    parts = [_header(about, settings)]
    for streams in sorted({row.streams for row in rows}):
        here = [row for row in rows if row.streams == streams]
        parts.append(f"## {streams:,} streams\n\n{_table(HEAD, map(_cells, here))}\n{_reasons(here)}")
    parts.append(LEGEND)
    if stamped := [row for row in rows if row.stamp_errors]:
        parts.append("## Each chunk against the server's log, absolute error in ms\n\n" + _stamps(stamped))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _header(about: dict[str, Any], settings: dict[str, Any]) -> str:
    lines = [f"- {name}: {value}" for name, value in about.items() if name != "versions"]
    lines += [f"- {name}: {value}" for name, value in settings.items()]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(about.get("versions", {}).items()))
    return "# Load clients\n\n" + "\n".join([*lines, f"- versions: {versions}"])


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---", *["---:"] * (len(head) - 1)], *body)]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[str]:
    if row.tokens_per_s is None:
        return [row.client, *["-"] * (len(HEAD) - 2), "not measured (below)"]
    achieved = row.tokens_per_s / row.offered_tokens_per_s if row.offered_tokens_per_s else None
    return [
        row.client,
        f"{row.tokens_per_s:,.0f}",
        _number(achieved, ".3f"),
        _number(row.in_flight, ",.0f"),
        _number(row.cpu_s_per_million_tokens, ".1f"),
        _number(row.command_cpu_s_per_million_tokens, ".1f"),
        *(_ms(error) for error in (row.ttft_p50_error_s, row.ttft_p99_error_s, row.itl_p99_error_s)),
        _number(None if row.server_itl_p99_s is None else 1000 * row.server_itl_p99_s, ".1f"),
        _number(None if row.peak_rss_bytes is None else row.peak_rss_bytes / 1e6, ",.0f"),
        _number(row.num_failed, ",d"),
        f"yes: {_plain(row.said)}" if row.said else "no",
    ]


def _reasons(rows: Sequence[Row]) -> str:
    return "\n".join(f"- {row.client}: {_plain(row.reason)}" for row in rows if row.reason)


def _stamps(rows: Sequence[Row]) -> str:
    body = []
    for row in rows:
        errors = row.stamp_errors or {}
        names = [f"{what}_{which}_s" for what in ("chunk", "itl") for which in ("p50", "p99", "max")]
        values = [f"{1000 * errors[name]:.2f}" for name in names]
        body.append([row.client, str(row.streams), f"{errors['num_chunks']:,.0f}", *values])
    return _table(STAMP_HEAD, body)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{1000 * value:+,.2f}"


def _plain(text: str | None) -> str:
    return " ".join((text or "").replace("|", "/").split())
