"""Where the time goes: characterize."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.lab import with_lab
from assay.cli.output import show, show_json

if TYPE_CHECKING:
    from assay.records.estimate import Routing

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    cls=TeachingCommand,
    needs="Nothing: alone it measures this machine's ceilings. A campaign, a running server or a trace adds what was "
    "measured.",
    examples=[
        "assay characterize",
        "assay characterize --model qwen3-0.6b-q8_0.gguf",
        "assay characterize --folder my-campaign --run r0003",
        "assay characterize --folder a-colleagues-campaign --model ./model --measured ceilings.json",
        "assay characterize --model glm-5 --on 8xRTX-PRO-6000 --trace trace.json.gz",
        "assay characterize --model qwen3-8b --on H200 --measured ceilings.json",
        "assay characterize --url http://127.0.0.1:8080 --json",
        "assay characterize --moe glm-5 --layout tp8 --layout tp8,ep8 --as sm120",
        "assay characterize --what-if glm-5 --layout tp8 --tokens 64",
    ],
    exits={
        0: "shown",
        2: "model, box, run or trace cannot be read, or options contradict each other",
        4: "the server or the embedded model cannot be had",
        5: "--moe or --what-if has no GPU to measure on (--moe still shows floors and tiles)",
        6: "the record cannot be read",
    },
)
@options.folder
@options.as_json
@options.plain
@click.option(
    "--model",
    show_default="the campaign's or the server's",
    help="A GGUF, a model's folder (config.json is enough), or a name.",
)
@click.option(
    "--on",
    metavar="BOX",
    show_default="the machine of the run, else this one's GPUs, else its CPU",
    help="Another box, by its data sheet, as 8xRTX-PRO-6000; or cpu.",
)
@click.option("--url", help="A running server: its counters are watched, and nothing is sent to its model.")
@click.option("--run", help="A run of the campaign, or the folder of an `assay bench`; else the baseline's middle run.")
@click.option("--trace", type=FILE, help="torch-profiler's JSON(.gz), or `nsys export --type sqlite`.")
@click.option("--threads", type=click.IntRange(1, 4096), show_default="the run's, else all cores", help="On a CPU.")
@click.option(
    "--context",
    type=click.IntRange(0),
    show_default="256 on a CPU, else 2048",
    help="Tokens in the cache of each sequence.",
)
@click.option("--watch", type=click.FloatRange(0.5, 3600), default=10.0, help="Seconds to watch the server for.")
@click.option("--again", is_flag=True, help="Measure the ceilings anew; they are kept for each machine.")
@click.option("--measured", type=FILE, help="JSON of a GPU's ceilings, as for `assay estimate`, in place of measuring.")
@with_lab
def characterize(
    *,
    folder: Path,
    as_json: bool,
    plain: bool,
    model: str | None,
    on: str | None,
    url: str | None,
    run: str | None,
    trace: Path | None,
    threads: int | None,
    context: int | None,
    watch: float,
    again: bool,
    measured: Path | None,
    routing: Routing | None,
) -> None:
    """Say where the time goes: ceilings, the model's arithmetic, the roofline, and a measured run set against it.

    Ceilings are micro-benchmarks of this machine: memory and disk bandwidth, and llama.cpp's own matrix products, type
    by type of weights, about 20 seconds; of its GPUs (with PyTorch beside Assay) memory, arithmetic, launches and
    links, up to two minutes. They are made once and kept. What was measured of a run is split into floor, kernels,
    launch gaps, communication, scheduling, queueing and client as far as there is evidence; the rest is called
    unexplained. Of a campaign's run, or of all runs of its baseline, the time per token is held against the estimate
    at every operating point; a record from another machine is taken with that machine's GPUs. A torch trace of decode
    is told operation by operation, each against the estimate.
    """
    from assay.api.characterize import Question
    from assay.api.characterize import characterize as ask
    from assay.render.progress import for_stream

    question = Question(
        folder=folder,
        model=model,
        on=on,
        url=url,
        run=run,
        trace=trace,
        threads=threads,
        context_tokens=context,
        watch_s=watch,
        again=again,
        measured=measured,
        routing=routing,
    )
    with for_stream(plain=plain) as progress:
        answer = ask(question, progress)
    if as_json:
        show_json(answer.model_dump(mode="json"))
        return
    from assay.render.characterize_view import characterize_view

    show(characterize_view(answer))
