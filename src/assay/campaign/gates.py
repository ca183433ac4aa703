"""Gates on the machine: was anything else running while we measured?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from assay.campaign.bench import Bench
from assay.ports import Probe
from assay.records.machine import Machine
from assay.records.run import Gate
from assay.records.spec import Gates

QUIET = "machine-quiet"
PATIENCE_S = 600
LEAST_PATIENCE_S = 30
PATIENCE_SHARE = 0.25
"""Of `budget.total_s`: whoever asks for minutes does not want to wait for hours."""
QUIET_S = 3
"""Seconds in a row that count as quiet again: a job that ends often starts another."""
MIN_FREE_MEMORY_SHARE = 0.03
"""Share of memory that must stay available: below it the kernel reclaims pages of the mapped model."""


def machine_gates(after: dict[str, float | None], machine: Machine, limits: Gates) -> list[Gate]:
    """Judge the machine state between the snapshots before launch and after the load.

    A quantity that this platform does not tell makes no gate: it is not held to have passed.
    """
    gates = []
    if (foreign := after.get("foreign_cpu_cores")) is not None:
        gates.append(
            Gate(
                name=QUIET,
                passed=foreign <= limits.max_foreign_cores,
                evidence=f"other processes used {foreign:.2f} cores (at most {limits.max_foreign_cores})",
                remedy="stop what else runs on this machine; `assay assess` names it",
            )
        )
    if (steal := after.get("steal_share")) is not None:
        gates.append(
            Gate(
                name="not-stolen",
                passed=steal <= limits.max_steal_share,
                evidence=f"the hypervisor stole {100 * steal:.1f}% of CPU time "
                f"(at most {100 * limits.max_steal_share:.0f}%)",
                remedy="measure on a machine with dedicated cores, or at a quieter hour",
            )
        )
    if (available := after.get("available_memory_bytes")) is not None:
        gates.append(
            Gate(
                name="memory-available",
                passed=available >= MIN_FREE_MEMORY_SHARE * machine.memory_bytes,
                evidence=f"{available / 2**20:.0f} MiB available",
                remedy="free memory, or lower the context size and the number of slots",
            )
        )
    return gates


def wait_until_quiet(bench: Bench) -> float:
    """After a disturbed run, let the disturber finish, for a quarter of the budget and ten minutes at most; seconds.

    An undisturbed campaign never waits here; a machine that stays busy fails the next run's gate, with the figure.
    """
    last = next((run.outcome for run in reversed(bench.state.runs) if run.outcome is not None), None)
    if last is None or not any(gate.name == QUIET and not gate.passed for gate in last.gates):
        return 0.0
    patience_s = min(PATIENCE_S, max(LEAST_PATIENCE_S, round(PATIENCE_SHARE * bench.state.spec.budget.total_s)))
    began = time.monotonic()
    quiet = wait_for_quiet(bench.probe, bench.state.spec.gates, bench.progress.phase, patience_s=patience_s)
    waited_s = time.monotonic() - began
    then = "" if quiet else "; it is still busy, and the run is made anyway"
    bench.progress.result(f"waited {waited_s:.0f} s for a quiet machine, no measuring time{then}", good=quiet)
    return waited_s


def wait_for_quiet(
    probe: Probe,
    limits: Gates,
    say: Callable[[str], None],
    *,
    patience_s: int = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Look once a second until others have left the machine alone for a while; False when patience ended before."""
    probe.snapshot()
    quiet_s = 0
    for _ in range(patience_s):
        sleep(1.0)
        foreign = probe.snapshot().get("foreign_cpu_cores")
        if foreign is None:
            return True
        quiet_s = quiet_s + 1 if foreign <= limits.max_foreign_cores else 0
        if quiet_s == QUIET_S:
            return True
        say(f"waiting for a quiet machine (at most {patience_s} s): other processes use {foreign:.2f} cores")
    return False


def failed_gates(gates: Iterable[Gate]) -> list[Gate]:
    """Those that failed, a disturbed machine first: what else failed then may be its doing."""
    return sorted((gate for gate in gates if not gate.passed), key=lambda gate: gate.name != QUIET)


def describe(gate: Gate) -> str:
    """One clause for a run's reason."""
    return f"{gate.name}: {gate.evidence}" + (f" ({gate.remedy})" if gate.remedy else "")
