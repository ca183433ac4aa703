"""One run, from preflight to proof that the server is gone: what makes a number count.

Intent is recorded before anything starts and the outcome after everything is stopped. Whatever goes wrong between
is an outcome with a status, never a lost run; only Assay's own malfunctions leave as exceptions, and even then the
server is stopped first.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Any

from assay.campaign import answers
from assay.campaign.applied import not_applied, proofs
from assay.campaign.bench import RUN_TOKEN, Bench
from assay.campaign.gates import describe, failed_gates, machine_gates, wait_until_quiet
from assay.campaign.soak import cut_short, soak
from assay.errors import MeasurementError
from assay.plan.arms import build_for
from assay.plan.series import A_A
from assay.ports import CachesOnRequest, ForeignServer, LaunchFailed, Server
from assay.records.event import EventKind
from assay.records.failure import Cause
from assay.records.hypothesis import Numerics
from assay.records.load import LoadRequest, LoadResult
from assay.records.run import AnswerCheck, Failure, Gate, RunIntent, RunOutcome, RunStatus
from assay.records.spec import Workload
from assay.records.state import RunRecord

RELEVANT = 4096
"""Longest text value of the effective configuration that is kept."""
CUT_SHORT = "every gate passed; its soak was interrupted by Ctrl-C and says nothing"
"""Reason of a run whose measurement was complete when it was interrupted."""
KILLED = "every gate passed; Assay ended during its soak, which says nothing"
INTERRUPTED = {"status": RunStatus.ABANDONED, "reason": "interrupted by Ctrl-C"}


def make_run(bench: Bench, intent: RunIntent) -> RunOutcome:
    """Carry out one intent and record how it ended."""
    waited_s = wait_until_quiet(bench)  # before the run: it is no measuring time
    intent = intent.model_copy(update={"host": bench.host, "folder": bench.place})
    bench.note(EventKind.RUN_INTENDED, {"intent": intent.model_dump(mode="json")})
    began = time.monotonic()
    facts: dict[str, Any] = {}
    try:
        facts = _attempt(bench, intent, waited_s)
    except LaunchFailed as failed:
        facts = _failed(failed.failure)
    except MeasurementError as refused:
        log = f"runs/{intent.run_id}/server.log"
        facts = _failed(Failure(stage="under-load", cause=Cause.REQUESTS_REFUSED, line=refused.message, log=log))
    except KeyboardInterrupt:
        kept = measured_before_soak(bench.state.runs[-1], CUT_SHORT)
        facts = _facts(kept) if kept else {**INTERRUPTED, "waited_s": waited_s}
        _end(bench, intent, facts, began)
        raise
    interrupted = facts.pop("interrupted", False)
    outcome = _end(bench, intent, {**facts, "waited_s": waited_s}, began)
    if interrupted:
        raise KeyboardInterrupt
    return outcome


def soak_interrupted(intent: RunIntent, outcome: RunOutcome) -> bool:
    """Whether a run was measured whole, and only the soak after it was ended, by Ctrl-C or with Assay itself."""
    return outcome.status is RunStatus.OK and intent.soak_s > 0 and outcome.soak is None


def measured_before_soak(run: RunRecord, reason: str) -> RunOutcome | None:
    """A run as recorded before its soak, with what became of that as the reason; None when it did not get so far."""
    return run.measured.model_copy(update={"reason": reason}) if run.measured else None


def _facts(outcome: RunOutcome) -> dict[str, Any]:
    """Everything of it but what an end adds."""
    return {name: getattr(outcome, name) for name in RunOutcome.model_fields if name not in {"run_id", "duration_s"}}


def _end(bench: Bench, intent: RunIntent, facts: dict[str, Any], began: float) -> RunOutcome:
    files = bench.files.hashes(intent.run_id)
    told = _told(bench, intent, facts, began)
    bench.note(EventKind.RUN_ENDED, {**told, "files": files})
    return RunOutcome.model_validate(told["outcome"])


def _told(bench: Bench, intent: RunIntent, facts: dict[str, Any], began: float) -> dict[str, Any]:
    """A run's outcome for the record, without the secrets that it was started with."""
    outcome = RunOutcome(run_id=intent.run_id, duration_s=time.monotonic() - began, **facts)
    return {"outcome": bench.files.masked(intent.run_id, outcome.model_dump(mode="json"))}


def _attempt(bench: Bench, intent: RunIntent, waited_s: float) -> dict[str, Any]:
    """Launch, measure, soak where asked, and stop whatever happens."""
    began = time.monotonic()
    folder = bench.files.folder(intent.run_id)
    before = bench.probe.snapshot()
    target = bench.target
    model_path = _model_path(bench, intent)
    argv = bench.engine.argv(build_for(bench.state.build, intent.arm), model_path, intent.arm.flags, bench.free_port())
    asked = {**target.env, **intent.arm.env}
    bench.files.write_json(intent.run_id, "command.json", {"argv": argv, "env": asked, "why": intent.why})
    bench.progress.phase("launching")
    env = {**asked, RUN_TOKEN: bench.token(intent.run_id, intent.folder)}
    bench.expect(env[RUN_TOKEN])
    server = bench.engine.launch(argv, env, folder / "server.log", f"runs/{intent.run_id}/server.log")
    try:
        bench.note(
            EventKind.SERVER_STARTED, {"run_id": intent.run_id, "server": server.identity.model_dump(mode="json")}
        )
        _tell_absence(bench, server)
        start_s = server.wait_ready(target.start_timeout_s)
        facts = {"start_s": start_s, "machine_before": before, **_serve(bench, intent, server)}
        if facts["status"] is RunStatus.OK and intent.soak_s:
            bench.note(EventKind.RUN_MEASURED, _told(bench, intent, {**facts, "waited_s": waited_s}, began))
            facts |= _soaked(bench, intent, server)
        return facts
    finally:
        server.stop()


def _tell_absence(bench: Bench, server: Server) -> None:
    """What is not ours to start may be gone for longer than anybody would wait without a word."""
    if isinstance(server, ForeignServer) and (problem := server.absence()) is not None:
        patience = f"waiting for it, at most {bench.target.start_timeout_s:g} s (target.start_timeout_s)"
        bench.progress.result(f"{server.base_url} cannot be measured: {problem}; {patience}", good=False)


def _serve(bench: Bench, intent: RunIntent, server: Server) -> dict[str, Any]:
    """Everything between ready and stop."""
    effective = {k: v for k, v in server.effective().items() if not isinstance(v, str) or len(v) <= RELEVANT}
    fallbacks = server.fallbacks()
    facts: dict[str, Any] = {"effective": effective, "fallbacks": fallbacks}
    if said := not_applied(bench, intent, effective, fallbacks):
        return {**facts, "status": RunStatus.NOT_APPLIED, "reason": said}
    facts["proofs"] = proofs(bench, intent, effective)
    tokens = _ask_when_due(bench, intent, server)
    bench.progress.phase("warming up, then measuring")
    result = _load(bench, intent.seed, server, bench.state.spec.workload)
    points = _further_points(bench, intent, server) if result.measures is not None else {}
    after = bench.probe.snapshot(server.identity.pid)
    bench.files.write_samples(intent.run_id, result.samples)
    if (failure := server.failure()) is not None:
        return {**facts, **_failed(failure), "machine_after": after}
    further = [_named(gate, name) for name, point in points.items() for gate in point.gates]
    gates = [*result.gates, *further, *machine_gates(after, bench.state.machine, bench.state.spec.gates)]
    rss = server.rss_bytes()
    check = _check(bench, intent, tokens, result)
    facts |= {"gates": gates, "machine_after": after, "answers": check, "answer_tokens": tokens}
    concluded = _conclude(bench, intent, result, gates, check, rss)
    if "measures" in concluded:
        facts["points"] = {name: point.measures for name, point in points.items() if point.measures is not None}
    return facts | concluded


def _soaked(bench: Bench, intent: RunIntent, server: Server) -> dict[str, Any]:
    """What is added to a run by its soak; it counts though its server dies in there: what was measured was whole.

    Whose fault that is, one soak cannot tell (`assay.plan.soaking`).
    """
    began = time.monotonic()
    seed = intent.seed + zlib.crc32(b"soak")  # prompts of its own: none is in the prefix cache yet
    try:
        found = soak(bench, intent, server, lambda workload, alive: _load(bench, seed, server, workload, alive))
        more: dict[str, Any] = {"soak": found}
    except KeyboardInterrupt:  # what was measured before it is whole, unless the server fell first
        more = {"reason": CUT_SHORT, "interrupted": True}
        found = cut_short(bench.state.spec.workload, time.monotonic() - began)
    if (failure := server.failure()) is None:
        return more
    died = f"{_failed(failure)['reason']}, {time.monotonic() - began:.0f} s into a soak at peak load"
    told = f"every gate passed; then its server died: {died}"
    return {**more, "reason": told, "failure": failure, "soak": found.model_copy(update={"died": died})}


def _further_points(bench: Bench, intent: RunIntent, server: Server) -> dict[str, LoadResult]:
    """The workload's other loads, one after the other on the same server; one that fails ends them."""
    workload, played = bench.state.spec.workload, {}
    for point in workload.points:
        bench.progress.phase(f"measuring {point.name}: {point.concurrency} in flight")
        seed = intent.seed + zlib.crc32(point.name.encode())  # prompts of its own: none is in the prefix cache yet
        played[point.name] = _load(bench, seed, server, workload.at(point))
        if played[point.name].measures is None:
            break
    return played


def _named(gate: Gate, point: str) -> Gate:
    return gate.model_copy(update={"name": f"{point}: {gate.name}"})


def _conclude(
    bench: Bench,
    intent: RunIntent,
    result: LoadResult,
    gates: list[Gate],
    check: AnswerCheck | None,
    rss_bytes: int | None,
) -> dict[str, Any]:
    bad = failed_gates(gates)
    if bad or result.measures is None:
        # A run counts whole: its points are one trial, and half of one would be another objective.
        reason = "; ".join(describe(gate) for gate in bad) or "nothing was measured"
        return {"status": RunStatus.INVALID, "reason": reason}
    measures = result.measures.model_copy(update={"server_rss_bytes": rss_bytes})
    numerics = _numerics(bench, intent)
    wrong = check and numerics and answers.judge(check, numerics, bench.state.spec.quality, bench.state)
    if wrong:
        return {"status": RunStatus.WRONG_OUTPUT, "reason": wrong, "measures": measures}
    return {"status": RunStatus.OK, "reason": "every gate passed", "measures": measures}


def _model_path(bench: Bench, intent: RunIntent) -> str:
    if intent.arm.artifact is None:
        return bench.state.model.path
    bench.progress.phase("making the model artifact")
    return bench.engine.make_artifact(bench.state.model, intent.arm.artifact, bench.folder / "artifacts")


def _ask_when_due(bench: Bench, intent: RunIntent, server: Server) -> list[int] | None:
    """Baseline: once as the reference, then in its A/A runs; other arms: once in each series.

    Answers given in a run that did not count were never judged, so they are asked for again.
    """
    state = bench.state
    asked_before = any(
        run.outcome is not None
        and run.outcome.status is RunStatus.OK
        and run.outcome.answer_tokens is not None
        and (run.intent.series, run.intent.arm.deltas) == (intent.series, intent.arm.deltas)
        for run in state.runs
    )
    natural = intent.candidate == A_A or answers.reference_tokens(state) is None
    if (intent.arm.deltas and asked_before) or not (intent.arm.deltas or natural):
        return None
    bench.progress.phase("checking answers")
    return answers.ask(server, state.spec.quality)


def _check(bench: Bench, intent: RunIntent, tokens: list[int] | None, result: LoadResult) -> AnswerCheck | None:
    reference = answers.reference_tokens(bench.state)
    if tokens is None or reference is None:
        return None
    check = answers.compare(tokens, reference)
    if (earlier := _same_prompts(bench, intent)) is not None:
        agreed, compared = answers.compare_under_load(result.samples, bench.files.read_samples(earlier))
        check = check.model_copy(update={"under_load_probes": compared, "under_load_agreed": agreed})
    numerics = _numerics(bench, intent)
    untold = numerics and answers.untold(check, numerics, bench.state.spec.quality, bench.state)
    return check.model_copy(update={"untold": untold})


def _same_prompts(bench: Bench, intent: RunIntent) -> str | None:
    """The baseline run with this run's prompts, if there is one."""
    if intent.candidate is None:
        return None
    for run in reversed(bench.state.runs):
        same = run.intent.series == intent.series and run.intent.seed == intent.seed and not run.intent.arm.deltas
        if same and run.intent.candidate is None and run.outcome and run.outcome.status is RunStatus.OK:
            return run.intent.run_id
    return None


def _numerics(bench: Bench, intent: RunIntent) -> Numerics | None:
    """The loosest promise among the arm's deltas; None for the baseline, whose answers are the reference."""
    if not intent.arm.deltas or intent.candidate == A_A:
        return None
    promises = {h.optimization.numerics for h in bench.state.hypotheses if h.id in intent.arm.deltas}
    order: tuple[Numerics, ...] = ("approximate", "reordered", "exact")
    return next((numerics for numerics in order if numerics in promises), None)


def _load(
    bench: Bench, seed: int, server: Server, workload: Workload, alive: Callable[[], bool] | None = None
) -> LoadResult:
    request = LoadRequest(
        base_url=server.base_url,
        model=server.model_name,
        workload=workload,
        seed=seed,
        api_key_env=server.api_key_env if isinstance(server, ForeignServer) else None,
        extra_body=dict(
            server.body_with_cache
            if workload.shared_prefix_tokens and isinstance(server, CachesOnRequest)
            else server.extra_body
        ),
    )
    return bench.load.run(request, server.tokenize, alive or (lambda: server.failure() is None))


def _failed(failure: Failure) -> dict[str, Any]:
    return {
        "status": RunStatus.FAILED,
        "failure": failure,
        "reason": f"{failure.cause} at stage {failure.stage}: {failure.line}",
    }
