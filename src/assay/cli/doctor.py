"""A launch command's flags, held against its engine: doctor."""

from __future__ import annotations

import click

from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.failure import fail_check
from assay.cli.output import show, show_json

ENGINES = click.Choice(["sglang", "vllm", "trtllm", "llamacpp"])


@click.command(
    cls=TeachingCommand,
    context_settings={"allow_interspersed_args": False},
    needs="Nothing: the command is taken apart, never run. An engine that is installed here is asked for its help;"
    " of one that is not, recorded versions are used.",
    examples=[
        "assay doctor -- vllm serve Qwen/Qwen3-30B-A3B --max-num-seqs 256 --all2all-backend naive",
        "assay doctor --engine-version 0.5.9 -- python -m sglang.launch_server --model-path GLM-5 --enable-mscclpp",
        "assay doctor --gpu RTX-PRO-6000 --gpus 8 --model glm-5-nvfp4 -- sglang serve --model-path GLM-5 --tp 8",
        "assay doctor -- docker run --gpus all vllm/vllm-openai:v0.33.0 --model M --swap-space 4",
        'assay doctor --json -- "$(cat launch.sh)"',
    ],
    exits={
        0: "nothing that keeps the engine from working",
        1: "flags that the engine refuses, or that contradict each other",
        2: "no known engine is started there, or a model, GPU or version is not known",
    },
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- LAUNCH COMMAND")
@click.option("--engine", type=ENGINES, help="Of words that name no program.")
@click.option(
    "--engine-version",
    metavar="VERSION",
    show_default="installed, else the image's tag, else newest recorded",
    help="Check against this version.",
)
@click.option("--gpu", metavar="DEVICE", help="The GPU it is for, as RTX-PRO-6000; `assay estimate --list` shows them.")
@click.option("--gpus", type=click.IntRange(min=1), show_default="1", help="How many of them.")
@click.option(
    "--model",
    metavar="MODEL",
    show_default="the one that the command serves, where it is known here",
    help="Name, file or folder of the model.",
)
@options.as_json
def doctor(
    command: tuple[str, ...],
    *,
    engine: str | None,
    engine_version: str | None,
    gpu: str | None,
    gpus: int | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Check every flag of a launch command against its engine's version, before the launch.

    Unknown, renamed, removed, not there yet, a value that is none, silently substituted, read by no code, without
    effect in this configuration, contradicting each other, or the default anyway: each with its source, and with what
    to write instead.
    """
    from assay.api.doctor import Question
    from assay.api.doctor import doctor as examine

    report = examine(
        Question(words=command, engine=engine, engine_version=engine_version, gpu=gpu, gpus=gpus, model=model)
    )
    if as_json:
        show_json(report.model_dump(mode="json"))
    else:
        from assay.render.doctor_view import doctor_view

        show(doctor_view(report))
    if report.num_errors:
        counted = "1 finding keeps" if report.num_errors == 1 else f"{report.num_errors} findings keep"
        fail_check(
            f"{counted} the engine from working as the command says",
            hint="each finding says what to write instead",
            as_json=as_json,
        )
