"""Run micro-benchmarks one after another, watch who else uses the processors, and repeat what was disturbed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from assay.probes.ceilings.port import MicroBenchmark, NotMeasurable, Say
from assay.probes.usage import read_usage, shares
from assay.records.ceilings import Measurement

ATTEMPTS = 3
"""Of one benchmark, when other processes disturb it; the least disturbed one is kept, and says that it was."""
TOO_BUSY = 4
"""When so many benchmarks at the beginning say nothing, because others used the processors, the rest is not tried."""
LEFT_OUT = "the rest"
PATIENCE = 1.5
"""Nothing is repeated once this many times the expected time is spent: on a busy machine nothing would end."""


def measure(benchmarks: Sequence[MicroBenchmark], say: Say) -> tuple[list[Measurement], dict[str, str]]:
    """Every benchmark in turn; what cannot be measured comes with its reason."""
    expected_s = sum(benchmark.expected_s for benchmark in benchmarks)
    began_s = time.monotonic()
    found: list[Measurement] = []
    missing: dict[str, str] = {}
    for number, benchmark in enumerate(benchmarks):
        if too_busy(found):
            used = min(one.foreign_cpu_cores or 0.0 for one in found)
            missing[LEFT_OUT] = (
                f"{len(benchmarks) - number} benchmarks were not tried: other processes used {used:.1f} cores or more "
                f"during the first {number}; repeat it when the machine is quiet"
            )
            break
        say(describe(benchmark), time.monotonic() - began_s, expected_s)
        try:
            attempts = ATTEMPTS if time.monotonic() - began_s < PATIENCE * expected_s else 1
            found.append(_quietest(benchmark, attempts))
        except NotMeasurable as reason:
            missing[describe(benchmark)] = str(reason)
    return found, missing


def too_busy(found: Sequence[Measurement]) -> bool:
    """Whether everything so far was right and says nothing: others have the processors."""
    return len(found) >= TOO_BUSY and all(one.correct and not one.usable for one in found)


def describe(benchmark: MicroBenchmark) -> str:
    """Its name and conditions in a few words."""
    at = benchmark.at
    parts = [benchmark.name.replace("_", " "), at.storage, f"{at.threads} thread{'s' if at.threads > 1 else ''}"]
    if at.shape is not None:
        parts.append(f"{at.shape[0]} x {at.shape[1]}")
    if at.columns > 1:
        parts.append(f"{at.columns} columns")
    if at.numa_node is not None:
        parts.append(f"node {at.numa_node}")
    return ", ".join(part for part in parts if part)


def _quietest(benchmark: MicroBenchmark, attempts: int) -> Measurement:
    tries: list[Measurement] = []
    while len(tries) < attempts and not any(one.trusted for one in tries):
        tries.append(_once(benchmark))
        if not tries[-1].correct:
            break  # a wrong result is no disturbance: it would be wrong again
    return min(tries, key=lambda one: (not one.correct, one.foreign_cpu_cores or 0.0))


def _once(benchmark: MicroBenchmark) -> Measurement:
    at_ns, began_s, before = time.time_ns(), time.monotonic(), read_usage(None)
    reading = benchmark.run()
    since = shares(before, read_usage(None))
    return Measurement(
        name=benchmark.name,
        what=benchmark.what,
        unit=benchmark.unit,
        threads=benchmark.at.threads,
        storage=benchmark.at.storage,
        columns=benchmark.at.columns,
        numa_node=benchmark.at.numa_node,
        shape=benchmark.at.shape,
        samples=reading.samples,
        took_s=time.monotonic() - began_s,
        check=reading.check,
        correct=reading.correct,
        conditions=reading.conditions,
        foreign_cpu_cores=since.foreign_cpu_cores,
        steal_share=since.steal_share,
        at_ns=at_ns,
    )
