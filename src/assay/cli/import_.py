"""The command that reads other tools' results: import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay.api.import_ import import_results
from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.output import show, show_json

FORMATS = ["vllm", "sglang", "guidellm", "aiperf", "llama-bench"]
"""As `assay.records.imported.FORMATS`, which would cost pydantic to import; a test holds them together."""


@click.command(
    "import",
    cls=TeachingCommand,
    needs="Result files of other load testers, as they write them: JSON or JSON lines.",
    examples=[
        "assay import openai-infqps-concurrency64-model-20260101-120000.json",
        "assay import before.json after.json --json",
        "assay import runs.jsonl --format sglang",
    ],
    exits={0: "shown", 2: "a file cannot be read, is of no known format, or has a wrong value: the message says which"},
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@options.as_json
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    show_default="told by the content of each file",
    help="What wrote the files.",
)
def import_command(files: tuple[Path, ...], as_json: bool, kind: Any) -> None:
    """Read what other load testers measured, and put it under one set of definitions.

    TTFT, TPOT, ITL and E2E are recomputed from the single requests where the file has them (vLLM: --save-detailed,
    SGLang: --output-details, AIPerf: profile_export.jsonl), and set beside the tool's own numbers. Where it has not,
    those are shown as told, with what they mean and what is missing. Several runs are shown metric by metric.
    """
    results = import_results(files, kind)
    if as_json:
        show_json([result.model_dump(mode="json") for result in results])
        return
    from assay.render.imported import imported_view

    show(imported_view(results))
