"""Commands that measure servers outside a campaign: bench, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay import api
from assay.cli import bench_options as given
from assay.cli import bench_spelling as spelling
from assay.cli import options
from assay.cli.command import TeachingCommand
from assay.cli.output import say, show, show_json
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.bench import BenchSpec

METRICS = (
    "output_tokens_per_s",
    "requests_per_s",
    "total_tokens_per_s",
    "ttft_p50_s",
    "tpot_p50_s",
    "itl_p50_s",
    "e2e_p50_s",
    "ttft_p99_s",
    "tpot_p99_s",
    "itl_p99_s",
    "e2e_p99_s",
)
"""What can be judged: `assay.records.compare.CompareMetric`, spelled again so that a help need not import it."""
REMEDY = "the gates that failed are listed above, with what to do; the numbers stay in the folder"
CEILING_SOURCE = "given with --ceiling"
MIN_SIDES = 2


@click.command(
    cls=TeachingCommand,
    needs="A running server with an OpenAI-compatible API: its address, with or without /v1.",
    examples=[
        "assay bench http://127.0.0.1:8000",
        "assay bench http://127.0.0.1:8000 --concurrency 64 --input 1000 --output 200",
        "assay bench http://127.0.0.1:8000 --rate 20 --slo ttft=500ms,tpot=50ms",
        "assay bench http://127.0.0.1:8000 --rate 20 --arrival gamma:2 --workload sharegpt:sharegpt.json",
        "assay bench http://127.0.0.1:8000 --arrival ramp:1-50 --ramp 120",
        "assay bench http://127.0.0.1:8000 --sweep 1,4,16,64,256 --json > sweep.json",
        "assay bench https://api.example.com --endpoint chat --model some-model --api-key-env API_KEY",
    ],
    exits={
        0: "measured, and every gate passed",
        2: "usage: an option, or the workload's file, is wrong",
        4: "the server cannot be reached, or does not serve the model",
        5: "a gate failed: the numbers are shown, and are not to be used",
        6: "the folder cannot be written",
        130: "interrupted by Ctrl-C or SIGTERM",
    },
)
@click.argument("url")
@given.load_options(window_s=10.0)
@click.option("--sweep", metavar="N,N,...",
              help="Measure once with each of these numbers of streams, and find the knee.")  # fmt: skip
@click.option("--slo", metavar="BOUNDS", help="Bounds of a good request, for goodput: ttft=500ms,tpot=50ms,e2e=10s.")
@click.option("--processes", type=click.IntRange(min=1), show_default="by a calibration", help="Load processes.")
@click.option("--extra-body", multiple=True, metavar="NAME=VALUE", help="One more field of every request; repeatable.")
@click.option("--ceiling", "ceiling_tokens_per_s", type=given.SECONDS, metavar="TOKENS_PER_S", show_default="none",
              help="Output tokens/s that the machine cannot exceed: a result above it does not count.")  # fmt: skip
@click.option("--max-error-share", type=spelling.read_share, metavar="SHARE", default="0%", show_default="0%",
              help="Share of failed requests up to which the numbers count.")  # fmt: skip
@given.folder_option("bench")
@options.as_json
@options.plain
def bench(url: str, folder: Path | None, as_json: bool, plain: bool, sweep: str | None, **told: Any) -> None:
    """Load a server honestly: warm up until steady, measure in windows, and say whether the numbers count.

    Latencies come with intervals and sample counts, arrival stamps from the kernel where it gives them. Gates look at
    the server's replies and at the client itself: a number that fails one is crossed out, with the evidence and a
    remedy. Writes every request, the record, and report.html (one file, opens offline) into the folder.
    """
    concurrencies = _sweep(sweep, told)
    spec = _spec(url, concurrencies, **told)
    target = given.new_folder(folder, "bench")
    if concurrencies:
        _run_sweep(spec, concurrencies, target, as_json=as_json, plain=plain)
    else:
        _run_bench(spec, target, as_json=as_json, plain=plain)


def _run_bench(spec: BenchSpec, folder: Path, *, as_json: bool, plain: bool) -> None:
    from assay.render.bench_live import for_stream
    from assay.render.bench_report import bench_html

    with for_stream(plain=plain) as progress:
        result = api.bench(spec, folder, progress)
    page = _write_page(folder, bench_html(result))
    if as_json:
        show_json({**result.model_dump(mode="json"), "valid": result.valid, "report": page})
    else:
        from assay.render.bench_view import bench_view

        show(bench_view(result), f"\nreport: {page}")
    if not result.valid:
        failed = [gate.name for gate in result.gates if not gate.passed]
        given.refuse(f"not to be used: {', '.join(failed) or 'nothing was measured'}", hint=REMEDY, as_json=as_json)


def _run_sweep(spec: BenchSpec, concurrencies: list[int], folder: Path, *, as_json: bool, plain: bool) -> None:
    from assay.render.bench_live import for_stream
    from assay.render.bench_report import sweep_html

    with for_stream(plain=plain) as progress:
        found = api.sweep(spec, concurrencies, folder, progress)
    page = _write_page(folder, sweep_html(found))
    valid = [point.valid for point in found.points]
    if as_json:
        show_json({**found.model_dump(mode="json"), "valid": valid, "report": page})
    else:
        from assay.render.bench_view import sweep_view

        show(sweep_view(found), f"\nreport: {page}")
    if not all(valid):
        message = f"{valid.count(False)} of {len(valid)} loads are not to be used"
        given.refuse(message, hint=REMEDY, as_json=as_json)


def _sweep(sweep: str | None, told: dict[str, Any]) -> list[int]:
    """The loads of a sweep; empty without one.

    Raises:
        UsageError: it is given together with a load of its own.
    """
    if sweep is None:
        return []
    harmless = {"concurrency": None, "rate": None, "arrival": "closed", "ramp_s": None}
    others = [f"--{name.removesuffix('_s')}" for name, value in harmless.items() if told[name] not in {None, value}]
    if others:
        raise UsageError(f"--sweep and {others[0]} contradict each other", hint="a sweep brings its own streams")
    return spelling.read_numbers("--sweep", sweep)


def _spec(url: str, concurrencies: list[int], **told: Any) -> BenchSpec:
    """The options as a spec; a model that was not given is empty, and asked of the server."""
    from assay.records.bench import BenchSpec

    base = spelling.read_url(url)
    spelling.check_key(told["api_key_env"])
    load = _load(told, concurrencies)
    slo, notes = spelling.read_slo(told["slo"])
    for note in notes:
        say(f"note: {note}")
    workload, arrival = load.read_workload(), load.read_arrival()
    extra_body = spelling.read_extra_body(told["extra_body"])
    return given.make(
        BenchSpec,
        url=base,
        model=told["model"] or "",
        workload=workload,
        arrival=arrival,
        slo=slo,
        extra_body=extra_body,
        ceiling_tokens_per_s=told["ceiling_tokens_per_s"],
        ceiling_source=None if told["ceiling_tokens_per_s"] is None else CEILING_SOURCE,
        **{name: told[name] for name in ("endpoint", "window_s", "windows", "warmup_max_s", "seed", "api_key_env")},
        **{name: told[name] for name in ("processes", "max_error_share")},
    )


def _load(told: dict[str, Any], concurrencies: list[int]) -> given.GivenLoad:
    return given.GivenLoad(
        concurrency=concurrencies[0] if concurrencies else told["concurrency"],
        **{name: told[name] for name in ("rate", "arrival", "ramp_s", "workload", "input_tokens", "output_tokens")},
    )


@click.command(
    cls=TeachingCommand,
    needs="Two or more sides, each the address of a running server or a launch command in quotes.",
    examples=[
        "assay compare http://127.0.0.1:8000 http://127.0.0.1:8001",
        "assay compare 'llama-server -m m.gguf -t 1' 'llama-server -m m.gguf -t 2' --label one --label two",
        "assay compare 'embedded --threads 1' 'embedded --threads 2'",
        "assay compare 'vllm serve M' 'vllm serve M --enable-chunked-prefill' --concurrency 64 --metric ttft_p99_s",
        "assay compare http://127.0.0.1:8000 http://127.0.0.1:8001 --min-effect 2% --json",
    ],
    exits={
        0: "compared, whatever the verdict",
        2: "usage: an option, a side, or the workload's file is wrong",
        4: "a side cannot be reached or does not start",
        5: "a side has too few valid runs: nothing can be said about it",
        6: "the folder cannot be written",
        130: "interrupted by Ctrl-C or SIGTERM; launched servers are stopped, whole runs kept",
    },
)
@click.argument("sides", nargs=-1, metavar="A B [C...]")
@click.option("--metric", type=click.Choice(METRICS), default=METRICS[0], show_default=METRICS[0], metavar="METRIC",
              help=f"What is judged: {', '.join(METRICS)}.")  # fmt: skip
@click.option("--min-effect", type=spelling.read_share, metavar="SHARE", default="5%", show_default="5%",
              help="Difference below which sides are the same.")  # fmt: skip
@click.option("--alpha", type=spelling.read_share, metavar="SHARE", default="0.05", show_default="0.05",
              help="Chance that any interval misses, over all sides and looks.")  # fmt: skip
@click.option("--min-rounds", type=click.IntRange(min=1), default=3, show_default="3",
              help="Fewest rounds of all sides.")  # fmt: skip
@click.option("--max-rounds", type=click.IntRange(min=1), default=10, show_default="10",
              help="Most rounds; what is open then is undecided.")  # fmt: skip
@click.option("--label", "labels", multiple=True, show_default="A, B, C ...", help="Name of a side; once for each.")
@given.load_options(window_s=5.0)
@click.option("--start-timeout", "start_timeout_s", type=given.SECONDS, default=600.0, show_default="600",
              help="Seconds that a launched side may take until it serves.")  # fmt: skip
@click.option("--max-foreign-cores", type=click.FloatRange(min=0, min_open=True), default=0.1, show_default="0.1",
              help="CPU of other processes, in cores, up to which a launched side's run counts.")  # fmt: skip
@given.folder_option("compare", "the same command carries on in a folder whose comparison was interrupted.")
@options.as_json
@options.plain
def compare(sides: tuple[str, ...], folder: Path | None, as_json: bool, plain: bool, **told: Any) -> None:
    """Say which of two or more servers is better, in a sentence with an interval.

    Sides are measured in turn, round after round, so that drift meets all of them; launch commands are started and
    stopped for every run. The interval holds at every look, so a clear case ends early. A launch command is not read by
    a shell: no pipes, no variables. After an interruption the same command with --folder carries on: runs that are
    whole count, one that was cut is made again.
    """
    from assay.records.compare import CompareQuestion

    targets = [spelling.read_target(side) for side in sides]
    labels = list(told["labels"])
    if len(targets) < MIN_SIDES:
        raise UsageError(f"{len(targets)} side given; a comparison takes two or more", hint="assay compare --help")
    if labels and (len(labels) != len(targets) or len(set(labels)) < len(labels)):
        message = f"{len(labels)} labels for {len(targets)} sides"
        raise UsageError(message, hint="give --label once for each side, each another name, or not at all")
    spelling.check_key(told["api_key_env"])
    load = _load(told, [])
    question = given.make(
        CompareQuestion,
        workload=load.read_workload(),
        arrival=load.read_arrival(),
        labels=labels,
        **{
            name: told[name]
            for name in ("metric", "min_effect", "alpha", "min_rounds", "max_rounds", "model", "endpoint")
        },
        **{
            name: told[name]
            for name in (
                "window_s",
                "windows",
                "warmup_max_s",
                "seed",
                "start_timeout_s",
                "api_key_env",
                "max_foreign_cores",
            )
        },
    )
    _run_compare(targets, question, given.new_folder(folder, "compare", may_hold=True), as_json=as_json, plain=plain)


def _run_compare(targets: list[str], question: Any, folder: Path, *, as_json: bool, plain: bool) -> None:
    from assay.render.bench_live import for_stream
    from assay.render.bench_report import compare_html
    from assay.render.compare_view import compare_view, undecidable

    with for_stream(plain=plain) as progress:
        found = api.compare(targets, question, folder, progress)
    page = _write_page(folder, compare_html(found))
    if as_json:
        show_json({**found.model_dump(mode="json"), "report": page})
    else:
        show(compare_view(found), f"\nreport: {page}")
    if silent := undecidable(found):
        message = f"too few valid runs of {', '.join(silent)}"
        given.refuse(message, hint="the runs that do not count are listed above, with the reason", as_json=as_json)


def _write_page(folder: Path, html: str) -> str:
    from assay.store.atomic import atomic_write

    page = folder / "report.html"
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(page, html.encode())
    return str(page)
