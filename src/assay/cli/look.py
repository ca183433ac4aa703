"""Commands that only look: status, todo, next."""

from __future__ import annotations

from pathlib import Path

import click

from assay import api
from assay.cli import options
from assay.cli.command import NO_CAMPAIGN, UNREADABLE, TeachingCommand
from assay.cli.output import show, show_json

NEEDS = "A planned campaign: `assay plan`, `assay run` or `assay demo`."


@click.command(
    cls=TeachingCommand,
    needs=NEEDS,
    examples=["assay status", "assay status --folder my-campaign --json"],
    exits={0: "shown, finished or not", **NO_CAMPAIGN, **UNREADABLE},
)
@options.folder
@options.as_json
def status(folder: Path, as_json: bool) -> None:
    """Where the campaign is: runs, the box's noise, verdicts, the stack so far, what is left.

    Only reads, so it can be asked while `assay run` is measuring; each question costs a moment of CPU time.
    """
    state = api.status(folder)
    left = 0.0 if state.headline else api.remaining_s(state)
    if as_json:
        from assay.plan.answers_told import untold_answers
        from assay.render.so_far import recorded

        on_trial = {
            name: {"effect": effect.model_dump(mode="json") if effect else None, "final": False, "stands": stands}
            for name, (effect, stands) in recorded(state).items()
        }
        show_json(
            {
                "name": state.spec.name,
                "folder": str(folder),
                "finished": state.headline is not None,
                "random_weights": state.spec.target.has_random_weights,
                "answers_untold": untold_answers(state),
                "runs": sum(1 for run in state.runs if run.outcome),
                "spent_s": state.spent_s,
                "invalid_s": state.invalid_s,
                "budget_s": state.spec.budget.total_s,
                "waited_s": state.waited_s,
                "remaining_s": left,
                "calibration": state.calibration.model_dump(mode="json") if state.calibration else None,
                "hypotheses": len(state.hypotheses),
                "verdicts": {name: verdict.model_dump(mode="json") for name, verdict in state.verdicts.items()},
                "on_trial": on_trial,
                "stack": state.stack,
                "headline": state.headline.model_dump(mode="json") if state.headline else None,
                "last_hash": state.last_hash,
            }
        )
        return
    from assay.render.terminal import status_view

    show(status_view(state, left))


@click.command(
    cls=TeachingCommand,
    needs=NEEDS,
    examples=["assay todo", "assay todo --all", "assay todo --json"],
    exits={0: "shown", **NO_CAMPAIGN, **UNREADABLE},
)
@options.folder
@options.as_json
@click.option("--all", "everything", is_flag=True, help="Also the catalogue entries that do not apply here, and why.")
def todo(folder: Path, as_json: bool, everything: bool) -> None:
    """Every hypothesis of the plan: status, priority, tier, verdict.

    Each is an improvement document, improvements/NN-<id>.md. Edit one to cancel, re-rank or approve it; the next
    `assay plan` or `assay run` reads it back.
    """
    items = api.todo(folder)
    passed_over = api.passed_over(folder) if everything else {}
    if as_json:
        todo_list = [item.model_dump(mode="json") for item in items]
        show_json({"todo": todo_list, "passed_over": passed_over} if everything else todo_list)
        return
    from assay.render.terminal import passed_over_table, todo_table

    show(todo_table(items))
    if passed_over:
        show(passed_over_table(passed_over))


@click.command(
    "next",
    cls=TeachingCommand,
    needs=NEEDS,
    examples=["assay next", "assay next --why", "assay next --json"],
    exits={0: "shown", **NO_CAMPAIGN, **UNREADABLE},
)
@options.folder
@options.as_json
@click.option("--why", is_flag=True, help="Also the planner's reason and what is left (always there with --json).")
def next_command(folder: Path, as_json: bool, why: bool) -> None:
    """What `assay run` would do next, and why.

    The next step depends on the record alone: ask twice, and the answer is the same. Nothing is started.
    """
    step = api.next_step(folder)
    if as_json:
        show_json(step.model_dump(mode="json"))
        return
    if why:
        from assay.render.terminal import next_view

        show(next_view(step))
    else:
        show(f"SIMULATED: {step.text}" if step.simulated else step.text)
