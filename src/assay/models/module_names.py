"""Lists of modules as quantizers write them: plain names, globs, and `re:` patterns.

One representative stands for all experts of a layer (`mlp.experts.0`): a list that treats experts one by one is not
followed to the single expert.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence

from assay.errors import UsageError

PREFIXES = ("language_model", "model", "backbone", "transformer")
LONGEST_PATTERN = 300
MOST_QUANTIFIERS = 4
MOST_ALIKE, MOST_NUMBERED = 256, 32
LAYER = re.compile(r"layers\.(\d+)(?:\D|$)")
WILD = re.compile(r"[*?\[]")
DIGIT = re.compile(r"\d")
ROOTS = ("layers.", "lm_head", "embed_tokens")


def bare(name: str) -> str:
    """A module's name without what wraps the decoder: `model.language_model.layers.0.x` is `layers.0.x`."""
    words = name.split(".")
    while len(words) > 1 and words[0] in PREFIXES:
        words.pop(0)
    return ".".join(words)


def ancestors(module: str) -> Iterator[str]:
    """The module and what holds it, innermost first."""
    while module:
        yield module
        module = module.rpartition(".")[0]


class ModuleNames:
    """A list of names; asks whether a module, or what holds it, is on it."""

    def __init__(self, names: Sequence[str], file: str) -> None:
        self.plain: set[str] = set()
        self.alike: list[re.Pattern[str]] = []
        """Patterns without a digit: they treat all layers alike, so one answer serves them all."""
        self.numbered: list[re.Pattern[str]] = []
        self.of_layer: dict[int, list[re.Pattern[str]]] = {}
        """Globs that name one layer: there may be hundreds, and a module meets only its layer's."""
        self.answers: dict[str, bool] = {}
        for name in names:
            self._add(name, file)
        if len(self.alike) > MOST_ALIKE or len(self.numbered) > MOST_NUMBERED:
            raise UsageError(
                f"{file} lists {len(self.alike) + len(self.numbered)} patterns of modules that are not quantized",
                hint=f"at most {MOST_ALIKE} are read, {MOST_NUMBERED} of them with numbers; write the modules out",
            )

    def _add(self, name: str, file: str) -> None:
        if not name.startswith("re:") and not WILD.search(name):
            self.plain.add(bare(name))
            return
        glob = "" if name.startswith("re:") else bare(name)
        if glob and not _may_match(glob):
            return
        pattern = re.compile(fnmatch.translate(glob)) if glob else _compiled(name[3:], file)
        layer = LAYER.match(glob)
        if layer and not WILD.search(layer[0]):
            self.of_layer.setdefault(int(layer[1]), []).append(pattern)
        elif any(char.isdigit() for char in name):
            self.numbered.append(pattern)
        else:
            self.alike.append(pattern)

    def __contains__(self, module: str) -> bool:
        words = module.split(".")
        runs = (".".join(words[begin:end]) for begin in range(len(words)) for end in range(begin + 1, len(words) + 1))
        if any(run in self.plain for run in runs):
            return True
        masked = DIGIT.sub("0", module)
        if masked not in self.answers:
            self.answers[masked] = _is_held(masked, self.alike)
        layer = LAYER.match(module)
        own = self.of_layer.get(int(layer[1]), []) if layer else []
        return self.answers[masked] or _is_held(module, [*self.numbered, *own])


def _is_held(module: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    return any(pattern.match(holder) for pattern in patterns for holder in ancestors(module))


def _may_match(glob: str) -> bool:
    """Whether a module of a decoder can begin as the glob does: most lists name encoders too."""
    begin = WILD.split(glob)[0]
    return any(root.startswith(begin) or begin.startswith(root) for root in ROOTS)


def _compiled(pattern: str, file: str) -> re.Pattern[str]:
    """A foreign pattern, refused where matching could take for ever: a repeated group, or many repetitions."""
    quantifiers = len(re.findall(r"(?<!\\)[*+{]", pattern))
    if len(pattern) > LONGEST_PATTERN or quantifiers > MOST_QUANTIFIERS or re.search(r"\)[*+{]", pattern):
        raise _not_understood(pattern, file, "too long or too deep")
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise _not_understood(pattern, file, str(error)) from error


def _not_understood(pattern: str, file: str, why: str) -> UsageError:
    return UsageError(
        f"{file}: the pattern {pattern[:80]!r} of the modules that are not quantized is not understood: {why}",
        hint="write the modules out, or remove the pattern and say what is quantized by hand",
    )
