"""The gates of `assay bench`: those of a campaign's run, and what only a test of somebody else's server needs."""

from __future__ import annotations

from collections.abc import Sequence

from assay.load import bench_metrics as bm
from assay.load.ceiling import physical_ceiling
from assay.load.columns import Columns
from assay.load.gates import Rules, load_gates, window_gates
from assay.load.metrics import NS, ClientCost
from assay.load.play import Played
from assay.load.prefix import hits_gate
from assay.load.runner import dead_gate, steady_gate
from assay.load.server import Counters
from assay.records.bench import BenchMeasures, BenchSpec, Client
from assay.records.run import Gate

MAX_CEILING_SHARE = 0.9
MAX_MERGED_SHARE = 0.01
LATE_S = 0.005
MIN_OFFERED_SHARE = 0.97
MAX_TOKEN_ERROR = 0.02
MAX_GAUGE_ERROR = 0.1
Seen = Sequence[tuple[int, int, Counters]]


def bench_gates(
    spec: BenchSpec,
    requests: Columns,
    played: Played,
    client: Client,
    measures: BenchMeasures | None,
    seen: Seen,
    workload_sha256: str,
) -> list[Gate]:
    """All gates of a load test; one that cannot be judged here is not listed as passed, but left out."""
    rules = Rules(
        steady=steady_gate(spec, played),
        force_length=spec.force_length,
        max_error_share=spec.max_error_share,
        workload_sha256=workload_sha256,
    )
    gates = load_gates(requests, played.windows, rules)
    if played.died_ns is not None:
        gates.insert(0, dead_gate(played.died_ns - played.began_ns))
    if played.exhausted:
        gates.append(_exhausted(len(requests)))
    gates.append(_clock(stepped=played.clock_stepped))
    windows = played.windows
    if windows is None or measures is None:
        return gates
    cost = ClientCost(
        cpu_share=client.cpu_share,
        busiest_share=client.busiest_share,
        max_lag_s=client.lag_max_s or 0.0,
        kernel_stamps=client.stamps == "kernel",
        warmup_s=(windows.start_ns - played.began_ns) / NS,
        load_began_ns=played.began_ns,
    )
    closed = spec.arrival.kind == "closed"
    gates += window_gates(requests, windows, spec.arrival.concurrency if closed else None, cost)
    gates += [_below_ceiling(measures, client), _read_one_by_one(client)]
    if spec.ceiling_tokens_per_s is not None:
        gates.append(physical_ceiling(measures.output_tokens_per_s, spec.ceiling_tokens_per_s, spec.ceiling_source))
    if measures.offered_per_s is not None:
        gates.append(_offered(measures, measures.offered_per_s))
    return gates + _server_gates(spec, requests, measures, seen)


def _exhausted(number: int) -> Gate:
    return Gate(
        name="enough-load",
        passed=False,
        evidence=f"the workload had no more requests after {number}, before the windows were over",
        remedy="ask for fewer or shorter windows (--window, --windows), or use a longer file",
    )


def _clock(*, stepped: bool) -> Gate:
    return Gate(
        name="clock-steady",
        passed=not stepped,
        evidence="the wall clock was set during the load"
        if stepped
        else "wall and monotonic clock kept their distance",
        remedy="kernel receive stamps are wall-clock: repeat the test" if stepped else "",
    )


def _below_ceiling(measures: BenchMeasures, client: Client) -> Gate:
    ceiling = client.ceiling_tokens_per_s or 0.0
    passed = measures.output_tokens_per_s / measures.tokens_per_chunk <= MAX_CEILING_SHARE * ceiling
    return Gate(
        name="below-client-ceiling",
        passed=passed,
        evidence=f"{measures.output_tokens_per_s / measures.tokens_per_chunk:,.0f} chunks/s; {client.processes} load "
        f"process(es) could take {ceiling:,.0f} from the null server here",
        remedy="" if passed else "client-bound: use more --processes, or a client machine with more cores",
    )


def _read_one_by_one(client: Client) -> Gate:
    late = (client.read_delay_p99_s if client.read_delay_p99_s is not None else client.lag_p99_s) or 0.0
    passed = client.merged_share <= MAX_MERGED_SHARE or late < LATE_S
    return Gate(
        name="chunks-read-one-by-one",
        passed=passed,
        evidence=f"{100 * client.merged_share:.1f}% of chunks were read together with the one before; "
        f"bytes waited for us {1000 * late:.1f} ms at p99",
        remedy="" if passed else "client-bound: chunks waited for us and share a stamp; use more --processes",
    )


def _offered(measures: BenchMeasures, offered_per_s: float) -> Gate:
    expected = offered_per_s * measures.duration_s
    # A random arrival law scatters: three standard deviations of a Poisson count are no failure of ours.
    passed = measures.sent_per_s * measures.duration_s >= MIN_OFFERED_SHARE * expected - 3 * expected**0.5
    return Gate(
        name="offered-load-achieved",
        passed=passed,
        evidence=f"{measures.sent_per_s:.2f} of {offered_per_s:.2f} requests/s were sent",
        remedy="" if passed else "the client could not keep up, or --concurrency capped what was in flight",
    )


def _server_gates(spec: BenchSpec, requests: Columns, measures: BenchMeasures, seen: Seen) -> list[Gate]:
    """What the server's own counters say of the same time; none where it has no counters."""
    if len(seen) < 2:  # noqa: PLR2004 - a difference needs two
        return []
    hits = hits_gate(requests, seen[0][2], seen[-1][2])
    found = [_tokens_reconciled(requests, measures, seen), _in_flight(spec, measures, seen), hits]
    return [gate for gate in found if gate is not None]


def _tokens_reconciled(requests: Columns, measures: BenchMeasures, seen: Seen) -> Gate | None:
    (b0, a0, first), (b1, a1, last) = seen[0], seen[-1]
    if first.generated_tokens is None or last.generated_tokens is None:
        return None
    theirs = last.generated_tokens - first.generated_tokens
    ours = bm.arrived_tokens(requests, (b0 + a0) // 2, (b1 + a1) // 2)
    # Some servers count a request's tokens when it ends: what was in flight at either instant may be off.
    slack = MAX_TOKEN_ERROR * max(theirs, ours) + measures.max_in_flight * (measures.mean_output_tokens or 0.0)
    passed = abs(theirs - ours) <= slack
    return Gate(
        name="tokens-reconciled",
        passed=passed,
        evidence=f"the server counted {theirs:,.0f} generated tokens where {ours:,.0f} arrived (slack {slack:,.0f})",
        remedy="" if passed else "somebody else uses this server, or it counts otherwise: look at its /metrics",
    )


def _in_flight(spec: BenchSpec, measures: BenchMeasures, seen: Seen) -> Gate | None:
    gauges = [(c.running or 0.0) + (c.waiting or 0.0) for _, _, c in seen if c.running is not None]
    if not gauges or spec.arrival.kind != "closed":
        return None
    mean, ours = sum(gauges) / len(gauges), measures.mean_in_flight
    passed = abs(mean - ours) <= ours * MAX_GAUGE_ERROR + 1
    return Gate(
        name="in-flight-as-the-server-has-it",
        passed=passed,
        evidence=f"the server had {mean:.1f} requests running or waiting on the average, we had {ours:.1f} in flight",
        remedy=""
        if passed
        else "somebody else uses this server: measure when it is idle"
        if mean > ours
        else "requests wait before the server counts them (a proxy, its HTTP front): look for what holds them back",
    )
