"""Help texts of engines, parsed: the installed version's own word on its flags.

`parse_argparse` reads what Python's argparse prints (vLLM, SGLang), `parse_click` what click prints (TensorRT-LLM).
Neither ever raises: a line that is no flag is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from assay.flags.spec import FlagSpec, Kind, Scalar
from assay.flags.values import as_number
from assay.records.machine import FlagInfo

MAX_CHARACTERS = 5_000_000
"""vLLM's whole help has 150,000; more than this is no help text."""
_HEAD = re.compile(r"^ {2}-{1,2}[A-Za-z]")
"""Both print a flag two columns in, and everything about it further right."""
_NAME = re.compile(r"^-{1,2}[A-Za-z][\w.-]{0,120}$")
_WIDE_GAP = re.compile(r"\s{2,}")
_BRACED = re.compile(r"\{([^{}]{1,20000})\}")
_ARGPARSE_DEFAULT = re.compile(r"\(default: ([^()]{0,400}(?:\([^()]{0,200}\))?[^()]{0,100})\)\s*$")
_CLICK_DEFAULT = re.compile(r"\[default: ([^\]]{0,300})\]")
_CLICK_CHOICES = re.compile(r"^\[([^\[\]]{1,5000})\]$")
_CLICK_KINDS: dict[str, Kind] = {"INTEGER": "int", "FLOAT": "float", "BOOLEAN": "str", "TEXT": "str"}
_DEPRECATED = re.compile(r"^\W{0,3}(?:note:\s*\S{0,60}\s*is\s+)?deprecated\b", re.IGNORECASE)
_INSTEAD = re.compile(r"(?:use|set)\s+[`'\"]?(--[a-z0-9][\w-]{1,80}(?:=\w{1,40})?)", re.IGNORECASE)


def parse_argparse(text: str) -> list[FlagSpec]:
    """Every flag of an argparse help."""
    return [spec for head, words in _blocks(text) if (spec := _argparse_flag(head, words)) is not None]


def parse_click(text: str) -> list[FlagSpec]:
    """Every option of a click help."""
    return [spec for head, words in _blocks(text) if (spec := _click_flag(head, words)) is not None]


def from_infos(infos: Iterable[FlagInfo]) -> list[FlagSpec]:
    """Flags that an engine's adapter has parsed already (llama.cpp)."""
    return [
        FlagSpec(
            names=tuple(info.names),
            kind="switch" if info.value is None else _kind_by(info.value, info.default),
            choices=tuple(info.choices),
            default=False if info.value is None else _scalar(info.default),
            default_known=info.default is not None and as_number(info.default) is not None,
            removed=info.removed,
        )
        for info in infos
        if info.names
    ]


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The head of each flag, and the text beside and below it as one line."""
    head: str | None = None
    words: list[str] = []
    for line in text[:MAX_CHARACTERS].splitlines():
        if _HEAD.match(line):
            if head is not None:
                yield head, " ".join(words)
            head, *beside = _WIDE_GAP.split(line.strip(), maxsplit=1)
            words = list(beside)
        elif head is not None and (line.startswith("         ") or not line.strip()):
            words += [line.strip()] if line.strip() else []
        elif head is not None:
            yield head, " ".join(words)
            head = None
    if head is not None:
        yield head, " ".join(words)


def _argparse_flag(head: str, text: str) -> FlagSpec | None:
    names, value = _argparse_head(head)
    if not names:
        return None
    positive = [name for name in names if not name.startswith("--no-")]
    is_switch = not value
    found = _ARGPARSE_DEFAULT.search(text)
    default = _scalar(found.group(1)) if found else None
    braces = _BRACED.search(value)
    deprecated = bool(_DEPRECATED.match(text))
    instead = _INSTEAD.search(text) if deprecated else None
    return FlagSpec(
        names=tuple(positive or names),
        kind="switch" if is_switch else "str",
        many="..." in value,
        optional=value.startswith("["),
        choices=tuple(choice.strip() for choice in braces.group(1).split(",")) if braces else (),
        default=bool(default) if is_switch else default,
        default_known=found is not None,
        negatable=bool(positive) and len(positive) < len(names),
        deprecated=deprecated,
        new=instead.group(1) if instead else None,
    )


def _argparse_head(head: str) -> tuple[list[str], str]:
    """Names, and what stands for the value: `--a {x,y}, -b {x,y}` and `-b, --a {x,y}` say the same."""
    names: list[str] = []
    value = ""
    for part in _split_outside_braces(head):
        name, _, rest = part.strip().partition(" ")
        if _NAME.match(name):
            names.append(name)
            value = rest.strip() or value
    return names, value


def _split_outside_braces(head: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, character in enumerate(head):
        depth += (character in "{[") - (character in "}]")
        if character == "," and depth <= 0 and head[at + 1 : at + 2] == " ":
            parts.append(head[start:at])
            start = at + 1
    return [*parts, head[start:]]


def _click_flag(head: str, text: str) -> FlagSpec | None:
    words = [word.rstrip(",") for word in head.split() if word not in {"/", "|"}]
    names = [word for word in words if _NAME.match(word)]
    value = " ".join(word for word in words if not _NAME.match(word))
    if not names:
        return None
    choices = _CLICK_CHOICES.match(value)
    found = _CLICK_DEFAULT.search(text)
    return FlagSpec(
        names=tuple(name for name in names if not name.startswith("--no-")) or tuple(names),
        kind="switch" if not value else _CLICK_KINDS.get(value.split()[0], "str"),
        choices=tuple(choices.group(1).split("|")) if choices else (),
        default=_scalar(found.group(1)) if found and value else False if not value else None,
        default_known=found is not None,
        negatable=any(name.startswith("--no-") for name in names),
    )


def _kind_by(placeholder: str, default: str | None) -> Kind:
    """`N` stands for whole numbers and for others (`--temp N`): which it is, a default tells."""
    if placeholder != "N":
        return "str"
    return "int" if isinstance(_scalar(default), int) else "float"


def _scalar(text: str | None) -> Scalar | None:
    if text is None or text.strip() in {"None", ""}:
        return None
    plain = text.strip()
    if plain in {"True", "False"}:
        return plain == "True"
    number = as_number(plain)
    return plain.strip("'\"") if number is None else number


def joined(specs: Sequence[FlagSpec]) -> list[FlagSpec]:
    """One entry a name: of repeated ones (a help shows groups twice), the first."""
    seen: set[str] = set()
    kept = []
    for spec in specs:
        if spec.name not in seen:
            seen.add(spec.name)
            kept.append(spec)
    return kept
