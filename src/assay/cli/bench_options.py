"""What `assay bench` and `assay compare` are told alike: options, and how their spellings are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from assay.cli import options
from assay.cli.failure import fail_after_shown
from assay.errors import MeasurementError, UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from assay.records.bench import Arrival, BenchWorkload

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])
AnyRecord = TypeVar("AnyRecord", bound="BaseModel")
SECONDS = click.FloatRange(min=0, min_open=True)
DEFAULT_STREAMS = 8


def load_options(*, window_s: float) -> Callable[[AnyCommand], AnyCommand]:
    """The options about the load, in the order of the help."""
    listed = [
        click.option("--model", show_default="what the server serves", help="The model that requests name."),
        click.option("--concurrency", type=click.IntRange(1, 65_536), show_default="8",
                     help="Streams that are always in flight (closed loop); with --rate: the most at once."),
        click.option("--rate", type=SECONDS, help="Requests per second, whatever the server does (open loop)."),
        click.option("--arrival", show_default="closed, or poisson with --rate",
                     help="When requests are due: closed, constant, poisson, gamma:CV (bursty above 1), trace, "
                     "ramp:A-B."),
        click.option("--ramp", "ramp_s", type=SECONDS, show_default="60",
                     help="Seconds over which --arrival ramp:A-B rises; the load is to be steady after them."),
        click.option("--workload", show_default="synthetic",
                     help="What is asked: synthetic, synthetic:prefix=GROUPSxTOKENS, or a file, also as KIND:FILE "
                     "(sharegpt, mooncake, burstgpt, azure, jsonl, conversations)."),
        click.option("--input", "input_tokens", show_default="256",
                     help="Synthetic prompts of N tokens, A-B (uniform), normal(MEAN,SD) or lognormal(MEAN,SD)."),
        click.option("--output", "output_tokens", show_default="128", help="Forced output tokens, spelled likewise."),
        click.option("--endpoint", type=click.Choice(["completions", "chat"]), default="completions", show_default=True,
                     help="Which of the OpenAI endpoints is asked."),
        click.option("--window", "window_s", type=SECONDS, default=window_s, show_default=f"{window_s:g}",
                     help="Seconds of one measured window."),
        click.option("--windows", type=click.IntRange(min=1), default=3, show_default="3", help="Measured windows."),
        click.option("--warmup-max", "warmup_max_s", type=SECONDS, default=60.0, show_default="60",
                     help="Seconds (after the ramp, if any) after which a load that is not steady is invalid."),
        click.option("--seed", type=int, default=1, show_default="1",
                     help="Of prompts, lengths and arrivals; another run against a warm server wants another one."),
        click.option("--api-key-env", metavar="NAME",
                     help="Environment variable that holds the key, which is stored nowhere."),
    ]  # fmt: skip

    def decorate(command: AnyCommand) -> AnyCommand:
        for option in reversed(listed):
            command = option(command)
        return command

    return decorate


def folder_option(kind: str, words: str = "it must not exist yet, or be empty.") -> Callable[[AnyCommand], AnyCommand]:
    """--folder, a new one by default; `words` say what may be in it."""
    return click.option(
        "--folder",
        "-f",
        type=options.FOLDER,
        show_default=f"a new folder here, {kind}-<date>-<number>",
        help=f"Where the files go; {words}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLoad:
    """The load as it was spelled."""

    concurrency: int | None
    rate: float | None
    arrival: str | None
    workload: str | None
    input_tokens: str | None
    output_tokens: str | None
    ramp_s: float | None = None

    def read_workload(self) -> BenchWorkload:
        """What is asked; the shorthands are parts of a synthetic workload.

        Raises:
            UsageError: it cannot be read, or --input or --output contradict --workload.
        """
        from assay.load.workloads.spelling import parse_workload

        text = self.workload or "synthetic"
        shorthands = {"input": self.input_tokens, "output": self.output_tokens}
        parts = ",".join(f"{name}={value}" for name, value in shorthands.items() if value is not None)
        if not parts:
            return parse_workload(text)
        head, _, rest = text.partition(":")
        if head != "synthetic":
            hint = "a file brings its own lengths; leave --input and --output out"
            raise UsageError(f"--workload {text} and --input or --output contradict each other", hint=hint)
        return parse_workload(f"synthetic:{rest},{parts}" if rest else f"synthetic:{parts}")

    def read_arrival(self) -> Arrival:
        """When requests are due.

        Raises:
            UsageError: it cannot be read, or the rate, the ramp and the law contradict each other.
        """
        from assay.load.workloads.spelling import parse_arrival

        law = self.arrival or ("closed" if self.rate is None else "poisson")
        streams = DEFAULT_STREAMS if law == "closed" and self.concurrency is None else self.concurrency
        arrival = parse_arrival(law, concurrency=streams, rate=self.rate)
        if self.ramp_s is None:
            return arrival
        if arrival.kind != "ramp":
            hint = f"--arrival ramp:1-50 --ramp {self.ramp_s:g}"
            raise UsageError(f"--ramp {self.ramp_s:g} belongs to --arrival ramp:A-B, not to {law}", hint=hint)
        return arrival.model_copy(update={"ramp_s": self.ramp_s})


def new_folder(given: Path | None, kind: str, *, may_hold: bool = False) -> Path:
    """The folder to write to: the one given, or the first that is not there yet.

    Args:
        given: by the user; None: none was.
        kind: begins the name of a new one.
        may_hold: whether the one given may hold something, which the verb looks at.

    Raises:
        UsageError: something is in the one given.
    """
    if given is None:
        day = f"{datetime.now().astimezone():%Y%m%d}"
        number = 1
        while (Path.cwd() / f"{kind}-{day}-{number}").exists():
            number += 1
        return Path.cwd() / f"{kind}-{day}-{number}"
    if given.exists() and any(given.iterdir()) and not may_hold:
        raise UsageError(f"{given} is not empty", hint="name a new folder; results are never overwritten")
    return given


def make(record: type[AnyRecord], **fields: Any) -> AnyRecord:
    """A record from options; what contradicts itself is a mistake of usage.

    Raises:
        UsageError: the record refuses its fields.
    """
    from pydantic import ValidationError

    try:
        return record(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{where}: {first['msg']}" if where else str(first["msg"])) from error


def refuse(message: str, *, hint: str, as_json: bool) -> NoReturn:
    """End with exit code 5 after the numbers were shown.

    Raises:
        MeasurementError: for people.
        click.exceptions.Exit: for programs.
    """
    fail_after_shown(MeasurementError(message, hint=hint), as_json=as_json)
