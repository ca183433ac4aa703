"""What is known of a run that `characterize` explains: a campaign's run, a load test's result, a server's counters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import EngineError, UsageError

if TYPE_CHECKING:
    from assay.records.attribution import MeasuredRun, ServerTimes
    from assay.records.run import Measures, RunOutcome
    from assay.records.state import CampaignState, RunRecord

ASK_S = 10.0
POLL_S = 0.5
BASELINE = "baseline"
ONE_TOKEN = 1.1
"""Mean gap between chunks over the mean time per token: up to here a chunk is taken for one token."""


def run_of(state: CampaignState, run_id: str | None) -> RunRecord | None:
    """A run that measured something.

    Args:
        state: of the campaign.
        run_id: the run; None: the baseline's valid run with the middle throughput, None where there is no valid one.

    Raises:
        UsageError: there is no such run, or it measured nothing.
    """
    if run_id is not None:
        return _named(state, run_id)
    ordered = sorted(_of_baseline(state, also_as_candidate=False), key=_throughput)
    return ordered[len(ordered) // 2] if ordered else None


def of_campaign(state: CampaignState, run_id: str | None) -> MeasuredRun | None:
    """A run of a campaign as it is explained; arguments and errors as of `run_of`.

    Where none is named, the operating points are those of all valid runs of the baseline together, those that stood for
    a candidate (baseline against itself) among them.
    """
    from assay.api.measured_loads import loads_of, shares_steps, step_tokens
    from assay.api.recorded_target import other_weights, served
    from assay.records.attribution import MeasuredRun

    record = run_of(state, run_id)
    if record is None or record.outcome is None or record.outcome.measures is None:
        return None
    measures, arm = record.outcome.measures, record.intent.arm
    in_flight = float(state.spec.workload.concurrency)
    limits = served(state, arm)
    limit = _slots(record.outcome) or (limits.running_limit if limits else None)
    notes = [f"an arm with {' + '.join(arm.deltas)}"] if arm.deltas else []
    notes += [told] if (told := other_weights(arm)) else []
    if record.outcome.status != "ok":
        notes.append(f"its status is {record.outcome.status}: {record.outcome.reason}")
    runs = [record] if run_id is not None else _of_baseline(state, also_as_candidate=True)
    return MeasuredRun(
        source=f"{'SIMULATED ' if state.is_simulated else ''}run {record.intent.run_id} ({arm.label})",
        sequences=in_flight if limit is None else min(in_flight, limit),
        in_flight=in_flight,
        output_tokens_per_s=measures.output_tokens_per_s,
        tpot_s=measures.tpot.mean_s,
        gap_s=_gap(measures),
        ttft_s=measures.ttft.mean_s,
        input_tokens=measures.mean_input_tokens,
        output_tokens=measures.mean_output_tokens,
        threads=_threads(record),
        requests_per_s=measures.requests_per_s,
        loads=[] if state.is_simulated else loads_of(state, runs, limit),
        shares_steps=shares_steps(state.build, arm.flags),
        step_tokens=step_tokens(state.build, arm.flags),
        notes=notes,
    )


def of_load_test(path: Path) -> MeasuredRun:
    """The result of `assay bench`: its folder, or result.json in it.

    Raises:
        UsageError: it is none, or its numbers are not to be used.
    """
    from pydantic import ValidationError

    from assay.api.measured_loads import SHARING, load_of
    from assay.records.attribution import MeasuredRun
    from assay.records.bench import BenchResult

    file = path / "result.json" if path.is_dir() else path
    try:
        result = BenchResult.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(f"{file} is no result of `assay bench`: {str(error)[:200]}", hint="name its folder") from error
    measures = result.measures
    if measures is None or not result.valid:
        failed = ", ".join(gate.name for gate in result.gates if not gate.passed)
        raise UsageError(f"{file}: its numbers are not to be used: {failed}", hint="measure again: `assay bench`")
    return MeasuredRun(
        source=str(file),
        sequences=measures.mean_in_flight,
        in_flight=measures.mean_in_flight,
        output_tokens_per_s=measures.output_tokens_per_s,
        tpot_s=measures.tpot.quantiles.mean_s,
        gap_s=measures.itl_per_token.quantiles.p50_s,
        ttft_s=measures.ttft.quantiles.mean_s,
        input_tokens=measures.mean_input_tokens,
        output_tokens=measures.mean_output_tokens,
        client_lag_s=result.client.read_delay_p50_s or result.client.lag_p50_s,
        requests_per_s=measures.requests_per_s,
        loads=load_of(result),
        engine=result.engine,
        shares_steps=(result.engine or "").lower().startswith(SHARING),
    )


def of_server(url: str, watch_s: float) -> tuple[ServerTimes | None, MeasuredRun | None, list[str]]:
    """What a running server's counters say of a stretch, or of its life where nothing happened in it.

    Raises:
        UsageError: the address is none.
        EngineError: nobody answers.
    """
    import time

    from assay.formats.server_metrics import server_times

    before = _metrics(url)
    if not before:
        return None, None, [f"{url}/metrics tells nothing: for llama.cpp start the server with --metrics"]
    running, deadline_s, began_s = [], time.monotonic() + watch_s, time.monotonic()
    after = before
    while time.monotonic() < deadline_s:
        time.sleep(min(POLL_S, watch_s))
        after = _metrics(url)
        running += [value for name, value in after.items() if name in _running_names()]
    mean = sum(running) / len(running) if running else None
    watched = server_times(before, after, time.monotonic() - began_s, mean)
    if watched is None:
        return None, None, [f"{url}/metrics has counters of no engine that is known here"]
    if watched.tpot_s or watched.ttft_s:
        return watched, _run_of(url, watched), []
    since = server_times(None, after, None, None)
    note = f"no request ended in the {watch_s:g} s that were watched: these are means since the server started"
    return since, _run_of(url, since), [note]


def served_model(url: str) -> str | None:
    """What to read the model of a server from: llama.cpp's own path where that file is here, else the served name."""
    import json
    from contextlib import suppress

    from assay.load.server import Server

    with suppress(EngineError, OSError, ValueError):
        path = json.loads(_get(f"{_base(url)}/props")).get("model_path")
        if isinstance(path, str) and Path(path).is_file():
            return path
    with suppress(EngineError, UsageError):
        return Server(url).served().model
    return None


def _run_of(url: str, times: ServerTimes | None) -> MeasuredRun | None:
    from assay.records.attribution import MeasuredRun

    if times is None or not (times.tpot_s or times.ttft_s):
        return None
    waiting = times.waiting or 0.0
    return MeasuredRun(
        source=url,
        sequences=times.running,
        in_flight=None if times.running is None else times.running + waiting,
        output_tokens_per_s=times.output_tokens_per_s,
        tpot_s=times.tpot_s,
        ttft_s=times.ttft_s,
        input_tokens=times.input_tokens,
        output_tokens=times.output_tokens,
        requests_per_s=times.requests / times.watched_s if times.requests and times.watched_s else None,
    )


def _named(state: CampaignState, run_id: str) -> RunRecord:
    found = next((run for run in state.runs if run.intent.run_id == run_id), None)
    if found is None:
        known = [run.intent.run_id for run in state.runs]
        raise UsageError(
            f"the campaign has no run {run_id!r}",
            hint=f"it has {known[0]} to {known[-1]}" if known else "it has none yet: `assay run`",
        )
    if found.outcome is None or found.outcome.measures is None:
        reason = found.outcome.reason if found.outcome else "it did not end"
        raise UsageError(f"run {run_id} measured nothing: {reason}", hint="name a run that is ok: `assay status`")
    return found


def _of_baseline(state: CampaignState, *, also_as_candidate: bool) -> list[RunRecord]:
    """Its valid runs."""
    return [
        run
        for run in state.runs
        if (also_as_candidate or run.intent.candidate is None)
        and not run.intent.arm.deltas
        and run.outcome is not None
        and run.outcome.status == "ok"
    ]


def _gap(measures: Measures) -> float | None:
    """Median gap between chunks where it is that of a step: a chunk is a token, and the chunks do not come in pairs.

    Of single tokens the mean gap is no longer than the mean time per token. A step without prompts is no longer than
    the mean of all steps: a longer median is that of chunks which the server sends, or the client reads, two at a time.
    """
    gap_s, each_s, median_s = measures.itl.mean_s, measures.tpot.mean_s, measures.itl.p50_s
    if gap_s is None or each_s is None or median_s is None:
        return None
    return median_s if gap_s <= ONE_TOKEN * each_s and median_s <= each_s else None


def _throughput(run: RunRecord) -> float:
    return run.outcome.measures.output_tokens_per_s if run.outcome and run.outcome.measures else 0.0


def _slots(outcome: RunOutcome) -> int | None:
    """Sequences that the server takes at once, by its own word."""
    found = outcome.effective.get("total_slots", outcome.effective.get("log.n_slots"))
    return found if isinstance(found, int) and found > 0 else None


def _threads(record: RunRecord) -> int | None:
    """That a CPU engine computes with: its log's word, else the flag."""
    told: list[Any] = [record.intent.arm.flags.get(name) for name in ("--threads", "-t")]
    if record.outcome is not None:
        told.insert(0, record.outcome.effective.get("log.n_threads"))
    for value in told:
        if isinstance(value, int | str) and str(value).isdecimal() and int(value) > 0:
            return int(value)
    return None


def _running_names() -> set[str]:
    from assay.formats.server_metrics import ENGINES

    return {name for names in ENGINES.values() for name in names.running}


def _metrics(url: str) -> dict[str, float]:
    """The server's counters; empty where it answers and has none.

    Raises:
        EngineError: nobody answers.
    """
    from urllib.error import HTTPError

    from assay.load.server import parse_metrics

    try:
        return parse_metrics(_get(f"{_base(url)}/metrics").decode("utf-8", "replace"))
    except EngineError as error:
        if isinstance(error.__cause__, HTTPError):
            return {}
        raise


def _base(url: str) -> str:
    from assay.load.server import Server

    return Server(url).url


def _get(address: str) -> bytes:
    from assay.load.server import opener

    try:
        with opener().open(address, timeout=ASK_S) as response:
            content: bytes = response.read(1 << 24)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"{address} did not answer: {getattr(error, 'reason', error)}", hint="is the server up?"
        ) from error
    return content
