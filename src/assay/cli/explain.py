"""The command that reads a server's log: explain."""

from __future__ import annotations

from pathlib import Path

import click

from assay.api.explain import explain as explain_logs
from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.output import show, show_json

UNKNOWN = 1


@click.command(
    cls=TeachingCommand,
    needs="The output of a server that did not start or died: vLLM, SGLang, TensorRT-LLM or llama.cpp. No campaign.",
    examples=[
        "assay explain server.log",
        "assay explain stdout.log stderr.log --exit-code 137",
        "assay explain - --json",
        "assay explain server.log --json",
    ],
    exits={0: "explained, or nothing failed", 1: "the log does not tell a cause", 2: "a file cannot be read"},
)
@click.argument(
    "files", nargs=-1, required=True, metavar="LOGFILE...", type=click.Path(path_type=Path, allow_dash=True)
)
@options.as_json
@click.option("--exit-code", type=int, help="What the server ended with; -9 or 137 for SIGKILL.")
def explain(files: tuple[Path, ...], as_json: bool, exit_code: int | None) -> None:
    """Say why a server failed: stage and cause, the line to quote, what to do, what follows for other arms.

    Give both streams when they went to two files: the root cause may be in either. The earliest statement of a cause
    counts; what follows from it (wrapped exceptions, other ranks, time-outs, the shutdown) is passed over. Where the
    log does not tell, the answer is unknown, with the line that comes nearest.

    A server that started, served and was stopped in order has not failed: cause "none", exit status 0. Unknown is 1.
    """
    found = explain_logs(files, exit_code)
    if as_json:
        show_json(found.model_dump(mode="json"))
    else:
        from assay.render.explain_view import explain_view

        show(explain_view(found))
    if not found.is_explained:
        raise click.exceptions.Exit(UNKNOWN)
