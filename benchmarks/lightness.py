"""How light Assay is: start-up times, memory, and its own CPU share while it measures.

    python benchmarks/lightness.py [CAMPAIGN] [--run] [--beside OTHER/src]

Without a campaign: `import assay` and `assay --help`. With one: `assay status` of it, and the CPU share that each of
its valid runs recorded. With --run the campaign is carried on by one real run, and Assay's own resident memory is
watched meanwhile (the server's is not counted). With --beside each start-up alternates with that of another checkout,
and the median of the paired differences is told: what a change saves is seen on a machine that is not quiet, too.
Nothing here passes or fails: it prints what it saw beside the target.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from assay import api

REPEATS = 10
MIB_BYTES = 2**20
POLL_S = 0.1
TARGET_RSS = "< 250 MB"
Row = tuple[str, str, str, str]


def once(words: list[str], source: Path | None = None) -> tuple[float, float]:
    """Wall time in seconds and peak resident MiB of one Python command line, with this package or that of a folder."""
    env = {**os.environ, "PYTHONPATH": str(source)} if source else None
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(process.pid, 0)
    took_s = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} exited with {process.returncode}")
    return took_s, usage.ru_maxrss / 1024


def start_up(name: str, words: list[str], target: str, beside: Path | None = None) -> Row:
    once(words)  # fills the caches: bytecode and pages
    if beside:
        once(words, beside)
    seen, differences_ms = [], []
    for number in range(REPEATS):
        others = [once(words, beside)] if beside and number % 2 else []
        seen.append(once(words))
        others += [once(words, beside)] if beside and not number % 2 else []
        differences_ms += [1000 * (seen[-1][0] - took_s) for took_s, _ in others]
    times_ms = [1000 * took_s for took_s, _ in seen]
    value = f"{statistics.median(times_ms):.0f} ms ({min(times_ms):.0f}..{max(times_ms):.0f})"
    paired = f", {statistics.median(differences_ms):+.0f} ms beside the other" if differences_ms else ""
    return name, value, target, f"{max(rss for _, rss in seen):.0f} MiB{paired}"


def one_run(folder: Path) -> Row:
    """Carry the campaign on by one run; the largest resident memory of Assay's own process."""
    command = [sys.executable, "-m", "assay", "run", "--plain", "--max-runs", "1", "--folder", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    watched, peak_bytes = psutil.Process(process.pid), 0
    while process.poll() is None:
        try:
            peak_bytes = max(peak_bytes, watched.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(POLL_S)
    if process.wait():
        raise SystemExit(f"{' '.join(command)} exited with {process.returncode}")
    return "assay run, resident", f"{peak_bytes / MIB_BYTES:.0f} MiB", TARGET_RSS, "its own"


def cpu_shares(folder: Path) -> Iterator[Row]:
    """Assay's own CPU seconds over the measured seconds, of every valid run."""
    state = api.status(folder)
    measured = [run.outcome.measures for run in state.runs if run.outcome and run.outcome.measures]
    shares = sorted(100 * measures.client_cpu_share for measures in measured)
    if not shares:
        yield "CPU while measuring", "no valid run yet", "<= 3% of a core", ""
        return
    streams = state.spec.workload.concurrency
    note = f"{len(shares)} runs"
    yield f"CPU, {streams} streams, median", f"{statistics.median(shares):.2f}% of a core", "<= 3% of a core", note
    yield f"CPU, {streams} streams, worst", f"{shares[-1]:.2f}% of a core", "<= 3% of a core", note
    lag_ms = 1000 * max(measures.client_max_lag_s for measures in measured)
    yield "event loop lag, worst", f"{lag_ms:.1f} ms", "", note


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaign", type=Path, nargs="?", help="a campaign's folder")
    parser.add_argument("--run", action="store_true", help="carry the campaign on by one real run")
    parser.add_argument("--beside", type=Path, metavar="SRC", help="the src folder of another checkout")
    given = parser.parse_args()
    folder: Path | None = given.campaign
    beside: Path | None = given.beside and given.beside.resolve()
    if given.run and folder is None:
        parser.error("--run wants the folder of a campaign")
    rows = [
        start_up("bare Python", ["-c", "pass"], ""),
        start_up("import assay", ["-c", "import assay"], "< 200 ms", beside),
        start_up("assay --help", ["-m", "assay", "--help"], "< 400 ms", beside),
    ]
    if folder:
        rows.append(start_up("assay status", ["-m", "assay", "status", "--folder", str(folder)], "< 400 ms", beside))
        if given.run:
            rows.append(one_run(folder))
        rows += cpu_shares(folder)
    print(f"{'what':<28}{'seen':<26}{'target':<18}peak RSS, note")
    for name, value, target, note in rows:
        print(f"{name:<28}{value:<26}{target:<18}{note}")
    print(f"\nmedian of {REPEATS} (least..most), load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")


if __name__ == "__main__":
    main()
