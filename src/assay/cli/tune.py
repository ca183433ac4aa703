"""Tune an engine's kernels for this GPU: tune."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.estimate_spelling import read_concurrencies, read_layout, read_routing
from assay.cli.output import show, show_json

DIRECTORY = click.Path(path_type=Path, file_okay=False)


@click.command(
    cls=TeachingCommand,
    needs="A GPU, and the engine installed beside Assay.",
    examples=[
        "assay tune moe glm-5 --layout tp8 --dtype fp8",
        "assay tune moe qwen3-30b-a3b --layout tp1 --engine sglang --folder tuned",
        "assay tune moe ./my-model --layout tp8,ep8 --tokens 1,64,1024 --seconds 300",
    ],
    exits={
        0: "the file is written",
        2: "no such model, or the layout does not divide the experts",
        5: "no GPU or engine here, or no number of tokens was finished",
    },
)
@click.argument("kernel", type=click.Choice(["moe"]))
@click.argument("model")
@click.option("--layout", "layout_text", metavar="LAYOUT", default="tp1", help="Whose rank's slice: tp8, or tp8,ep8.")
@click.option("--dtype", type=click.Choice(["bf16", "fp8"]), help="Of the weights.", show_default="the model's")
@click.option("--engine", type=click.Choice(["vllm", "sglang"]), default="vllm", help="Whose kernel.")
@click.option("--folder", type=DIRECTORY, default=Path("assay-tuned"), help="Where the file and the journal go.")
@click.option("--tokens", metavar="N,N,...", show_default="1 to 4096, as the engines' tuners", help="Of a step.")
@click.option("--routing", default="uniform", help="How tokens spread over experts: uniform, or zipf:EXPONENT.")
@click.option(
    "--seconds", type=click.FloatRange(10, 86400), default=900.0, help="At most; go on with the same command."
)
@click.option("--workers", type=click.IntRange(0, 256), show_default="by the cores", help="Processes that compile.")
@options.as_json
@options.plain
def tune(
    kernel: str,  # noqa: ARG001 - one so far, and the word says what is tuned
    model: str,
    layout_text: str,
    engine: Any,
    tokens: str | None,
    routing: str,
    as_json: bool,
    plain: bool,
    **given: Any,
) -> None:
    """Find the tiles with which an engine's fused-MoE kernel is fastest here, and write the file that it loads.

    Candidates that cannot fit or cannot win are never tried; a model of what was measured says what to try next; each
    number of tokens begins where the one before ended. Every winner is checked against float64. Measurements are kept
    in a journal: whatever ends the command, the same command goes on.
    """
    from assay.api.tune import TuneQuestion, tune_moe
    from assay.render.lab_view import tune_view
    from assay.render.progress import for_stream

    question = TuneQuestion(
        model=model,
        layout=read_layout(layout_text),
        engine=engine,
        tokens=read_concurrencies(tokens) if tokens else (),
        routing=read_routing(routing),
        **given,
    )
    with for_stream(plain=plain) as progress:
        found = tune_moe(question, progress)
    if as_json:
        show_json(found.model_dump(mode="json"))
        return
    show(tune_view(found))
