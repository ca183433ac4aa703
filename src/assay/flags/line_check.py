"""A command line as a whole: flags given twice, words that belong to none, words that a shell fills in."""

from __future__ import annotations

from collections.abc import Sequence

from assay.flags.knowledge import Knowledge
from assay.flags.values import as_number, is_open
from assay.records.doctor import Evidence, Finding, GivenFlag, Launch, Undecided

_DASHES = "\u2012\u2013\u2014\u2015\u2212"
_QUOTES = "\u2018\u2019\u201c\u201d\u201e"


def repeated(launch: Launch, knowledge: Knowledge) -> list[Finding]:
    """A flag given twice: the last one counts."""
    by_name: dict[str, list[GivenFlag]] = {}
    for flag in launch.flags:
        found = knowledge.resolve(flag.name)
        if found.spec is not None and found.key is None and not found.spec.many:
            by_name.setdefault(found.spec.name, []).append(flag)
    findings = []
    for flags in by_name.values():
        if len(flags) > 1:
            differ = len({_comparable(flag) for flag in flags}) > 1
            findings.append(
                Finding(
                    kind="repeated",
                    severity="warning" if differ else "note",
                    flags=list(dict.fromkeys(flag.name for flag in flags)),
                    what=f"is given {len(flags)} times; the last one counts: {flags[-1].written}",
                    evidence=[Evidence(source="Python's argparse stores each value over the last", basis="rule")],
                    remedy="keep one",
                )
            )
    return findings


def _comparable(flag: GivenFlag) -> tuple[object, ...]:
    return tuple(value if as_number(value) is None else as_number(value) for value in flag.values) or (
        flag.name.startswith("--no-"),
    )


def stray(launch: Launch, knowledge: Knowledge) -> list[Finding]:
    """Words that belong to no flag."""
    return [
        Finding(
            kind="stray-word",
            severity="error",
            flags=[word if word.isprintable() and word.strip() else repr(word)],
            what="belongs to no flag, and the engine takes no such word",
            evidence=[knowledge.evidence()],
            remedy=_instead_of(word),
        )
        for word in _beside(launch, knowledge)
        if not is_open(word)
    ]


def cut_off(words: Sequence[str]) -> list[Finding]:
    """Flags that a shell never gives to the engine, because the line before them ended the command."""
    return [
        Finding(
            kind="stray-word",
            severity="warning",
            flags=[word],
            what="stands behind the end of the command: the engine never sees what is on this line",
            evidence=[Evidence(source="a shell ends a command with its line", basis="rule")],
            remedy="end the line before it with a backslash; a comment between the lines ends the command too",
        )
        for word in dict.fromkeys(words)
    ]


def _instead_of(word: str) -> str:
    """What to do about a stray word: most come with a command that was copied."""
    if not word.strip():
        return "a backslash that continues a line has to be the last character in it: remove the blank behind it"
    if word[0].isspace():
        return (
            "a backslash before a blank makes the blank a part of the word: remove the backslash, or end the line there"
        )
    if word[0] in _DASHES:
        return f"write --{word.lstrip(_DASHES + '-')}: a text editor put one long dash in place of two hyphens"
    if any(mark in word for mark in _QUOTES):
        return "write straight quotation marks: a shell takes these for letters"
    return "remove it, or put it behind the flag that it belongs to"


def _beside(launch: Launch, knowledge: Knowledge) -> list[str]:
    """The words beside the flags, without the model."""
    takes_model = knowledge.dialect.positional_model or launch.program[-1:] == ["serve"]
    return launch.positionals[1 if takes_model else 0 :]


def shell_words(launch: Launch, knowledge: Knowledge) -> list[Undecided]:
    """Words that a shell fills in, such as `$EXTRA`: there may be flags in them."""
    words = [word for word in _beside(launch, knowledge) if is_open(word)]
    return [Undecided(rule="shell", flags=[word], reason="a shell fills it in") for word in dict.fromkeys(words)]
