"""Load clients side by side against the same scheduled null server.

    python benchmarks/load_clients --install            # once: one virtual environment for each peer
    python benchmarks/load_clients                      # measure, and print the table as Markdown

The server runs on one core, each client on another (or on several), one client at a time. Every client is asked for
the same closed loop; what it reports is held against the server's own log. Results are kept as they come: the same
command again goes on where it stopped, and `--only` measures some clients anew.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import Bench
from case import Case
from clients import CLIENTS, Client
from install import Peers
from null import OURS
from results import Results, Row
from table import markdown

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "assay" / "load-clients"
STREAMS = [64, 512, 2048]
OVERHEAD_S, OVERHEAD_FACTOR = 13.0, 1.2
"""A measurement takes so many seconds beside its load, and so many times the load: starts and stragglers."""
MIN_SECONDS = 6.0


def main() -> None:
    options = _options()
    peers = Peers((options.install or options.peers).expanduser().absolute())
    clients = [client for client in CLIENTS if _wanted(client, options.only)]
    if options.install:
        peers.install(clients, limit_s=options.install_limit_s, pip_options=options.pip.split())
        if options.streams is None:
            return
    cases = _cases(options)
    results = Results(options.results, _settings(options, cases[0]))
    results.about |= _about(peers)
    todo = [
        (client, case)
        for case in cases
        for client in clients
        if options.only or Row(client=client.name, streams=case.streams).key not in results.rows
    ]
    _raise_file_limit()
    with tempfile.TemporaryDirectory(prefix="load-clients-") as temporary:
        bench = Bench(
            peers=peers,
            server=tuple(options.server.split()) if options.server else OURS,
            server_core=options.server_core,
            client_cores=tuple(options.client_cores),
            work=(options.keep or Path(temporary)).absolute(),
            keep=options.keep is not None,
        )
        for number, (client, case) in enumerate(todo, 1):
            _say(f"[{number}/{len(todo)}] {client.name}, {case.streams:,} streams ...")
            row = bench.measure(client, case)
            results.add(row)
            _say(f"    {_summary(row)}")
    order = [client.name for client in CLIENTS]
    rows = sorted(results.rows.values(), key=lambda row: order.index(row.client))
    print(markdown(rows, results.about, results.settings))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/load_clients", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cores = sorted(os.sched_getaffinity(0))
    add = parser.add_argument
    add("--install", nargs="?", type=Path, const=CACHE, metavar="DIR", help=f"make the environments in DIR ({CACHE})")
    add("--peers", type=Path, default=CACHE, metavar="DIR", help="where --install made them")
    add("--install-limit-s", type=float, default=900, help="for one environment (900)")
    add("--pip", default="", metavar="OPTIONS", help="more options of pip install, e.g. a constraints file")
    add("--streams", type=_numbers, metavar="N,N...", help="requests in flight (64,512,2048)")
    add("--tokens-per-s", type=float, default=50, help="of one stream (50)")
    add("--first-token-s", type=float, default=0.1, help="delay of the first token (0.1)")
    add("--output-tokens", type=int, default=128, help="of each request (128)")
    add("--input-tokens", type=int, default=16, help="of each request (16)")
    add("--seconds", type=float, default=30, help="of load in each measurement, at most (30)")
    add("--budget-s", type=float, default=700, help="shorten the load so that all fits into this; 0: never (700)")
    add(
        "--only",
        type=lambda text: text.lower().split(","),
        metavar="NAME,...",
        help="clients whose names contain these",
    )
    add("--results", type=Path, default=Path("load-clients.json"), help="kept here (load-clients.json)")
    add("--keep", type=Path, metavar="DIR", help="keep every measurement's files in DIR")
    add("--server", metavar="COMMAND", help="another null server with the same interface as assay.load.null_server")
    add("--server-core", type=int, default=cores[-1], help=f"({cores[-1]})")
    add(
        "--client-cores",
        type=_numbers,
        default=cores[:1],
        metavar="N,N...",
        help=f"for clients of several processes ({cores[0]})",
    )
    options = parser.parse_args()
    if options.server_core in options.client_cores:
        parser.error("server and client want cores of their own")
    return options


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _wanted(client: Client, only: list[str] | None) -> bool:
    return only is None or any(word in client.name.lower() for word in only)


def _cases(options: argparse.Namespace) -> list[Case]:
    streams = options.streams or STREAMS
    seconds = options.seconds
    if options.budget_s:
        fitting = (options.budget_s / (len(streams) * len(CLIENTS)) - OVERHEAD_S) / OVERHEAD_FACTOR
        seconds = min(seconds, max(MIN_SECONDS, fitting))
        if seconds < options.seconds:
            _say(f"{seconds:.1f} s of load each instead of {options.seconds:g}, for --budget-s {options.budget_s:g}")
    return [
        Case(
            streams=count,
            tokens_per_s=options.tokens_per_s,
            first_token_s=options.first_token_s,
            output_tokens=options.output_tokens,
            input_tokens=options.input_tokens,
            seconds=round(seconds, 1),
        )
        for count in streams
    ]


def _settings(options: argparse.Namespace, case: Case) -> dict[str, Any]:
    """What all measurements of one results file share."""
    return {
        "tokens/s of a stream": case.tokens_per_s,
        "first token after, s": case.first_token_s,
        "output tokens": case.output_tokens,
        "input tokens": case.input_tokens,
        "seconds of load": case.seconds,
        "cores of the client": len(options.client_cores),
        "server": options.server or " ".join(OURS[1:]),
    }


def _about(peers: Peers) -> dict[str, Any]:
    versions: dict[str, str] = {}
    for client in CLIENTS:
        installed = peers.state(client).versions
        versions |= {name: installed[name] for name in client.shows if name in installed}
    return {
        "measured": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load before": f"{os.getloadavg()[0]:.2f}",
        "command": " ".join(["python", *sys.argv]),
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _raise_file_limit() -> None:
    """One connection a stream on either side: take all the files that the system lets us have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _summary(row: Row) -> str:
    if row.tokens_per_s is None or row.offered_tokens_per_s is None:
        return f"not measured: {row.reason}"
    cpu = f", {row.cpu_s_per_million_tokens:.1f} CPU s per 1M tokens" if row.cpu_s_per_million_tokens else ""
    achieved = row.tokens_per_s / row.offered_tokens_per_s
    return f"{row.tokens_per_s:,.0f} tokens/s, {achieved:.3f} of offered{cpu}, {row.wall_s:.0f} s {row.reason or ''}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
