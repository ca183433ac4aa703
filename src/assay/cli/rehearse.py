"""The command that rehearses a campaign: rehearse."""

from __future__ import annotations

from pathlib import Path

import click

from assay.cli import options
from assay.cli.command import NO_CAMPAIGN, UNREADABLE, TeachingCommand
from assay.cli.output import say, show, show_json


@click.command(
    cls=TeachingCommand,
    needs="A planned campaign: `assay plan`.",
    examples=[
        "assay rehearse",
        "assay rehearse --folder my-campaign --campaigns 500",
        "assay rehearse --noise 1% --launch 420 --json",
    ],
    exits={0: "rehearsed", **NO_CAMPAIGN, **UNREADABLE},
)
@options.folder
@options.as_json
@click.option(
    "--campaigns", type=click.IntRange(min=20, max=20_000), default=200, show_default=True, help="Worlds to draw."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of all draws.")
@click.option(
    "--noise",
    metavar="SD",
    show_default="the calibration's, else 1.5%",
    help="Run-to-run standard deviation of the objective: 1%, 0.01.",
)
@click.option(
    "--launch",
    "launch_s",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    show_default="the record's, else a guess",
    help="How long a launch takes.",
)
def rehearse(folder: Path, as_json: bool, campaigns: int, seed: int, noise: str | None, launch_s: float | None) -> None:
    """Dry-run the planned campaign in memory: hours, decisions, and power, before anything is launched.

    The real planner is driven through many simulated worlds: true effects are drawn from each hypothesis's predicted
    range, failures from priors, noise from the calibration. Says how long the campaign will take, how each hypothesis
    will probably end, which effects are found with 80%, and what to change in the budget. Touches no record.
    """
    from assay.api.rehearse import rehearse as rehearsed

    outlook = rehearsed(
        folder,
        campaigns=campaigns,
        seed=seed,
        run_sd=None if noise is None else _share(noise),
        launch_s=launch_s,
        say=lambda text: say(f"rehearsing: {text}"),
    )
    if as_json:
        show_json({"simulated": True, **outlook.model_dump(mode="json")})
        return
    from assay.render.rehearsal_view import outlook_view

    show(outlook_view(outlook))


def _share(text: str) -> float:
    from assay.errors import UsageError

    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise UsageError(f"--noise {text}: want a share from 0% to 100%", hint="for example 1% or 0.01")
    return value
