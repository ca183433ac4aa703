"""Every command that the pages name exists, takes the options that it is shown with, and answers --help."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from assay.cli import COMMANDS, cli
from tests.docs.commands import ROOT, Written, commands, linked_paths, named_paths, pages

EVERY = [command for page, text in pages() for command in commands(page, text)]
ASSAY = [command for command in EVERY if command.program == "assay" and len(command.words) > 1]
PYTHON = [command for command in EVERY if re.fullmatch(r"python3?", command.program)]
ELSEWHERE = {"venv", "pytest", "pip", "sglang.launch_server"}
"""Modules of others that the pages run."""
OURS = re.compile(r"(assay|benchmarks)(\.|$)")
HELPS = """
import contextlib, io, json, runpy, signal, sys
from pathlib import Path
told, root, libraries = {}, Path.cwd(), [place for place in sys.path if place not in ("", str(Path.cwd()))]
for target in json.loads(sys.stdin.read()):
    script = Path(target)
    is_file = script.exists()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "benchmarks" or str(getattr(module, "__file__", "")).startswith(
                str(root / "benchmarks")):
            del sys.modules[name]  # a fresh process would not have them, nor the package, which has no file
    sys.path[:] = [str(script.resolve().parent if script.is_file() else root) if is_file else str(root), *libraries]
    if is_file and script.is_dir():
        sys.path.pop(0)
    sys.argv = [target, "--help"]
    out, code = io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            if is_file:
                runpy.run_path(target, run_name="__main__")
            else:
                runpy.run_module(target, run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            code = ended.code or 0
        except BaseException as error:
            code = repr(error)
    told[target] = [code, out.getvalue()]
print(json.dumps(told))
"""
"""One process for all scripts, since most of a script's start is loading the same libraries; each finds on its path
and among the modules of `benchmarks` what it would find alone."""


def target_of(command: Written) -> str | None:
    """The script or module that a command of Python runs; None: `-c`, or no more than the word."""
    words = command.words[1:]
    if "-m" in words:
        return words[words.index("-m") + 1]
    return next((word for word in words if word.endswith(".py") or (ROOT / word).is_dir()), None)


SCRIPTS = sorted(
    {
        target
        for command in PYTHON
        if (target := target_of(command)) and (OURS.match(target) or target.startswith(("benchmarks/", "docs/")))
    }
)


@cache
def helps() -> dict[str, tuple[object, str]]:
    argv = [sys.executable, "-c", HELPS]
    done = subprocess.run(
        argv, input=json.dumps(SCRIPTS), stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, timeout=120
    )
    return json.loads(done.stdout)


def missing_options(command: Written) -> list[str]:
    """Options of a command of Python that its script's help does not name."""
    _, text = helps()[str(target_of(command))]
    named = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text))
    return [option for option in command.options if option not in named | {"-m"}]


def problem(command: Written) -> str | None:
    """What is wrong with a command of `assay`; None: nothing."""
    name = command.words[1]
    if name.startswith("-"):
        return None if name in {"-h", "--help", "--version"} else f"assay has no option {name}"
    if name not in COMMANDS:
        return f"assay has no command {name}"
    known = cli.get_command(click.Context(cli), name)
    assert known is not None
    spelled = {text for one in known.params for text in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
    if missing := [option for option in command.options if option not in spelled]:
        return f"assay {name} has no option {missing[0]}"
    if command.is_whole and "--help" not in command.words:
        try:
            known.make_context(name, list(command.words[2:]))
        except click.UsageError as error:
            return error.format_message()
    return None


@pytest.mark.parametrize("command", ASSAY, ids=lambda command: f"{command.page}: {' '.join(command.words)}"[:90])
def test_a_command_of_assay_on_a_page_is_one_that_the_parser_takes(command: Written) -> None:
    assert problem(command) is None


def test_every_module_and_script_that_a_page_runs_is_there() -> None:
    for command in PYTHON:
        target = target_of(command)
        if target is None or target in ELSEWHERE:
            continue
        if target.endswith(".py") or "/" in target:
            assert (ROOT / target).exists(), command
        else:
            assert OURS.match(target), command
            assert find_spec(target) is not None, command


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_that_a_page_runs_answers_help_and_has_the_options_that_it_is_shown_with(script: str) -> None:
    code, text = helps()[script]
    assert code == 0, f"{code}: {text[-500:]}"
    for command in PYTHON:
        if target_of(command) == script:
            assert not missing_options(command), command


def test_every_file_that_a_page_names_or_links_to_is_there() -> None:
    for page, text in pages():
        for name in named_paths(text):
            assert (ROOT / name).exists(), (page, name)
        for link in linked_paths(text):
            assert (ROOT / page).parent.joinpath(link).exists(), (page, link)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("`assay benhc URL`", "no command benhc"),
        ("`assay bench URL --concurency 4`", "no option --concurency"),
        ("\n\n    assay import --format csv FILE\n", "csv"),
        ("\n\n    PATH=x assay plan --explain kv-fp8 && assay nxt | cat  # why\n", "no command nxt"),
    ],
)
def test_a_stale_command_of_assay_would_be_found(line: str, words: str) -> None:
    found = [problem(command) for command in commands("a page", line) if command.program == "assay"]
    assert any(words in (one or "") for one in found), found


def test_an_option_that_a_script_no_longer_has_would_be_found() -> None:
    (command,) = commands("a page", "`python benchmarks/load_clients --only assay --client-core 3`")
    assert missing_options(command) == ["--client-core"]


def test_commands_are_read_from_blocks_and_sentences_without_what_the_shell_adds() -> None:
    text = (
        "See `python\nbenchmarks/fuzz.py [--seconds 5]`.\n\n"
        "    X=1 .venv/bin/python -m benchmarks.search --seeds 5 > table.md  # a note\n\n"
        "```sh\nassay doctor --json -- \\\n    vllm serve M --bogus\n```\n"
    )
    found = {command.words: command.options for command in commands("a page", text)}
    assert found[("python", "benchmarks/fuzz.py", "--seconds", "5")] == ["--seconds"]
    assert found[(".venv/bin/python", "-m", "benchmarks.search", "--seeds", "5")] == ["-m", "--seeds"]
    assert found[("assay", "doctor", "--json", "--", "vllm", "serve", "M", "--bogus")] == ["--json"]


def test_pages_name_commands_at_all() -> None:
    assert len(ASSAY) > 50
    assert len(SCRIPTS) > 15
    assert Path(ROOT, "README.md").exists()
