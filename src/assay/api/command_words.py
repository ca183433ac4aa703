"""Words of a launch command as flags of assay.toml."""

from __future__ import annotations

from typing import Any

from assay.errors import UsageError


def read_flags(words: list[str]) -> dict[str, Any]:
    """`--name value`, `--name=value` and bare `--name`, with numbers as numbers."""
    flags: dict[str, Any] = {}
    name: str | None = None
    for word in words:
        is_flag = word.startswith("-") and not _is_number(word)
        if is_flag and "=" in word:
            key, value = word.split("=", 1)
            flags[key], name = as_value(value), None
        elif is_flag:
            flags[word], name = True, word
        elif name is None:
            raise UsageError(f"{word!r} in the launch command belongs to no flag", hint="quote values with spaces")
        else:
            flags[name], name = as_value(word), None
    return flags


def leading_variables(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """`NAME=value` before the program, with or without `env`, and the words from the program on."""
    from assay.flags.shell_commands import assignments, is_assignment

    rest = words[1:] if words[:1] == ["env"] else words
    count = next((i for i, word in enumerate(rest) if not is_assignment(word)), len(rest))
    return assignments(rest[:count]), rest[count:]


def as_value(text: str) -> int | float | str:
    """A word of a command: a number where it is one (`inf` and `nan` are words)."""
    from assay.flags.values import as_number

    number = as_number(text)
    return text if number is None else number


def _is_number(text: str) -> bool:
    return not isinstance(as_value(text), str)
