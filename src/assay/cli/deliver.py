"""Commands that hand something over: report, export, verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay import api
from assay.cli import options
from assay.cli.command import NO_CAMPAIGN, UNREADABLE, TeachingCommand
from assay.cli.failure import fail_check
from assay.cli.output import say, show, show_exactly, show_json
from assay.errors import UsageError


@click.command(
    cls=TeachingCommand,
    needs="A planned campaign; it need not be finished.",
    examples=["assay report", "assay report --folder my-campaign --json"],
    exits={0: "written", **NO_CAMPAIGN, 6: "the record cannot be read, or the report cannot be written"},
)
@options.folder
@options.as_json
def report(folder: Path, as_json: bool) -> None:
    """Write report/index.html (one file, opens offline) and report/report.md from the record.

    Prints the two paths. Every number in the report can be traced to a run. `assay run` and `assay demo` end with this.
    """
    paths = api.report(folder)
    if as_json:
        show_json(paths.model_dump())
    else:
        show(paths.html, paths.markdown)


@click.command(
    cls=TeachingCommand,
    needs="A finished campaign: `assay run` or `assay demo`.",
    examples=["assay export", "assay export --format compose > compose.yaml", "assay export --json"],
    exits={0: "printed", 2: "there is no campaign in this folder, or it is not finished", **UNREADABLE},
)
@options.folder
@options.as_json
@click.option(
    "--format",
    "kind",
    type=click.Choice(["shell", "compose", "kubernetes", "json"]),
    show_default="shell",
    help="What to print.",
)
def export(folder: Path, as_json: bool, kind: Any) -> None:
    """Print the launch command to ship: the final stack, or the baseline when nothing was adopted.

    Of a stack that no soak shows to be stable it says so: in a comment, in JSON as not_shown_stable. --json is short
    for --format json.
    """
    if as_json and kind not in {None, "json"}:
        raise UsageError(f"--json and --format {kind} contradict each other", hint="give one of them")
    text = api.export(folder, "json" if as_json else kind or "shell")
    show_exactly(text)
    if missing := api.missing_model(folder):
        hint = "put the path of the model where this will run into the command"
        say(f"warning: {missing} does not exist on this machine; {hint}")


@click.command(
    cls=TeachingCommand,
    needs="A campaign's folder, or a copy of one; reading it is enough.",
    examples=["assay verify", "assay verify path/to/campaign --json"],
    exits={0: "the record holds", 1: "it does not", **NO_CAMPAIGN, **UNREADABLE},
)
@options.folder
@options.as_json
@click.argument("campaign", required=False, type=options.FOLDER)
def verify(folder: Path, as_json: bool, campaign: Path | None) -> None:
    """Prove the record: no event missing, changed or out of place, every run's files as they were.

    CAMPAIGN is another way to give --folder. Repairs nothing. An end that was cut off cleanly can only be seen by
    comparing the last hash with one noted elsewhere: the report prints it.
    """
    found = api.verify(campaign or folder)
    if as_json:
        show_json(found.model_dump(mode="json"))
    else:
        from assay.render.terminal import verification_view

        show(verification_view(found))
    if not found.ok:
        count = len(found.problems)
        message = f"the record does not prove itself: {count} problem{'s' if count > 1 else ''}, listed above"
        fail_check(message, hint="restore the folder from a copy; do not measure on", as_json=as_json)
