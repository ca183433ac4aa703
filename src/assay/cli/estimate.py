"""What a model would do on a box, calculated: estimate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.estimate_spelling import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    read_bounds,
    read_concurrencies,
    read_host,
    read_layout,
    read_load,
    read_routing,
)
from assay.cli.output import say, show, show_json
from assay.errors import UsageError

FILE = click.Path(path_type=Path, dir_okay=False, exists=True, resolve_path=True)
DIRECTORY = click.Path(path_type=Path, file_okay=False, exists=True, resolve_path=True)


@click.command(
    cls=TeachingCommand,
    needs="Nothing: no server, no GPU. A model is a folder with config.json, a GGUF file, or a name of --list.",
    examples=[
        "assay estimate glm-5-nvfp4 --on 8xRTX-PRO-6000 --layout tp8 --concurrency 2048",
        "assay estimate ./my-model --on 2xH100-SXM --input 4096 --output 512 --html estimate.html",
        "assay estimate gpt-oss-120b --on 8xH200 --search --slo ttft=500ms,tpot=25ms",
        "assay estimate model.gguf --on RTX-4090 --context 8192 --concurrency 1,2,4 --json",
        "assay estimate --list",
    ],
    exits={
        0: "estimated",
        2: "no such model or device, an impossible layout, or it does not fit into the memory",
        6: "the page cannot be written",
    },
)
@click.argument("model", required=False)
@click.option("--on", metavar="BOX", help="How many of which device, as 8xRTX-PRO-6000; --list shows the known ones.")
@click.option(
    "--layout",
    "layout_text",
    metavar="LAYOUT",
    show_default="the whole box under TP, where that is possible",
    help="tp, pp, dp, ep with their sizes: tp8, tp4pp2, tp2,dp4,ep8.",
)
@click.option(
    "--concurrency",
    metavar="N,N,...",
    show_default="1,8,64,256,2048, as far as the cache holds them",
    help="Requests in flight; the last one is shown in detail.",
)
@click.option(
    "--input",
    "input_tokens",
    type=click.IntRange(min=1),
    show_default=f"{INPUT_TOKENS}",
    help="Tokens of every prompt.",
)
@click.option(
    "--output",
    "output_tokens",
    type=click.IntRange(min=2),
    show_default=f"{OUTPUT_TOKENS}",
    help="Tokens of every answer.",
)
@click.option(
    "--context",
    "context_tokens",
    type=click.IntRange(min=0),
    help="Instead of both: decode with so many tokens in the cache of each sequence.",
)
@click.option(
    "--routing",
    "routing_text",
    default="uniform",
    show_default=True,
    help="How tokens spread over experts: uniform, or zipf:EXPONENT.",
)
@click.option(
    "--kv-dtype", type=click.Choice(["bf16", "fp8"]), default="bf16", show_default=True, help="Format of the cache."
)
@click.option(
    "--memory-fraction",
    type=click.FloatRange(0.05, 1.0),
    default=0.9,
    show_default=True,
    help="Part of the device memory that the engine may use.",
)
@click.option(
    "--engine",
    metavar="NAME[==VERSION]",
    show_default="none in particular, of today",
    help="Whose host prepares the steps: vllm, sglang, trtllm, llamacpp, lmdeploy, gpt-fast, trtllm-engine; "
    "the version decides how it schedules.",
)
@click.option(
    "--scheduling",
    type=click.Choice(["serial", "overlapped"]),
    show_default="the engine's default",
    help="Steps are prepared one after the other, or while the device computes.",
)
@click.option("--measured", type=FILE, help="JSON of ceilings measured here, which go before what is known.")
@click.option("--devices", type=DIRECTORY, help="A folder of more devices, one TOML file each.")
@click.option("--search", is_flag=True, help="Rank layouts (and quantizations that the device supports) instead.")
@click.option(
    "--gpus", type=click.IntRange(min=1), show_default="all of --on", help="With --search: use at most so many."
)
@click.option("--slo", metavar="BOUNDS", help="With --search: bounds to keep, as ttft=500ms,tpot=50ms.")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page with the roofline chart, too."
)
@click.option("--all", "every", is_flag=True, help="Show also what cannot work here, with the reasons.")
@click.option("--list", "listing", is_flag=True, help="The known models and devices.")
@options.as_json
def estimate(model: str | None, on: str | None, *, listing: bool, search: bool, as_json: bool, **given: Any) -> None:
    """Calculate what a model would do on a box: memory, tokens/s, where the time goes, what would help at most.

    Every number is a range and says what it rests on: measured here, measured elsewhere, a data sheet, an assumption.
    A measurement above the ceiling refutes the estimate or the measurement.
    """
    if listing:
        _list(given["devices"], as_json=as_json)
        return
    if model is None or on is None:
        missing = "MODEL" if model is None else "--on BOX"
        raise UsageError(f"{missing} is missing", hint="assay estimate --list shows known models and devices")
    _refuse_contradictions(search=search, **given)
    if search:
        _search(model, on, as_json=as_json, **given)
    else:
        _estimate(model, on, as_json=as_json, **given)


def _estimate(model: str, on: str, *, as_json: bool, every: bool, html: Path | None, **given: Any) -> None:
    from assay.api.estimate import estimate as calculate
    from assay.api.estimate import write_page

    report = calculate(
        model,
        on,
        load=read_load(given["input_tokens"], given["output_tokens"], given["context_tokens"]),
        layout=read_layout(given["layout_text"]) if given["layout_text"] else None,
        concurrencies=read_concurrencies(given["concurrency"]) if given["concurrency"] else (),
        routing=read_routing(given["routing_text"]),
        cache_dtype=given["kv_dtype"],
        memory_fraction=given["memory_fraction"],
        measured=given["measured"],
        devices=given["devices"],
        host=read_host(given["engine"], given["scheduling"]),
    )
    if html is not None:
        write_page(report, html)
    if as_json:
        show_json(report.model_dump(mode="json"))
        return
    from assay.render.estimate_view import estimate_view

    show(estimate_view(report, every=every))
    if html is not None:
        say(f"the page: {html}")


def _search(model: str, on: str, *, as_json: bool, every: bool, **given: Any) -> None:
    from assay.api.estimate import search_layouts

    ttft_s, tpot_s = read_bounds(given["slo"]) if given["slo"] else (None, None)
    report = search_layouts(
        model,
        on,
        load=read_load(given["input_tokens"], given["output_tokens"], given["context_tokens"]),
        gpus=given["gpus"],
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        routing=read_routing(given["routing_text"]),
        cache_dtype=given["kv_dtype"],
        memory_fraction=given["memory_fraction"],
        measured=given["measured"],
        devices=given["devices"],
        host=read_host(given["engine"], given["scheduling"]),
    )
    if as_json:
        show_json(report.model_dump(mode="json"))
        return
    from assay.render.estimate_search import search_view

    show(search_view(report, every=every))


def _list(devices: Path | None, *, as_json: bool) -> None:
    from assay.api.estimate import known_devices, known_models

    models, boxes = known_models(), known_devices(devices)
    if as_json:
        show_json({"models": models, "devices": {each.id: each.name for each in boxes}})
        return
    from assay.render.estimate_lists import known_view

    show(known_view(models, boxes))


def _refuse_contradictions(*, search: bool, **given: Any) -> None:
    """Refuse options that cannot be meant together.

    Raises:
        UsageError: two of them contradict each other, or one wants --search.
    """
    if given["context_tokens"] is not None and (given["input_tokens"] or given["output_tokens"]):
        hint = "--context is decode alone; --input and --output are whole requests"
        raise UsageError("--context and --input or --output contradict each other", hint=hint)
    barred = {
        "--layout": "layout_text",
        "--html": "html",
        "--concurrency": "concurrency",
        "--context": "context_tokens",
    }
    name = next((name for name, key in barred.items() if given[key] is not None), None)
    if search and name:
        raise UsageError(
            f"--search and {name} contradict each other", hint="search first, then estimate a layout of the list"
        )
    if not search and (given["gpus"] or given["slo"]):
        raise UsageError(f"{'--gpus' if given['gpus'] else '--slo'} belongs to --search", hint="add --search")
