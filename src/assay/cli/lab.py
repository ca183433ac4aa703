"""Options that turn `assay characterize` to the lab: a model's experts on this GPU, and prices of what is not built."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from assay.cli.estimate_spelling import read_concurrencies, read_layout, read_routing
from assay.cli.output import show, show_json
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.estimate import Layout

DIRECTORY = click.Path(path_type=Path, file_okay=False)
OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option(
        "--moe", metavar="MODEL", help="The lab: this model's experts on this GPU, way by way, against floors."
    ),
    click.option(
        "--what-if", "what_if", metavar="MODEL", help="Price changes that nobody has built, by stand-ins on this GPU."
    ),
    click.option(
        "--layout",
        "layouts",
        metavar="LAYOUT",
        multiple=True,
        show_default="tp8 and tp8,ep8",
        help="With --moe (several times) or --what-if: whose rank's slice, as tp8 or tp8,ep8.",
    ),
    click.option("--as", "chip", metavar="CHIP", help="With --moe: which tiles would fit there: sm120, or a device."),
    click.option(
        "--tokens",
        metavar="N,N,...",
        help="With --moe or --what-if: tokens of a step.",
        show_default="1 to 2048; --what-if: 64",
    ),
    click.option(
        "--routing",
        show_default="uniform; of a run of random weights zipf:1",
        help="How tokens choose experts, with --moe and for a run's estimate: uniform, or zipf:EXPONENT.",
    ),
    click.option("--dtype", type=click.Choice(["bf16", "fp8"]), help="With --moe: of the weights, if not the model's."),
    click.option("--step", "step_ms", type=click.FloatRange(min=0, min_open=True), help="With --what-if: measured ms."),
    click.option("--seconds", type=click.FloatRange(5, 36000), default=180.0, help="With --moe or --what-if: at most."),
    click.option(
        "--results", type=DIRECTORY, default=Path("assay-lab"), help="With --moe or --what-if: folder for every figure."
    ),
)
ANSWERED_BY = {
    "chip": "moe", "dtype": "moe", "step_ms": "what-if", "layouts": "", "tokens": "", "seconds": "",
    "results": "",
}  # fmt: skip
"""Parameters of the lab, and the only question that listens to each; empty: both."""
OF_RUNS = ("folder", "model", "url", "run", "trace", "threads", "context", "watch", "again")
"""Parameters of the command that no question of the lab listens to; `on` is heard with --moe alone."""


def _refuse_unheard(asked: str) -> None:
    """An option that the question does not listen to would be ignored without a word.

    Raises:
        UsageError: names the options.
    """
    context = click.get_current_context()
    spelled = {one.name: one.opts[0] for one in context.command.params}
    unheard = [
        str(spelled[name])
        for name, only in ANSWERED_BY.items()
        if (only or asked) != (asked or "nobody") and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if asked:
        deaf = (*OF_RUNS, *([] if asked == "moe" else ["on"]))
        unheard += [
            str(spelled[name]) for name in deaf if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        ]
    if unheard:
        told = f"not with --{asked}" if asked else "only with --moe MODEL or --what-if MODEL"
        raise UsageError(
            f"{', '.join(unheard)}: {told}", hint="`assay characterize --help` says which option goes where"
        )


def with_lab(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the lab's options: given --moe or --what-if, the lab answers, else the command itself."""

    @functools.wraps(command)
    def wrapped(
        *,
        moe: str | None,
        what_if: str | None,
        layouts: tuple[str, ...],
        chip: str | None,
        tokens: str | None,
        routing: str | None,
        dtype: Any,
        step_ms: float | None,
        seconds: float,
        results: Path,
        **rest: Any,
    ) -> None:
        if moe is not None and what_if is not None:
            raise UsageError("--moe and --what-if are two questions", hint="ask one after the other")
        _refuse_unheard("moe" if moe is not None else "what-if" if what_if is not None else "")
        read = [read_layout(text) for text in layouts]
        common = {"seconds": seconds, "results": results, "measured": rest.get("measured")}
        show_as = {"as_json": rest["as_json"], "plain": rest["plain"]}
        if moe is not None:
            given = {"chip": chip, "on": rest.get("on"), "dtype": dtype, **common}
            _experts(moe, read, tokens, routing or "uniform", given, **show_as)
        elif what_if is not None and routing is not None:
            raise UsageError("--routing: not with --what-if", hint="it prices even routing")
        elif what_if is not None:
            _prices(what_if, read, tokens, {"step_s": step_ms / 1e3 if step_ms else None, **common}, **show_as)
        else:
            command(**rest, routing=read_routing(routing) if routing is not None else None)

    for option in reversed(OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def _experts(
    model: str,
    layouts: Sequence[Layout],
    tokens: str | None,
    routing: str,
    given: dict[str, Any],
    *,
    as_json: bool,
    plain: bool,
) -> None:
    from assay.api.lab import LabQuestion, experts
    from assay.lab.jobs import TOKENS
    from assay.records.estimate import Layout
    from assay.render.lab_view import lab_view
    from assay.render.progress import for_stream

    question = LabQuestion(
        model=model,
        layouts=layouts or [Layout(tp=8), Layout(tp=8, ep=8)],
        tokens=read_concurrencies(tokens) if tokens else TOKENS,
        routing=read_routing(routing),
        **given,
    )
    with for_stream(plain=plain) as progress:
        found, problem = experts(question, progress)
    if as_json:
        show_json(found.model_dump(mode="json"))
    else:
        show(lab_view(found))
    if problem is not None:
        raise problem


def _prices(
    model: str, layouts: Sequence[Layout], tokens: str | None, given: dict[str, Any], *, as_json: bool, plain: bool
) -> None:
    from assay.api.lab import PriceQuestion, what_if
    from assay.records.estimate import Layout
    from assay.render.lab_view import price_view
    from assay.render.progress import for_stream

    if len(layouts) > 1:
        raise UsageError("--what-if prices one layout", hint="give --layout once")
    counts = read_concurrencies(tokens) if tokens else [64]
    if len(counts) > 1:
        raise UsageError("--what-if prices one number of tokens", hint="--tokens 64")
    layout = layouts[0] if layouts else Layout(tp=8)
    question = PriceQuestion(model=model, layout=layout, tokens=counts[0], **given)
    with for_stream(plain=plain) as progress:
        found = what_if(question, progress)
    if as_json:
        show_json(found.model_dump(mode="json"))
        return
    show(price_view(found))
