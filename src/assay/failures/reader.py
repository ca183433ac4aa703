"""Reads one file of a log, line by line: how far the server had come, and what the rules find."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from assay.failures.around import Around
from assay.failures.found import Found, Native, Said
from assay.failures.ignored import Ignored
from assay.failures.infer import infer, infer_cut, infer_raising
from assay.failures.lines import COMMENT, HEADER, LONGEST, NATIVE_FRAME, Line, plain, read, uncoloured
from assay.failures.nearest import Nearest
from assay.failures.progress import Progress
from assay.failures.rules import DEFAULT_LEVELS, Match, Rule, load_rules, stronger
from assay.failures.service import Service
from assay.failures.stages import first, load_stages
from assay.failures.tracebacks import EXCEPTION, Tracebacks
from assay.failures.untold import CHAINED, Untold
from assay.failures.words import Words, shortened

MOST_OF_A_RULE = 2
"""Matches kept of one rule in one life of the server; the first counts, the second is a reserve."""
MOST_COMMENTS = 20
MOST_NATIVES = 64
UNDERLINED = re.compile(r"(?:^|[\s\]|])[\s^~]*$")
"""What may follow the source line of a call: nothing, or the marks beneath it."""
BARE = re.compile(r"^[\w.]{1,300}(?:\(\w{0,60}\))?:?\s*$")
"""An exception without words."""
BATCH = 256
"""Lines of which the words that none of them holds are sorted out at once."""


class Reader:
    """The state of reading one file; what it finds stays after it."""

    def __init__(self, order: int, name: str, engine: str | None) -> None:
        self.order, self.name, self.engine = order, name, engine
        self.rules, self.words = load_rules(), Words()
        self.progress, self.service = Progress(), Service()
        self.tracebacks, self.around, self.untold = Tracebacks(), Around(), Untold()
        self.nearest, self.ignored = Nearest(), Ignored()
        self.number = 0
        self.found: list[Found] = []
        self.comments: list[str] = []
        self.natives: list[Native] = []
        self._counts: dict[tuple[int, str], int] = {}
        self._asserted: dict[str, Match | None] = {}
        """By process, the rule that the source line of its last assertion fits: an exception without words means it."""
        self._is_after_call = False
        self._in_source: set[str] = set()
        """Processes in whose tracebacks the source of a call fits a rule for messages."""

    def read(self, lines: Iterable[str]) -> None:
        """All lines; they come as they are, longer ones may be cut."""
        rest = iter(lines)
        while batch := [uncoloured(text) for text in islice(rest, BATCH)]:
            for text, shape in zip(batch, self.words.prepare(batch), strict=True):
                self._take(text, shape)
        self._end()

    def _end(self) -> None:
        """A log that ends in a traceback: what was called last may tell."""
        self.untold.end(self.tracebacks.marker)
        if self.nearest.source is None:
            return
        source, recent = self.nearest.source.line, self.around.recent()
        is_last = any(each.number == source.number for each in recent)
        if is_last and all(UNDERLINED.search(each.text) for each in recent if each.number > source.number):
            frames = self.tracebacks.of(source.who)
            if match := infer_raising(source.body, frames) or infer_cut(frames):
                self._keep(source, *match, is_source=True)

    def last(self) -> Said | None:
        """The last line that is not empty, if it is one of the last three."""
        recent = self.around.recent()
        told = next((each for each in reversed(recent) if each.text.strip()), None)
        return self._said(read(told.number, told.text)) if told else None

    def _take(self, text: str, shape: str) -> None:
        self.number += 1
        self.around.arrive(self.number, text)
        self.service.hear(text)
        self._is_after_call = self.tracebacks.awaits_source and self._note_source(read(self.number, plain(text)))
        if not self.words.is_boring(shape):
            for piece in text.rstrip("\r\n").split("\r") if "\r" in text else (text,):
                self._look_at(piece, shape)
        self.around.passed(self.number, text)

    def _note_source(self, line: Line) -> bool:
        is_source, is_indented = self.tracebacks.source(line)
        if is_indented:
            self.nearest.source = self._said(line)
        return is_source

    def _look_at(self, text: str, shape: str) -> None:
        lower = shortened(text).lower()
        words = self.words.of(lower)
        if not words and not text.startswith("#"):
            self.words.forget(shape)
        elif comment := COMMENT.match(text):
            self._note_comment(comment["text"] or "", text)
        else:
            self._look_into(read(self.number, plain(text)), lower, words, shape)

    def _look_into(self, line: Line, lower: str, words: Sequence[str], shape: str) -> None:
        if not line.body.strip():
            return
        if self.words.are_native(words) and NATIVE_FRAME.match(line.body):
            self._note_native(line)
            return
        is_turn = self._follow(line, lower)
        if not is_turn and not self.words.are_telling(words):
            self.words.forget(shape)
        elif not self.tracebacks.take(line) and not NATIVE_FRAME.match(line.body):
            self._match(line, words)

    def _note_native(self, line: Line) -> None:
        marker = first(load_stages().natives, line.body) if len(self.natives) < MOST_NATIVES else None
        if marker:
            self.natives.append(Native(self.name, line.number, marker))

    def _note_comment(self, words: str, text: str) -> None:
        if not HEADER.match(text) and len(self.comments) < MOST_COMMENTS:
            self.comments.append(words[:LONGEST])

    def _follow(self, line: Line, lower: str) -> bool:
        """How far it has come; matches that it survived are no failure. True: it started, or became ready."""
        if self.tracebacks.begin(line, is_ignored=self.ignored.awaits(line.who)):
            self.untold.begins(line.who, line.number)
        elif CHAINED.match(line.body):
            self.untold.chains(line.who)
        progress = self.progress
        if not progress.is_told_by(lower):
            return False
        is_start, is_ready = progress.is_start(line), progress.is_ready(line)
        if is_start or is_ready:
            self.service.begin()
        elif self.service.may_stop and progress.is_stop(line):
            self.service.stop = self._said(line)
        if is_start and any(each.life == progress.life for each in self.found):
            progress.begin_again()
            self.words.clear()
        if is_ready:
            self.found = [each for each in self.found if each.life != progress.life]
            self._counts.clear()
        progress.follow(line)
        return is_start or is_ready

    def _match(self, line: Line, words: Sequence[str]) -> None:
        if self.ignored.holds(line):
            return
        if EXCEPTION.match(line.body):
            self.tracebacks.adopt(line)
            self.untold.ends(line.who, self.tracebacks.marker(line.who))
            self._forget_sources(line)
        is_source = self._is_after_call or self.tracebacks.is_source(line)
        best = self.rules.best(line, words, self.engine)
        if is_source and "assert " in line.body:
            if self.tracebacks.keep_assertion(line, self.around.before()):
                self._asserted[line.who] = best
        elif line.level in DEFAULT_LEVELS and best is None:
            asserted = self.tracebacks.assertion(line)
            inferred = infer(line.body, self.tracebacks.of(line.who), asserted[0].body if asserted else "")
            best = stronger(self._asserted.get(line.who) if asserted else None, inferred)
        if best:
            self._keep(line, *best, is_source=is_source)
        if (best is None or best[0].strength == "frame") and not is_source and line.level in DEFAULT_LEVELS:
            self._say(line)

    def _forget_sources(self, line: Line) -> None:
        """Where a traceback ends in words, these tell, no longer a message's rule that a call's source fits."""
        if line.who not in self._in_source or BARE.match(line.body):
            return
        self._in_source.discard(line.who)
        life = self.progress.life
        self.found = [
            each
            for each in self.found
            if each.strength == each.rule.strength or (each.life, each.line.who) != (life, line.who)
        ]

    def _keep(self, line: Line, rule: Rule, values: dict[str, str], *, is_source: bool) -> None:
        if self.service.stop:
            return
        is_warning = rule.strength == "echo" and line.level not in DEFAULT_LEVELS
        self.service.has_complained = self.service.has_complained or not is_warning
        key = (self.progress.life, rule.id)
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] > MOST_OF_A_RULE:
            return
        order, who = (self.order, line.number), line.who
        line, around = self.tracebacks.assertion(line) or (line, self.around.before())
        weak = is_source and rule.strength not in {"frame", "consequence"}
        if weak:
            self._in_source.add(who)
        found = Found(
            rule=rule,
            strength="frame" if weak else rule.strength,
            line=line,
            values=values,
            file=self.name,
            order=order,
            life=self.progress.life,
            frames=self.tracebacks.marker(who),
            milestone=self.progress.milestone,
            is_source=is_source,
            around=around,
        )
        self.found.append(found)
        if rule.strength != "consequence":
            self.untold.add(who, found)

    def _say(self, line: Line) -> None:
        if not self.service.stop and self.nearest.hear(line, self._said):
            self.service.has_complained = True

    def _said(self, line: Line) -> Said:
        functions = tuple(self.tracebacks.of(line.who))
        return Said(line, self.name, self.progress.milestone, functions, self.around.before())
