"""Which lines are worth a look: those with a word that a rule or a stage asks for.

Lines that differ only in digits from one without any such word are passed over at once, and the words that no line of a
batch holds are sorted out for all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.failures.lines import LONGEST, TAIL
from assay.failures.rules import load_rules
from assay.failures.stages import load_stages

MOST_SHAPES = 50_000
LONGEST_SHAPE = 400
NO_DIGITS = str.maketrans("", "", "0123456789")
OWN_WORDS = (
    'file "',
    ".py in ",
    ".py(",
    ", in ",
    ") in ",
    "(most recent call",
    "assert",
    "error",
    "exception",
    "what():",
    "fatal",
    "failed to ",
    "unable to ",
    "keyboardinterrupt",
)
"""Lines that are looked at whatever the rules say: tracebacks, and what is quoted where no rule matches."""


class Words:
    """The words of all rules and stages, and the shapes of lines that hold none."""

    def __init__(self) -> None:
        self._by_word, self._native = load_rules().by_word, load_stages().native_has
        self._all = tuple(dict.fromkeys((*self._by_word, *load_stages().milestone_has, *self._native, *OWN_WORDS)))
        self._in_batch = self._all
        self._boring: set[str] = set()

    def prepare(self, batch: Sequence[str]) -> list[str]:
        """Look at lines together; return their shapes."""
        shapes = [text.translate(NO_DIGITS) for text in batch]
        fresh = {shape: text for shape, text in zip(shapes, batch, strict=True) if shape not in self._boring}
        together = "\n".join([shortened(text) for text in fresh.values()]).lower()
        self._in_batch = tuple([word for word in self._all if word in together]) if together else ()
        return shapes

    def is_boring(self, shape: str) -> bool:
        """Whether a line of this shape was looked at in vain."""
        return shape in self._boring

    def forget(self, shape: str) -> None:
        """Lines of this shape say nothing."""
        if len(shape) <= LONGEST_SHAPE:
            if len(self._boring) >= MOST_SHAPES:
                self._boring.clear()
            self._boring.add(shape)

    def clear(self) -> None:
        """What said nothing in one life of the server is looked at again in the next."""
        self._boring.clear()

    def of(self, lower: str) -> list[str]:
        """The words of a line in lower case."""
        return [word for word in self._in_batch if word in lower]

    def are_telling(self, words: Sequence[str]) -> bool:
        """Whether a rule asks for one of the words, or it shows an error."""
        return any(word in self._by_word or word in OWN_WORDS for word in words)

    def are_native(self, words: Sequence[str]) -> bool:
        """Whether a function on a native stack may be named, of those that tell a stage."""
        return any(word in self._native for word in words)


def shortened(text: str) -> str:
    """The first and the last part of a long line."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - TAIL]} {text[-TAIL:]}"
