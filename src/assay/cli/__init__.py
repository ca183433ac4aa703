"""The command line: one module per group of commands; parse, call `assay.api`, render, exit.

stdout is data (`--json` everywhere), stderr is talk. Commands are imported when they are called: `--help` stays fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from assay import __version__
from assay.cli.failure import BROKEN_PIPE, tell
from assay.cli.failure import explain as trouble_of
from assay.errors import UsageError

COMMANDS = {
    "demo": ("measure", "The whole loop on the embedded engine and model, in minutes."),
    "bench": ("bench", "One honest load test of any OpenAI-compatible server."),
    "compare": ("bench", "Which of two or more servers is better, with an interval."),
    "import": ("import_", "Read other tools' results, under one set of definitions."),
    "init": ("prepare", "Write assay.toml: model, baseline, workload, objective, budget."),
    "assess": ("prepare", "Take stock: machine, engine and its real flags, model, record."),
    "estimate": ("estimate", "What a model would do on a box, by calculation: memory, speed, what would help."),
    "characterize": ("characterize", "Where the time goes: ceilings of this machine, roofline, attribution of a run."),
    "tune": ("tune", "Find the tiles that an engine's fused-MoE kernel is fastest with on this GPU."),
    "doctor": ("doctor", "A launch command's flags against the engine's version, before the launch."),
    "explain": ("explain", "Why an engine failed: stage, cause, the line that says so, and what to do."),
    "catalogue": ("catalogue", "Every known optimization: listed, explained, held against a target."),
    "plan": ("plan", "Write the improvement documents and the todo."),
    "rehearse": ("rehearse", "The planned campaign dry-run in memory: hours, decisions, power."),
    "run": ("measure", "Carry the campaign on: calibrate, screen, compose, confirm."),
    "status": ("look", "Where the campaign is."),
    "todo": ("look", "Every hypothesis with its status and verdict."),
    "next": ("look", "What would be done next, and why."),
    "report": ("deliver", "Write the HTML and Markdown report."),
    "export": ("deliver", "Print the launch command to ship."),
    "verify": ("deliver", "Prove the record: chain, payloads, files."),
    "version": ("about", "Versions of Assay and of what it stands on, for bug reports."),
}
"""Command, module that holds it, help in one line; in the order of the work."""
NAMES_TAKEN = {"import": "import_command", "next": "next_command", "version": "version_command"}
"""Commands whose function has another name, because that one is taken."""


class LazyGroup(click.Group):
    """Knows its commands' names and one-line helps without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command's module now."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"assay.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, NAMES_TAKEN.get(cmd_name, cmd_name))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of one that does not exist, name the nearest."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean `assay {near[0]}`?" if near else "`assay --help` lists the commands"
            raise UsageError(f"there is no command {args[0]!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in `assay --help`, from the table above, and where to begin."""
        with formatter.section("Commands, in the order of the work"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])
        with formatter.section("Begin with"):
            formatter.write_dl(
                [
                    ("a first look", "assay demo --quick"),
                    ("your own model", "assay init --model FILE.gguf && assay plan && assay run"),
                    ("afterwards", "assay report; assay export; assay verify"),
                ]
            )


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="assay")
def cli() -> None:
    """Take LLM inference optimization from research to execution.

    Assay launches real servers, loads them, judges optimizations with intervals, and keeps a record that proves itself.
    Every command takes --json and explains itself with --help. Data goes to stdout, progress and messages to stderr.

    Exit codes: 0 done, 1 a check failed, 2 usage, 3 waiting for an approval, 4 engine, 5 no valid measurement,
    6 record, 70 a defect of Assay, 130 interrupted.
    """


def run_command(words: Sequence[str]) -> int:
    """Run one command line; every error becomes a message with a next step, and its exit code."""
    try:
        try:
            return _dispatch(list(words) or ["--help"])
        except click.exceptions.Exit as leave:
            return leave.exit_code
        except SystemExit as leave:
            if isinstance(leave.__context__, BrokenPipeError):  # how rich leaves when nobody reads it any more
                raise leave.__context__ from None
            raise
        except BrokenPipeError:
            raise
        except BaseException as error:  # noqa: BLE001 - the top of the process: nothing may end in a bare traceback
            trouble = trouble_of(error)
        tell(trouble, as_json="--json" in words)
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    return trouble.exit_code


def _dispatch(words: list[str]) -> int:
    """Parse and call, without click's own handling of errors, which would swallow what we tell."""
    if "_ASSAY_COMPLETE" in os.environ:
        cli.main(args=words, prog_name="assay")  # a shell asks for completions; does not return
    with cli.make_context("assay", words) as context:
        cli.invoke(context)
    return 0


def _discard_output() -> None:
    """Let what is still buffered go nowhere, so that Python's last flush does not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
