"""The command that plans, for this machine or for one that is somewhere else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay import api
from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.options import MACHINE_FILE
from assay.cli.output import say, show, show_json
from assay.errors import EngineError

if TYPE_CHECKING:
    from assay.api.plan_elsewhere_target import Question
    from assay.records.state import CampaignState


@click.command(
    cls=TeachingCommand,
    needs="assay.toml, written by `assay init`, and the engine it names; for another machine not even that engine.",
    examples=[
        "assay plan",
        "assay plan --folder my-campaign --json",
        "assay plan --explain mscclpp",
        "assay plan --on 8xRTX-PRO-6000 --engine-version 0.5.9",
        "assay plan --machine our-box.json --engine-version 0.20.0 --model qwen3-30b-a3b",
    ],
    exits={
        0: "planned",
        2: "assay.toml or a document is wrong, the question changed after it was asked, or the folder was planned for "
        "another machine",
        4: "the engine is missing",
        6: "the record cannot be read or written",
    },
)
@options.folder
@options.as_json
@click.option("--explain", metavar="ENTRY", help="Why this entry is planned, blocked or skipped, with the numbers.")
@click.option(
    "--on", metavar="BOX", show_default="this machine", help="Plan for another one, by its GPUs: 8xRTX-PRO-6000."
)
@click.option("--machine", type=MACHINE_FILE, help="Plan for the machine in this file of `assay assess --save`.")
@click.option(
    "--engine-version",
    metavar="VERSION",
    show_default="assay.toml's, else the newest recorded one",
    help="With --on or --machine: whose recorded flags stand for the engine there.",
)
@click.option("--model", help="With --on or --machine: a known model, or a folder here, that has the target's shape.")
def plan(
    folder: Path,
    as_json: bool,
    explain: str | None,
    on: str | None,
    machine: Path | None,
    engine_version: str | None,
    model: str | None,
) -> None:
    """Write each optimization that applies here up as a document, and the todo.

    Documents that are there already are read back with your edits (priority, approval, cancellation). Flags that the
    installed engine does not have are blocked now, with the reason, before they cost anything. Starts no server.

    With --on or --machine it plans for a machine that is somewhere else, from recorded flags and data sheets: nothing
    is installed, asked or recorded here. Copy the folder there and `assay run` plans it again with the engine it finds.
    """
    from assay.api.plan_arrived import awaited, is_here
    from assay.api.plan_elsewhere_target import Question

    question = Question(on=on, machine=machine, version=engine_version, model=model)
    waits_for = None if question.names_machine else awaited(folder)
    if question.is_asked or (waits_for is not None and not is_here(waits_for)):
        _plan_elsewhere(folder, question, explain, as_json=as_json)
        return
    try:
        state = api.plan(folder)
    except EngineError as error:
        hint = f"{error.hint}; or plan for the machine that has it, from here: --on BOX --engine-version VERSION"
        raise EngineError(error.message, hint=hint) from error
    if waits_for is not None:
        say(f"planned from elsewhere for {waits_for.machine}: planned again with {state.build.version}, found here")
    if explain is not None:
        _explain(state, explain, as_json=as_json)
    else:
        _tell(folder, state, as_json=as_json)


def _tell(folder: Path, state: CampaignState, *, as_json: bool) -> None:
    items = api.todo(folder)
    left = api.next_step(folder).remaining_s
    if as_json:
        todo = [item.model_dump(mode="json") for item in items]
        show_json({"todo": todo, "remaining_s": left, "warnings": _all_warnings(state)})
        return
    from assay.render.terminal import todo_table

    _say_impossible(state)
    show(todo_table(items))
    _say_documents(folder, len(items))
    if num_passed_over := len(state.passed_over):
        say(f"{num_passed_over} catalogue entries do not apply here; why: assay todo --all")
        say("of one entry, with the numbers: assay plan --explain ENTRY")
    _say_time(state, left, again="in a new folder: this question stands")


def _plan_elsewhere(folder: Path, question: Question, explain: str | None, *, as_json: bool) -> None:
    from assay.api.plan_elsewhere import plan_elsewhere

    found = plan_elsewhere(folder, question)
    state = found.state
    if explain is not None:
        _explain(state, explain, as_json=as_json, label=found.elsewhere.label)
        return
    items, left = found.todo, found.remaining_s
    if as_json:
        show_json(
            {
                "elsewhere": found.elsewhere.model_dump(mode="json", exclude={"snapshot", "documents"}),
                "label": found.elsewhere.label,
                "unknown": found.elsewhere.unknown,
                "todo": [item.model_dump(mode="json") for item in items],
                "passed_over": state.passed_over,
                "remaining_s": left,
                "warnings": _all_warnings(state),
            }
        )
        return
    from assay.render.elsewhere_view import elsewhere_view
    from assay.render.terminal import todo_table

    _say_impossible(state)
    show(elsewhere_view(found.elsewhere, state.reasoning), todo_table(items, with_ranges=True))
    _say_documents(folder, len(items))
    _say_passed_over(state)
    _say_time(state, left, again="and plan again")
    say(f"take it there: copy {folder} to that machine; `assay run` in it plans it again with the engine that is there")


def _say_documents(folder: Path, count: int) -> None:
    documents = "one document" if count == 1 else f"{count} documents"
    say(f"{documents} in {folder / 'improvements'}; read and edit")


def _say_passed_over(state: CampaignState) -> None:
    from assay.plan.expression import UNDECIDED

    open_ones = {name: reason for name, reason in state.passed_over.items() if reason.startswith(UNDECIDED)}
    of_a_step = [name for name, reason in open_ones.items() if reason.startswith(f"{UNDECIDED}step.")]
    of_the_machine = [name for name in open_ones if name not in of_a_step]
    if num_others := len(state.passed_over) - len(open_ones):
        say(f"{num_others} catalogue entries do not apply there; of one, with the numbers: assay plan --explain ENTRY")
    if of_a_step:
        say(f"not decided, because no step of this target could be calculated: {', '.join(of_a_step)}")
    if of_the_machine:
        say(f"decided only there, because something of the machine is unknown here: {', '.join(of_the_machine)}")


def _say_impossible(state: CampaignState) -> None:
    """What today's configuration has no room for: before everything that is planned on it."""
    for told in state.reasoning.surroundings.warnings:
        say(f"warning: {told}")
    if state.reasoning.surroundings.warnings:
        say("")


def _all_warnings(state: CampaignState) -> list[str]:
    return [*state.reasoning.surroundings.warnings, *_warnings(state)]


def _warnings(state: CampaignState) -> list[str]:
    from assay.api.plan_budget import shortfall, slow_start

    return [told for told in (shortfall(state), slow_start(state)) if told]


def _say_time(state: CampaignState, left: float, *, again: str) -> None:
    """What does not fit, and how long it will take.

    Args:
        state: the plan.
        left: expected measuring time in seconds.
        again: where the question can still be changed.
    """
    from assay.api.plan_budget import assumed_launch_s
    from assay.render.words import duration_words

    for told in _warnings(state):
        say(f"warning: {told}\nhint: raise or lower in assay.toml what is named above, {again}")
    launch_s = assumed_launch_s(state)
    launches = f", if a launch takes {duration_words(launch_s)}" if launch_s else ""
    say(f"measuring takes about {duration_words(left)}{launches}: assay run")


def _explain(state: CampaignState, name: str, *, as_json: bool, label: str = "") -> None:
    """One entry; before it, of a plan for another machine, for which and from what."""
    from assay.api.plan_explained import explained

    found = explained(state, name)
    if as_json:
        show_json(
            {
                **({"label": label} if label else {}),
                **found.reasoning.model_dump(mode="json"),
                "surroundings": found.plan.surroundings.model_dump(mode="json"),
                "worth": found.worth.model_dump(mode="json") if found.worth else None,
                "corrected": found.corrected.model_dump(mode="json") if found.corrected else None,
            }
        )
        return
    from assay.render.reasoning_view import reasoning_view

    if label:
        show(label, "")
    show(reasoning_view(found.reasoning, found.plan, found.worth, found.corrected))
