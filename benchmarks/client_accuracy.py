"""How exact and how cheap the load client is, against a server that logs when it really sent each chunk.

    python benchmarks/client_accuracy.py [streams]

Twice: with chunks at random phases (each wakes the client alone), and with the chunks of all streams at the same
instants, as a batching engine sends them.

The server is a process of its own on the same machine, so both read one monotonic clock. The error of a stamp is what
the client noted minus what the server logged just before it wrote; it contains the loopback path and, on a busy
machine, the time until the client's process was given a core.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import zlib
from itertools import pairwise
from pathlib import Path

from assay.load import create
from assay.load.workload import RequestSource
from assay.records.load import LoadRequest, LoadResult
from assay.records.spec import Workload

SERVER = Path(__file__).parents[1] / "tests" / "contract" / "hostile_server.py"
SEED = 11
Log = dict[tuple[int, ...], list[int]]


def words(text: str) -> list[int]:
    return [zlib.crc32(word.encode()) % 50_000 for word in re.findall(r"\w+|[^\w\s]", text)]


def play(workload: Workload, mode: str) -> tuple[LoadResult, Log]:
    """One load run and the server's own log of it, by prompt."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "sent.json"
        server = subprocess.Popen(
            [sys.executable, str(SERVER), str(log), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            request = LoadRequest(base_url=f"http://127.0.0.1:{port}", model="null", workload=workload, seed=SEED)
            result = create().run(request, words, lambda: server.poll() is None)
            server.stdin.close()
            server.wait(timeout=30)
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
        return result, {tuple(prompt): sent for prompt, sent in json.loads(log.read_text())}


def row(name: str, errors_ns: list[int]) -> str:
    ordered = sorted(abs(error) for error in errors_ns)
    p50, p99, worst = (ordered[min(int(share * len(ordered)), len(ordered) - 1)] / 1e6 for share in (0.5, 0.99, 1.0))
    return f"{name:<24}{len(ordered):>8}{p50:>10.3f}{p99:>10.3f}{worst:>10.3f}"


def main() -> None:
    streams = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    for mode in ("random-phase", "in-step"):
        print(f"\n== chunks {mode}")
        show(streams, mode)


def show(streams: int, mode: str) -> None:
    workload = Workload(concurrency=streams, windows=4, window_s=2.0)
    result, log = play(workload, mode)
    source = RequestSource(workload, SEED, words)
    ttft, arrival, itl = [], [], []
    for sample in result.samples:
        sent = log.get(tuple(source.request(sample.index).prompt), [])[: len(sample.chunk_ns)]
        if sample.phase != "measured" or not sent:
            continue
        seen = sample.chunk_ns
        ttft.append(seen[0] - sent[0])
        arrival += [at - true for at, true in zip(seen, sent, strict=True)]
        itl += [(b - a) - (d - c) for (a, b), (c, d) in zip(pairwise(seen), pairwise(sent), strict=True)]
    print(f"{'absolute error, ms':<24}{'n':>8}{'p50':>10}{'p99':>10}{'max':>10}")
    for name, errors in (("first content (TTFT)", ttft), ("each chunk", arrival), ("gap (ITL)", itl)):
        print(row(name, errors))
    measures = result.measures
    if measures is None:
        print("not a valid run: " + "; ".join(f"{g.name}: {g.evidence}" for g in result.gates if not g.passed))
        return
    print(f"\n{streams} streams, {measures.output_tokens_per_s:.0f} tokens/s, {measures.requests_per_s:.1f} requests/s")
    print(f"client CPU share {100 * measures.client_cpu_share:.2f}% of a core")
    print(f"client worst lag {1000 * measures.client_max_lag_s:.2f} ms")
    print(f"client peak RSS  {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
