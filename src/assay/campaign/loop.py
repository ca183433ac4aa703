"""The campaign: ask `assay.plan` what is next, do it, record it, until it is done."""

from __future__ import annotations

from assay.campaign.bench import RUN_TOKEN, Bench
from assay.campaign.run_protocol import KILLED, make_run, measured_before_soak, soak_interrupted
from assay.errors import ApprovalNeeded, EngineError, MeasurementError
from assay.plan.next_step import next_step
from assay.plan.proof import unproved
from assay.plan.remaining import remaining_s
from assay.plan.scores import readable
from assay.plan.soak_words import told
from assay.plan.steps import (
    AskApproval,
    Done,
    Finish,
    GiveUp,
    MakeRun,
    RecordAblation,
    RecordCalibration,
    RecordDial,
    RecordScreen,
    RecordVerdict,
    Step,
)
from assay.plan.verdicts import effect_text
from assay.records.event import EventKind
from assay.records.hypothesis import Hypothesis
from assay.records.run import RunOutcome, RunStatus
from assay.records.state import CampaignState, RunRecord, invalid_s
from assay.records.verdict import Verdict, VerdictKind

Conclusion = RecordCalibration | RecordDial | RecordScreen | RecordVerdict | RecordAblation


def run_campaign(bench: Bench, *, max_runs: int | None = None) -> CampaignState:
    """Carry the campaign on until it is finished (or `max_runs` more runs are made).

    Raises:
        ApprovalNeeded: the policy asks for a person's word.
        EngineError: the baseline does not start.
        MeasurementError: the baseline cannot be measured validly, or runs that do not count took a whole budget.
    """
    recover(bench)
    _tell_kept(bench)
    made, first_run = 0, len(bench.state.runs)
    while not isinstance(step := next_step(bench.state, first_run=first_run), Done):
        if isinstance(step, MakeRun):
            if max_runs is not None and made >= max_runs:
                break
            made += 1
        _perform(bench, step)
        stop_where_nothing_counts(bench.state, first_run)
    return bench.state


def stop_where_nothing_counts(state: CampaignState, first_run: int) -> None:
    """Runs whose gates fail are not charged to the budget, but a session is not to take twice what was asked for.

    Raises:
        MeasurementError: those of this session took as long as the whole budget.
    """
    lost_s, total_s = invalid_s(state.runs[first_run:]), state.spec.budget.total_s
    if state.headline is None and lost_s > total_s:
        raise MeasurementError(
            f"runs that do not count took {lost_s:.0f} s in this session, as long as the whole budget ({total_s:g} s)",
            hint="quiet the machine, then `assay run` again: what counted is kept, and these runs used no budget",
        )


def recover(bench: Bench) -> list[str]:
    """Close runs that an earlier Assay left open: no server of ours stays alive.

    One that was measured and only soaked counts as measured; any other is abandoned.

    Returns:
        Ids of the runs that were closed.
    """
    closed = []
    for run in bench.state.runs:
        if run.outcome is not None:
            continue
        left = _end_left(bench, run)
        outcome = measured_before_soak(run, f"{KILLED}; {left}") or RunOutcome(
            run_id=run.intent.run_id,
            status=RunStatus.ABANDONED,
            reason=f"Assay ended during this run; {left}",
            duration_s=0.0,
        )
        files = bench.files.hashes(run.intent.run_id)
        bench.note(EventKind.RUN_ENDED, {"outcome": outcome.model_dump(mode="json"), "files": files})
        bench.progress.result(f"{run.intent.run_id} {outcome.reason}")
        closed.append(run.intent.run_id)
    return closed


def _tell_kept(bench: Bench) -> None:
    """Where the last session ended within a soak: its run counts, and what becomes of the soak."""
    last = bench.state.runs[-1] if bench.state.runs else None
    if last is None or last.outcome is None or not soak_interrupted(last.intent, last.outcome):
        return
    bench.progress.result(
        f"{last.intent.run_id} {last.intent.arm.label}: its measurement was complete and counts; the soak alone was "
        "interrupted, and is made again with the next run of the same configuration"
    )


def _end_left(bench: Bench, run: RunRecord) -> str:
    """End what is left of a run's server if it is this folder's, and say so.

    A copy of a folder shares its record with the original, whose server may be at work: that one is left alone. Older
    records name no folder; there a process is ours when it writes this very folder's log.
    """
    run_id, place = run.intent.run_id, run.intent.folder
    token = bench.token(run_id, place)
    alive = bench.find_alive(run.server, RUN_TOKEN, token)
    log = bench.files.folder(run_id) / "server.log"
    ours = place == bench.place if place else any(bench.has_open(pid, log) for pid in alive)
    if alive and not ours:
        pids = " ".join(str(pid) for pid in alive)
        return (
            f"its server may still run as process {pids} and was left alone: it belongs to another folder, of which "
            f"this is a copy, or was this folder before it was moved; if no Assay runs there any more: kill {pids}"
        )
    ended = bench.end_recorded(run.server) if run.server else False
    ended = bench.end_marked(RUN_TOKEN, token) > 0 or ended
    return "its server was ended" if ended else "no server of it was left"


def _perform(bench: Bench, step: Step) -> None:
    match step:
        case MakeRun(intent=intent):
            left = remaining_s(bench.state)
            spent = bench.state.spent_s
            bench.progress.step(intent.why, done_s=spent, total_s=spent + left)
            _tell_run(bench, make_run(bench, intent), intent.arm.label)
        case RecordCalibration() | RecordDial() | RecordScreen() | RecordVerdict() | RecordAblation():
            _conclude(bench, step)
        case Finish(headline=headline):
            bench.note(EventKind.CAMPAIGN_FINISHED, {"headline": headline.model_dump(mode="json")})
            bench.progress.result(readable(headline.sentence, bench.state.spec), good=headline.confirmed)
        case AskApproval(ids=ids):
            raise ApprovalNeeded(
                f"the policy asks for approval before {', '.join(ids)}",
                hint="set `approved: true` in improvements/NN-<id>.md, or `status: cancelled`, then `assay run`",
            )
        case GiveUp(reason=reason, hint=hint, engine_failed=engine_failed):
            raise (EngineError if engine_failed else MeasurementError)(reason, hint=hint)


def _conclude(bench: Bench, step: Conclusion) -> None:
    """Write down what the runs so far say."""
    match step:
        case RecordCalibration(calibration=calibration):
            bench.note(EventKind.CALIBRATED, {"calibration": calibration.model_dump(mode="json")})
            bench.progress.result(
                f"noise of this box: one bracket ±{100 * calibration.bracket_sd:.1f}%; "
                f"detectable in the screen: {100 * calibration.min_detectable_effect:.0f}%"
            )
        case RecordDial(result=result):
            bench.note(EventKind.DIAL_SETTLED, {"result": result.model_dump(mode="json")})
            bench.progress.result(f"{result.candidate}: {result.reason}")
        case RecordScreen(result=result):
            bench.note(EventKind.SCREENED, {"result": result.model_dump(mode="json")})
            bench.progress.result(
                f"{result.candidate}: {effect_text(result.effect)}, goes on to composition", good=True
            )
        case RecordVerdict(verdict=verdict):
            _record_verdict(bench, verdict)
        case RecordAblation(ablation=ablation):
            bench.note(EventKind.ABLATED, {"ablation": ablation.model_dump(mode="json")})
            bench.progress.result(
                f"{ablation.candidate}: {'kept' if ablation.kept else 'taken out'}: {ablation.reason}"
            )
            if not ablation.kept:
                note_verdict(bench, bench.state.verdicts[ablation.candidate])


def _tell_run(bench: Bench, outcome: RunOutcome, label: str) -> None:
    if outcome.status is not RunStatus.OK:
        bench.progress.result(f"{outcome.run_id} {label}: {outcome.status}: {outcome.reason}", good=False)
    elif outcome.soak is not None and not outcome.soak.passed:
        bench.progress.result(f"{outcome.run_id} {label}: {told(outcome.soak)}", good=False)


def _record_verdict(bench: Bench, verdict: Verdict) -> None:
    bench.note(EventKind.VERDICT_REACHED, {"verdict": verdict.model_dump(mode="json")})
    note_verdict(bench, verdict)
    good = {VerdictKind.ADOPTED: True, VerdictKind.WORSE: False}.get(verdict.kind)
    bench.progress.result(f"{verdict.candidate}: {verdict.kind}: {verdict.reason}", good=good)
    hypothesis = _hypothesis(bench, verdict)
    if hypothesis is not None and (missing := unproved(hypothesis, bench.state)):
        bench.progress.result(f"{verdict.candidate}: {missing}")


def note_verdict(bench: Bench, verdict: Verdict) -> None:
    """Write a verdict into its improvement document; writing it twice changes nothing."""
    hypothesis = _hypothesis(bench, verdict)
    if hypothesis is None:
        return
    mark = "SIMULATED, nothing here was measured on a machine: " if bench.state.is_simulated else ""
    lines = [f"{mark}**{verdict.kind}** {verdict.reason}"]
    if verdict.line:
        lines += ["", "    " + verdict.line]
    if missing := unproved(hypothesis, bench.state):
        lines += ["", missing]
    if verdict.runs:
        lines += ["", f"Runs: {', '.join(verdict.runs)}."]
    bench.documents.note_verdict(hypothesis, "\n".join(lines))


def _hypothesis(bench: Bench, verdict: Verdict) -> Hypothesis | None:
    return next((h for h in bench.state.hypotheses if h.id == verdict.candidate), None)
