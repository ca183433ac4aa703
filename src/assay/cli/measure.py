"""Commands that measure: run, demo."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import click

from assay import api
from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.conclusion import conclude, quick_limits
from assay.cli.failure import Interrupted, fail_check
from assay.cli.output import say

EXITS = {
    0: "done",
    2: "usage: assay.toml, a document or an option is wrong",
    3: "waiting for an approval; its document says how to give it",
    4: "the engine is missing, or the baseline does not start",
    5: "the baseline cannot be measured validly here, or no candidate could be measured",
    6: "the record cannot be read or written",
    130: "interrupted by Ctrl-C or SIGTERM; servers are stopped, nothing recorded is lost",
}


@click.command(
    cls=TeachingCommand,
    needs="assay.toml, written by `assay init`. What is not planned yet is planned first.",
    examples=["assay run", "assay run --folder my-campaign --max-runs 5", "assay run --json 2> progress.log"],
    exits=EXITS,
)
@options.folder
@options.as_json
@options.plain
@click.option("--max-runs", type=click.IntRange(min=1), help="Stop after this many more runs.")
def run(folder: Path, as_json: bool, plain: bool, max_runs: int | None) -> None:
    """Carry the campaign on to its end: calibrate, screen, compose, confirm, report.

    Resumable: after a crash, a kill or Ctrl-C the same command goes on where it was; a run that was in flight is made
    again. Ends with the verdicts, the confirmed gain with its interval, what failed or did nothing and why, the launch
    command to ship, and the path of the HTML report.
    """
    from assay.render.progress import for_stream

    with _going_on_with("run", folder):
        with for_stream(plain=plain) as progress:
            state = api.run(folder, progress, max_runs=max_runs)
        conclude(folder, state, limits=[], as_json=as_json)


@click.command(
    cls=TeachingCommand,
    needs="The embedded engine (pip install 'assay[embedded]') and about ten minutes on two cores; --quick: three.",
    examples=["assay demo --quick", "assay demo --folder my-demo", "assay demo --null --json"],
    exits={**EXITS, 1: "--null: something was adopted"},
)
@click.option(
    "--folder",
    "-f",
    type=options.FOLDER,
    show_default="a new folder here, assay-demo-<date>-<time>",
    help="Where the campaign goes; one that holds a demo goes on with it.",
)
@options.as_json
@options.plain
@click.option("--quick", is_flag=True, help="Fewer candidates and runs; says what it therefore cannot claim.")
@click.option(
    "--null", is_flag=True, help="For the sceptical: try only flags that change nothing; none may be adopted."
)
def demo(folder: Path | None, as_json: bool, plain: bool, quick: bool, null: bool) -> None:
    """Run a whole campaign on the embedded llama.cpp and a small real model, on this CPU.

    It tries gains, losses, a fast wrong answer, a launch that fails and flags that do nothing, and tells them apart.
    Ends as `assay run` does. With --null the tables are turned: every candidate is a flag set to its default, and
    whatever would be adopted is a false alarm of ours.
    """
    from assay.render.progress import for_stream

    target = folder or Path.cwd() / f"assay-demo-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    given = [name for name, is_given in (("--quick", quick), ("--null", null)) if is_given]
    with _going_on_with("demo", target, *given):
        say(f"campaign folder: {target}")
        with for_stream(plain=plain) as progress:
            state = api.demo(target, progress, quick=quick, null=null)
        conclude(
            target, state, limits=quick_limits(state) if state.spec.name == api.QUICK_DEMO else [], as_json=as_json
        )
    if null and state.stack:
        message = f"flags that change nothing were adopted: {', '.join(state.stack)}"
        chance = 100 * state.spec.statistics.adopt_alpha
        fail_check(
            message,
            hint=f"by design this happens in at most {chance:.0f}% of campaigns; if it happens again, report it",
            as_json=as_json,
        )


@contextmanager
def _going_on_with(command: str, folder: Path, *given: str) -> Iterator[None]:
    """Tell whoever interrupts the block which command goes on."""
    try:
        yield
    except KeyboardInterrupt:
        words = ["assay", command, *given, "--folder", str(folder)]
        raise Interrupted(shlex.join(words)) from None
