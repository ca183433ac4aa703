"""Verbs that only look: status, todo, next, verify; and those that write from what they see: report, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay.errors import RecordError, UsageError

if TYPE_CHECKING:
    from assay.records.state import CampaignState
    from assay.records.views import NextStep, ReportPaths, TodoItem, Verification

ExportKind = Literal["shell", "compose", "kubernetes", "json"]


def status(folder: Path) -> CampaignState:
    """The campaign as its record tells it.

    Raises:
        UsageError: there is no campaign in this folder.
        RecordError: the record cannot be read.
    """
    from assay.plan.fold import fold
    from assay.store.reader import read_events

    database = folder / "assay.db"
    events = read_events(database) if database.exists() else []
    if not events:  # an empty one is being made by `assay plan`, or was when that was killed
        from assay.api.plan_arrived import awaited

        begun = "write the plan first: `assay init`, then `assay plan`; or see it all at once: `assay demo`"
        away = "it was planned for another machine, where its record will begin: `assay plan` shows that plan"
        raise UsageError(f"{folder} holds no record (assay.db)", hint=away if awaited(folder) else begun)
    return fold(events)


def todo(folder: Path) -> list[TodoItem]:
    """The hypotheses as a todo list, in the plan's order."""
    from assay.plan.todo import todo as items

    return items(status(folder))


def passed_over(folder: Path) -> dict[str, str]:
    """Catalogue entries that do not apply here, each with the reason."""
    return status(folder).passed_over


def next_step(folder: Path) -> NextStep:
    """What `assay run` would do next, why, and what is left."""
    from assay.plan.forecast import describe_next

    return describe_next(status(folder))


def remaining_s(state: CampaignState) -> float:
    """Expected measuring time until the campaign ends, in seconds."""
    from assay.plan.remaining import remaining_s as left

    return left(state)


def nothing_measured(state: CampaignState) -> str | None:
    """Why a finished campaign measured no candidate, in words; None where it did, or is not finished."""
    from assay.plan.confirming import nothing_measured as why

    return why(state) if state.headline is not None and not state.stack else None


def verify(folder: Path) -> Verification:
    """Prove the record: chain, payloads, run files.

    Raises:
        UsageError: there is no campaign in this folder.
    """
    from assay.store.verify import verify as prove

    if not (folder / "assay.db").exists():
        raise UsageError(f"{folder} holds no record (assay.db)", hint="name a campaign's folder")
    return prove(folder)


def report(folder: Path) -> ReportPaths:
    """Write report/index.html and report/report.md from the record."""
    from assay.api.bottleneck import bottlenecks
    from assay.api.rehearse import step_facts
    from assay.records.views import ReportPaths
    from assay.render.report import report_html, report_markdown
    from assay.store.atomic import atomic_write

    state = status(folder)
    commands = _launch_commands(folder, state)
    latencies = _latencies(folder, state)
    step, parts = step_facts(state), bottlenecks(state)
    html = report_html(state, launch_commands=commands, latencies=latencies, step=step, bottlenecks=parts)
    markdown = report_markdown(state, launch_commands=commands, step=step, bottlenecks=parts)
    target = folder / "report"
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordError(
            f"cannot make {target}: {error}", hint="copy the campaign to a folder you can write"
        ) from error
    atomic_write(target / "index.html", html.encode())
    atomic_write(target / "report.md", markdown.encode())
    return ReportPaths(html=str(target / "index.html"), markdown=str(target / "report.md"))


def export(folder: Path, kind: ExportKind = "shell") -> str:
    """The launch command to ship: the confirmed stack, or the baseline when nothing was adopted or confirmed.

    Of a stack that no soak shows to be stable it says so.

    Raises:
        UsageError: the campaign is not finished yet.
    """
    from assay.api.shown_command import shown_command
    from assay.plan.arms import arm_with
    from assay.plan.composing import stack_of
    from assay.render.export import export as render
    from assay.render.words import is_simulated

    state = status(folder)
    if state.headline is None:
        raise UsageError("the campaign is not finished: there is nothing to ship yet", hint="carry on with `assay run`")
    confirmed = state.headline.confirmed
    arm = arm_with(state.spec.target, stack_of(state) if confirmed else [])
    shown = shown_command(state, arm, _artifact_path(folder, state) if confirmed else None)
    why = state.headline.not_shown_stable if confirmed else None
    return render(kind, shown.argv, shown.env, simulated=is_simulated(state), not_shown_stable=why)


def missing_model(folder: Path) -> str | None:
    """The model's path in the exported command, where it is none of this machine; None where it exists or is a name."""
    state = status(folder)
    confirmed = state.headline is not None and state.headline.confirmed
    return missing_path(state, _artifact_path(folder, state) if confirmed else None)


def missing_path(state: CampaignState, made: str | None) -> str | None:
    """The same of a campaign that may have made its own model file (`made`).

    A launch that is wrapped (a container, another host) has paths of its own: nothing is said of them.
    """
    if state.spec.target.launch is not None or state.spec.target.url is not None:
        return None
    path = Path(made or state.model.path)
    return None if not path.is_absolute() or path.exists() else str(path)


def _artifact_path(folder: Path, state: CampaignState) -> str | None:
    """The model file the last run of the full stack served, when it is not the target's own."""
    import json

    for run in reversed(state.runs):
        if state.stack and run.intent.arm.deltas == state.stack and run.intent.arm.artifact:
            command = folder / "runs" / run.intent.run_id / "command.json"
            argv = json.loads(command.read_text(encoding="utf-8"))["argv"]
            return str(argv[argv.index("--model") + 1])
    return None


def _launch_commands(folder: Path, state: CampaignState) -> dict[str, str]:
    import shlex

    from assay.api.shown_command import shown_command
    from assay.plan.arms import arm_with, baseline_arm
    from assay.plan.composing import stack_of
    from assay.store.redact import redact

    commands = {"baseline": shown_command(state, baseline_arm(state.spec.target))}
    if state.stack:
        arm = arm_with(state.spec.target, stack_of(state))
        commands["stack"] = shown_command(state, arm, _artifact_path(folder, state))
    return {name: shlex.join([*_settings(command.env), *redact(command.argv)]) for name, command in commands.items()}


def _settings(env: dict[str, str]) -> list[str]:
    """Environment variables as `env NAME=value ...`, which every shell starts; nothing where there are none."""
    return ["env", *(f"{name}={value}" for name, value in env.items())] if env else []


def _latencies(folder: Path, state: CampaignState) -> dict[str, dict[str, list[float]]] | None:
    """Per-request latencies of the confirmation's two arms, from their samples."""
    from assay.plan.series import CONFIRMATION, valid_runs
    from assay.store.files import CampaignFolder

    files = CampaignFolder(folder)
    arms: dict[str, dict[str, list[float]]] = {}
    for run in valid_runs(state, CONFIRMATION):
        name = "baseline" if run.intent.candidate is None else "stack"
        for sample in files.read_samples(run.intent.run_id):
            if sample.error is not None or sample.phase != "measured":
                continue
            for metric, value in (("ttft_s", sample.ttft_s), ("tpot_s", sample.tpot_s)):
                if value is not None:
                    arms.setdefault(name, {}).setdefault(metric, []).append(value)
    return arms or None
