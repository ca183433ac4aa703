"""The simulated engine's command line: flags every world has, those of its file, and the truths that are in force."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from assay.models.paths import user_path
from assay.records.base import FlagValue
from assay.rehearsal.world_file import Fault, KnownFlag, Truth, WorldFile, read_world

PROGRAM = "assay-rehearsal"
ERROR_EXIT = 2
"""What argparse ends with."""
BUILT_IN = (
    KnownFlag(name="--model", value="MODEL", help="A model that `assay estimate --list` names, or a config.json."),
    KnownFlag(name="--host", value="ADDRESS", default="127.0.0.1", help="Address to listen on."),
    KnownFlag(name="--port", value="PORT", default=8000, help="Port to listen on."),
    KnownFlag(name="--world", value="FILE", help="TOML file of the hidden truth: launch, noise, more flags, faults."),
    KnownFlag(name="--time-scale", value="X", default=1.0, help="Seconds of the simulated world in one real second."),
    KnownFlag(name="--seed", value="N", help="Seed of this launch's noise; else from the run's id, else 0."),
    KnownFlag(name="--flush-s", value="S", default=0.01, help="Real seconds for which tokens are gathered into one "
              "chunk of a stream."),
    KnownFlag(name="--box", value="BOX", default="1xH100-SXM", help="How many of which device, as 8xRTX-PRO-6000."),
    KnownFlag(name="--tp-size", value="N", default=1, help="Tensor parallel ranks."),
    KnownFlag(name="--pp-size", value="N", default=1, help="Pipeline stages."),
    KnownFlag(name="--dp-size", value="N", default=1, help="Replicas of the attention."),
    KnownFlag(name="--ep-size", value="N", default=1, help="Expert parallel ranks."),
    KnownFlag(name="--max-running-requests", value="N", default=1024, help="Most sequences in a step."),
    KnownFlag(name="--chunked-prefill-size", value="N", default=8192, help="Most prompt tokens in a step."),
    KnownFlag(name="--mem-fraction-static", value="X", default=0.9, help="Share of device memory for weights and "
              "cache."),
    KnownFlag(name="--kv-cache-dtype", choices=["auto", "bf16", "fp8_e4m3"], default="auto", help="Format of the "
              "cache."),
    KnownFlag(name="--watchdog-timeout", value="S", default=300.0, help="End the server when no step ends for so long; "
              "0: never."),
)  # fmt: skip
NUMBERS = {"port": int, "time_scale": float, "flush_s": float, "watchdog_timeout": float, "mem_fraction_static": float}
NUMBERS |= dict.fromkeys(
    ("seed", "tp_size", "pp_size", "dp_size", "ep_size", "max_running_requests", "chunked_prefill_size"), int
)


class Refused(Exception):  # noqa: N818 - how a command line ends
    """The command line cannot be taken; the message is what the engine prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A command line that was accepted."""

    world: WorldFile
    given: dict[str, Any]
    """Every flag's value by its key, defaults included."""
    truths: list[tuple[KnownFlag, Truth]]
    """What is true of the flags in force."""

    def faults(self, *kinds: str) -> Iterator[Fault]:
        """Faults of these kinds."""
        return (fault for _, fault in self.faults_by_flag() if fault.kind in kinds)

    def faults_by_flag(self) -> Iterator[tuple[KnownFlag, Fault]]:
        """Every fault with its flag."""
        return ((flag, truth.fault) for flag, truth in self.truths if truth.fault is not None)

    def effective(self) -> dict[str, Any]:
        """What the server says is in force: a flag that is silently ignored stands at its default."""
        ignored = {flag.key: flag for flag, fault in self.faults_by_flag() if fault.kind == "ignored"}
        defaults = {key: False if flag.is_switch else flag.default for key, flag in ignored.items()}
        return {**self.given, **defaults}


def known_flags(world: WorldFile) -> list[KnownFlag]:
    """Built-in flags and the world's; a world may tell the truth of a built-in one."""
    own = {flag.name: flag for flag in world.flags}
    found = [_merged(flag, own.pop(flag.name, None)) for flag in BUILT_IN]
    return [*found, *own.values()]


def parser(flags: Sequence[KnownFlag]) -> argparse.ArgumentParser:
    """The engine's parser, which also writes its help."""
    found = _Parser(
        prog=PROGRAM,
        allow_abbrev=False,
        description="SIMULATED inference server: no model, no GPU; times are calculated.",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100, max_help_position=32),
    )
    for flag in flags:
        words = flag.help.replace("%", "%%")
        if flag.is_switch:
            found.add_argument(flag.name, action="store_true", help=words)
            continue
        default = None if flag.default is None else str(flag.default)
        found.add_argument(
            flag.name,
            metavar=None if flag.choices else flag.value,
            choices=flag.choices or None,
            default=flag.default,
            help=words + ("" if default is None else f" (default: {default})".replace("%", "%%")),
        )
    return found


def read(words: Sequence[str]) -> CommandLine:
    """Read a command line.

    Raises:
        Refused: it has a flag that this world does not know, or a value that it does not take.
        UsageError: the world file cannot be read.
    """
    world = read_world(_world_path(words))
    flags = known_flags(world)
    given = vars(parser(flags).parse_args(list(words)))
    for key, kind in NUMBERS.items():
        given[key] = _number(key, kind, given[key])
    truths = [(flag, truth) for flag in flags for truth in flag.truth if _holds(flag, truth, given[flag.key])]
    line = CommandLine(world=world, given=given, truths=truths)
    for flag, fault in line.faults_by_flag():
        if fault.kind == "rejects":
            raise Refused(fault.line or f"argument {flag.name}: invalid value: {given[flag.key]!r}")
    return line


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(message)


def _merged(flag: KnownFlag, own: KnownFlag | None) -> KnownFlag:
    if own is None:
        return flag
    default = flag.default if own.default is None else own.default
    return flag.model_copy(update={"truth": own.truth, "default": default})


def _world_path(words: Sequence[str]) -> Path | None:
    for number, word in enumerate(words):
        if word == "--world" and number + 1 < len(words):
            return user_path(words[number + 1])
        if word.startswith("--world="):
            return user_path(word.partition("=")[2])
    return None


def _number(key: str, kind: type[int | float], value: Any) -> int | float | None:
    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        name = "--" + key.replace("_", "-")
        raise Refused(f"argument {name}: invalid {kind.__name__} value: {str(value)!r}") from None


def _holds(flag: KnownFlag, truth: Truth, value: FlagValue | None) -> bool:
    if value is None or value is False:
        return False
    if truth.value is not None:
        return str(value).lower() == str(truth.value).lower()
    return flag.is_switch or str(value) != str(flag.default)
