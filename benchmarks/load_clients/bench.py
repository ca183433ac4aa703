"""Measures one client at one load: server up, client run, the client's word against the server's log."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from case import Case, Place
from clients import Client
from install import Peers
from null import ServerError, null_server
from reports import NoReportError, Reported, last_words
from results import Row
from truth import NS, Floats, Load, Log, UnusableLogError, observed, stamp_errors, whole
from watch import Usage, watch

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",
}
"""Nobody is to fetch anything, or to draw."""
LAG_S = 0.5
"""A client that reads so much longer than the server sends left tokens waiting in its sockets: then achieved is all
tokens over the time until it had read them, because what the server sends is not yet received."""
LIMIT_FACTOR, LIMIT_S = 4, 40.0
"""A client is stopped after so many times the load's seconds and so many more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The set-up that all measurements share."""

    peers: Peers
    server: tuple[str, ...]
    """The null server's program; options are added."""
    server_core: int
    client_cores: tuple[int, ...]
    work: Path
    keep: bool
    """Whether the files of a measurement stay in `work`."""

    def measure(self, client: Client, case: Case) -> Row:
        """One row, whatever happens: a client that fails is a row with the reason."""
        nothing = Row(client=client.name, streams=case.streams)
        state = self.peers.state(client)
        if state.reason:
            return replace(nothing, reason=state.reason)
        with self._folder(f"{client.name} {case.streams}") as folder:
            try:
                usage = self._run(client, case, folder)
                log = Log.read(folder / "server.bin")
                load = observed(log, case)
            except (ServerError, UnusableLogError, OSError) as error:
                return replace(nothing, reason=f"{error}; {last_words(folder)}")
            try:
                reported = client.read(folder, case)
            except (NoReportError, LookupError, ValueError, TypeError) as error:
                silent = replace(nothing, reason=f"{_ending(usage)}; {error!r}; {last_words(folder)}")
                stopped_s = (usage.samples[-1][0] - load.began_ns) / NS if usage.timed_out else None
                return _cost(silent, case, load, usage, stopped_s)
            row = _errors(_cost(nothing, case, load, usage, reported.duration_s), case, log, reported)
            if reported.stamps is None:
                return row
            return replace(row, tokens_per_s=observed(reported.stamps, case).achieved_tokens_per_s)

    def _run(self, client: Client, case: Case, folder: Path) -> Usage:
        environment = dict(os.environ) | ENVIRONMENT
        for name in ("PYTHONPATH", *client.environ_without):
            environment.pop(name, None)
        with null_server(case, folder, self.server_core, self.server) as url:
            place = Place(url=url, folder=folder, python=self.peers.python(client), tokenizer=self.peers.tokenizer())
            return watch(
                client.command(case, place),
                cores=self.client_cores,
                env=environment,
                folder=folder,
                limit_s=LIMIT_FACTOR * case.seconds + LIMIT_S,
            )

    @contextmanager
    def _folder(self, name: str) -> Iterator[Path]:
        folder = self.work / re.sub(r"[^a-z0-9]+", "-", name.lower())
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            if not self.keep:
                shutil.rmtree(folder, ignore_errors=True)


def _cost(row: Row, case: Case, load: Load, usage: Usage, duration_s: float | None) -> Row:
    """What the server's log and the process accounts say; the client's duration tells how long it went on reading."""
    millions = load.tokens / 1e6
    sent_s = (load.ended_ns - load.began_ns) / NS
    read_s = max(sent_s, duration_s or 0.0)
    lagged = read_s > sent_s + LAG_S
    during_s = usage.cpu_s_at(load.began_ns + round(read_s * NS)) - usage.cpu_s_at(load.began_ns)
    return replace(
        row,
        tokens_per_s=load.tokens / read_s if lagged else load.achieved_tokens_per_s,
        offered_tokens_per_s=case.offered_tokens_per_s,
        in_flight=load.in_flight,
        cpu_s_per_million_tokens=during_s / millions if millions else None,
        command_cpu_s_per_million_tokens=usage.total_cpu_s / millions if millions else None,
        peak_rss_bytes=usage.peak_rss_bytes,
        num_requests=load.num_requests,
        num_failed=load.num_requests - load.num_whole,
        window_s=load.window_s,
        wall_s=usage.wall_s,
    )


def _errors(row: Row, case: Case, log: Log, reported: Reported) -> Row:
    """The client's percentiles against the server's, over the same requests as far as the client says which."""
    if reported.stamps is not None:
        done = log.select(np.isin(log.numbers, reported.stamps.numbers))
    else:
        done = log.select(whole(log, case))
    itl = done.itl_s() if reported.window_ns is None else log.itl_s(reported.window_ns)
    if reported.window_ns is not None:
        low, high = reported.window_ns
        done = done.select((done.last >= low) & (done.last < high))
    ttft = done.ttft_s()
    if not len(ttft) or not len(itl):
        return replace(row, reason="no request was answered to the end", said=reported.said)
    pairs = stamp_errors(reported.stamps, log) if reported.stamps is not None else None
    return replace(
        row,
        ttft_p50_error_s=_difference(reported.ttft_p50_s, ttft, 0.5),
        ttft_p99_error_s=_difference(reported.ttft_p99_s, ttft, 0.99),
        itl_p99_error_s=_difference(reported.itl_p99_s, itl, 0.99),
        server_ttft_p50_s=float(np.quantile(ttft, 0.5)),
        server_itl_p99_s=float(np.quantile(itl, 0.99)),
        reported_tokens_per_s=reported.tokens_per_s,
        num_failed=row.num_failed if reported.num_failed is None else reported.num_failed,
        said=reported.said,
        stamp_errors=asdict(pairs) if pairs else None,
    )


def _difference(reported_s: float | None, true_s: Floats, share: float) -> float | None:
    if reported_s is None or not len(true_s):
        return None
    return reported_s - float(np.quantile(true_s, share))


def _ending(usage: Usage) -> str:
    if usage.timed_out:
        return f"stopped after {usage.wall_s:.0f} s"
    return f"exit code {usage.exit_code}"
