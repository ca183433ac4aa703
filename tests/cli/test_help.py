"""Help that teaches: every command, every option."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from assay.cli import COMMANDS, cli
from assay.cli.command import TeachingCommand

CODES = {0, 1, 2, 3, 4, 5, 6, 70, 130}


def command_named(name: str) -> TeachingCommand:
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, TeachingCommand)
    return command


def help_of(*words: str) -> str:
    result = CliRunner().invoke(cli, [*words, "--help"], prog_name="assay")
    assert result.exit_code == 0
    assert result.stderr == ""
    return result.stdout


def test_the_commands_are_those_of_the_design_that_exist() -> None:
    listed = re.findall(r"^  (\w+)  ", help_of(), flags=re.MULTILINE)

    assert [name for name in listed if name in COMMANDS] == list(COMMANDS)
    assert set(COMMANDS) == {
        "demo", "bench", "compare", "import", "init", "assess", "plan", "run", "status", "todo", "next", "report",
        "export", "verify", "version", "estimate", "characterize", "rehearse", "explain", "doctor", "catalogue",
        "tune",
    }  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_goes_by_the_name_it_is_listed_under(name: str) -> None:
    assert command_named(name).name == name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_in_its_help_with_words(name: str) -> None:
    text = help_of(name)
    options = [parameter for parameter in command_named(name).params if isinstance(parameter, click.Option)]

    assert {"--json"} <= {spelling for option in options for spelling in option.opts}
    for option in options:
        assert option.help, option.name
        assert option.opts[-1] in text
        assert option.help.split()[0] in text


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name not in {"doctor", "estimate", "explain", "import", "tune", "version"}]
)
def test_every_command_about_a_campaign_can_be_told_its_folder(name: str) -> None:
    assert "-f, --folder" in help_of(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_does_what_it_needs_how_it_is_used_and_how_it_ends(name: str) -> None:
    command, text = command_named(name), help_of(name)

    sections = ["Usage:", "Options:", "Needs first:", "Examples:", "Exit codes:"]
    places = [text.index(section) for section in sections]
    assert places == sorted(places)
    assert len((command.help or "").split()) > 15
    assert all(f"\n  {example}\n" in text for example in command.examples)
    assert "\\" not in text
    assert "\b" not in text


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_documents_exit_codes_that_exist(name: str) -> None:
    exits = command_named(name).exits

    assert 0 in exits
    assert set(exits) <= CODES


@pytest.mark.parametrize("example", [(name, each) for name in COMMANDS for each in command_named(name).examples])
def test_an_example_is_a_command_line_that_the_parser_takes(example: tuple[str, str]) -> None:
    name, line = example
    words = shlex.split(re.split(r" 2?> ", line)[0])

    assert words[:2] == ["assay", name]
    command_named(name).make_context(name, words[2:])


def test_the_help_of_the_program_says_what_the_exit_codes_mean() -> None:
    text = " ".join(help_of().split())

    assert all(re.search(rf"\b{code} [a-z]", text) for code in CODES)


def test_without_a_command_there_is_help() -> None:
    assert CliRunner().invoke(cli, [], prog_name="assay").output.startswith("Usage: assay")
