"""Help texts of engines, read: made here in the forms that argparse and click print, and mutated."""

from __future__ import annotations

import argparse
import string

import click
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.flags.help_text import from_infos, joined, parse_argparse, parse_click
from assay.flags.knowledge import from_help
from assay.flags.spec import FlagSpec
from assay.records.machine import FlagInfo


def argparse_help() -> str:
    parser = argparse.ArgumentParser("engine", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("model", nargs="?", help="the model")
    group = parser.add_argument_group("Cache", "Of the cache.")
    group.add_argument("--block-size", "-bs", type=int, default=16, help="tokens of a block")
    group.add_argument("--cache-dtype", choices=["auto", "fp8", "bf16"], default="auto", help="how it is stored")
    group.add_argument("--prefix-caching", action=argparse.BooleanOptionalAction, default=True, help="reuse")
    group.add_argument(
        "--eager", action="store_true", help="no graphs; see also --block-size " + "and more words " * 12
    )
    group.add_argument("--sizes", nargs="+", type=int, help="several (as 1 2 4)")
    group.add_argument("--profile", nargs="?", const="x", help="with or without a value")
    group.add_argument("--old", action="store_true", help="Deprecated. Use --eager=always instead.")
    return parser.format_help()


def by_name(specs: list[FlagSpec]) -> dict[str, FlagSpec]:
    return {spec.name: spec for spec in specs}


def test_an_argparse_help_gives_names_kinds_choices_and_defaults() -> None:
    seen = by_name(parse_argparse(argparse_help()))

    assert set(seen) == {
        "--help", "--block-size", "--cache-dtype", "--prefix-caching", "--eager", "--sizes", "--profile", "--old",
    }  # fmt: skip
    assert set(seen["--block-size"].names) == {"--block-size", "-bs"}
    assert seen["--block-size"].default == 16
    assert seen["--cache-dtype"].choices == ("auto", "fp8", "bf16")
    assert seen["--cache-dtype"].default == "auto"
    assert seen["--prefix-caching"].is_switch
    assert seen["--prefix-caching"].negatable
    assert seen["--prefix-caching"].default is True
    assert seen["--eager"].is_switch
    assert not seen["--eager"].negatable
    assert seen["--sizes"].many
    assert seen["--profile"].optional
    assert (seen["--old"].deprecated, seen["--old"].new) == (True, "--eager=always")


def test_a_click_help_gives_the_same() -> None:
    @click.command("serve")
    @click.argument("model")
    @click.option("--tp_size", "--tensor_parallel_size", type=int, default=1, show_default=True, help="ranks")
    @click.option("--backend", type=click.Choice(["pytorch", "tensorrt"]), default="pytorch", show_default=True)
    @click.option("--fraction", type=float, help="of the memory")
    @click.option("--chunked/--no-chunked", default=False, help="chunks")
    @click.option("--trust", is_flag=True, help="yes")
    def serve(**_: object) -> None: ...

    seen = by_name(parse_click(CliRunner().invoke(serve, ["--help"]).stdout))

    assert set(seen["--tp_size"].names) == {"--tp_size", "--tensor_parallel_size"}
    assert (seen["--tp_size"].kind, seen["--tp_size"].default) == ("int", 1)
    assert seen["--backend"].choices == ("pytorch", "tensorrt")
    assert seen["--fraction"].kind == "float"
    assert seen["--chunked"].negatable
    assert seen["--trust"].is_switch


def test_flags_that_an_adapter_parsed_are_taken_over() -> None:
    info = FlagInfo(names=["-c", "--ctx-size"], value="N", default="4096", help="context")

    spec = from_infos([info])[0]

    assert (spec.name, spec.kind, spec.default) == ("--ctx-size", "int", 4096)


def test_the_installed_help_decides_and_the_record_adds_what_no_help_tells() -> None:
    specs = [FlagSpec(names=("--num-continuous-decode-steps",)), FlagSpec(names=("--brand-new",))]

    knowledge = from_help("sglang", "0.5.23", specs, "the help of the installed SGLang")

    dead = knowledge.find("--num-continuous-decode-steps")
    assert dead is not None
    assert dead.dead
    assert dead.kind == "int"
    assert knowledge.find("--brand-new") is not None
    assert knowledge.find("--tp-size") is None
    assert knowledge.evidence().basis == "help"


def test_a_flag_shown_twice_is_one_flag() -> None:
    help_text = "options:\n  --a X   one\n\nGroup:\n  --a X   again\n"

    assert [spec.name for spec in joined(parse_argparse(help_text))] == ["--a"]


PIECES = st.sampled_from(argparse_help().splitlines(keepends=True))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(PIECES, st.text(string.printable, max_size=80)), max_size=40))
def test_mutated_help_is_read_without_a_fault(lines: list[str]) -> None:
    text = "".join(lines)

    for specs in (parse_argparse(text), parse_click(text)):
        assert len(specs) <= text.count("\n") + 1 + text.count("\r") + text.count("\x0b") + text.count("\x0c")
        assert all(spec.names for spec in specs)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    assert isinstance(parse_argparse("  --x " + text), list)
    assert isinstance(parse_click("  --x " + text), list)


def test_a_huge_line_takes_no_longer_than_its_length() -> None:
    for text in (
        "  --x " + "{" * 300_000,
        "  --x (default: " * 20_000,
        "  --" + "a" * 400_000,
        "  --x [" + "a|" * 100_000,
    ):
        assert len(parse_argparse(text)) <= 1
        assert len(parse_click(text)) <= 1
