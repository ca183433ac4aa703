"""One pass over a log: what rules match, how far the server had come by then, and the lines around.

Memory does not grow with the log: a rule keeps its first matches only, a process the functions of its last traceback.
Lines that differ only in digits from one without any word of a rule are passed over at once.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from assay.failures.lines import COMMENT, HEADER, LONGEST, TAIL, Line, plain, read
from assay.failures.rules import STRENGTHS, Rule, Rules, Strength, load_rules
from assay.failures.stages import FRAME, TRACEBACK, Marker, Stages, first, load_stages, of_frames
from assay.records.failure import LogLine, Stage

MOST_OF_A_RULE = 2
"""Matches kept of one rule in one life of the server; the first counts, the second is a reserve."""
MOST_FRAMES = 64
MOST_PROCESSES = 128
MOST_SHAPES = 50_000
LONGEST_SHAPE = 400
MOST_COMMENTS = 20
NUM_AROUND = 3
BATCH = 256
"""Lines of which the words that none of them holds are sorted out at once."""
NO_DIGITS = str.maketrans("", "", "0123456789")
OWN_WORDS = ('file "', "traceback (most", "assert", "error", "exception", "what():", "fatal")
"""Lines that are looked at whatever the rules say: tracebacks, and what is quoted where no rule matches."""
EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{1,60}(?:Error|Exception|Unsupported|Timeout|OutOfResources)\b(?=:|\s|$)"
)
BARE_ASSERTION = re.compile(r"^AssertionError:?\s*$")
SOURCE = re.compile(r"^ {4,}\S")


@dataclass(slots=True)
class Found:
    """A match of a rule, and what was known when it came."""

    rule: Rule
    strength: Strength
    """The rule's; `frame` for a message that stands in the source line of a traceback."""
    line: Line
    """The line to quote."""
    values: dict[str, str]
    file: str
    order: tuple[int, int]
    """File and line: the earlier comes first."""
    life: int
    """Counts the starts of the server in this log."""
    frames: Marker | None
    milestone: Stage | None
    around: list[LogLine] = field(default_factory=list)


@dataclass(slots=True)
class Said:
    """A line that tells of an error no rule knows."""

    line: Line
    file: str
    milestone: Stage | None
    frames: Marker | None
    around: list[LogLine]


class Scan:
    """What the logs of one failure hold; files are read one after another."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.exception: Said | None = None
        """The last exception of the first traceback, where no rule matches it."""
        self.error: Said | None = None
        """The first line at the level of an error, likewise."""
        self.comments: list[str] = []
        self.has_served = False
        self.num_lines = 0
        self.source: Said | None = None
        """The source line of the innermost call of the last traceback: all there is where a log was cut in it."""
        self.frames: Marker | None = None
        """What the functions of all last tracebacks together tell."""
        self.last: Said | None = None
        """The last line that is not empty, of the last file that has one."""

    def read(self, order: int, name: str, lines: Iterable[str]) -> None:
        """Read one file; its lines come as they are, longer ones may be cut."""
        reader = _Reader(self, order, name)
        rest = iter(lines)
        while batch := list(islice(rest, BATCH)):
            reader.take_all(batch)
        self.num_lines += reader.number
        self.last = reader.last() or self.last
        self.source = reader.source or self.source
        self.frames = self.frames or of_frames([each for frames in reader.frames.values() for each in frames])
        self.has_served = self.has_served or reader.milestone == "under-load"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - TAIL]} {text[-TAIL:]}"


class _Reader:
    """The state of reading one file."""

    def __init__(self, scan: Scan, order: int, name: str) -> None:
        self.scan, self.order, self.name = scan, order, name
        self.rules: Rules = load_rules()
        self.stages: Stages = load_stages()
        self.all_words = tuple(dict.fromkeys((*self.rules.by_word, *self.stages.milestone_has, *OWN_WORDS)))
        self.words = self.all_words
        self.number = 0
        self.life = 0
        self.milestone: Stage | None = None
        self.boring: set[str] = set()
        self.frames: dict[str, deque[str]] = {}
        self.asserted: dict[str, tuple[Line, list[LogLine]]] = {}
        self.counts: dict[tuple[int, str], int] = {}
        self.recent: deque[tuple[int, str]] = deque(maxlen=NUM_AROUND)
        self.waiting: list[list[LogLine]] = []
        self.source: Said | None = None
        self.is_after_call = False
        self.is_flat = False
        """The tracebacks lost their indentation on the way."""
        self.called: str | None = None
        """Who wrote the line before, where that was a function of a traceback."""

    def take_all(self, batch: list[str]) -> None:
        """Lines in a row."""
        shapes = [text.translate(NO_DIGITS) for text in batch]
        fresh = {shape: text for shape, text in zip(shapes, batch, strict=True) if shape not in self.boring}
        together = "\n".join([_shortened(text) for text in fresh.values()]).lower()
        self.words = tuple([word for word in self.all_words if word in together]) if together else ()
        for text, shape in zip(batch, shapes, strict=True):
            self._take(text, shape)

    def _take(self, text: str, shape: str) -> None:
        self.number += 1
        if self.waiting:
            self._append_after(text)
        self.is_after_call = self.called is not None and self._source(text)
        if shape not in self.boring:
            for piece in text.rstrip("\r\n").split("\r") if "\r" in text else (text,):
                self._look_at(piece, shape)
        self.recent.append((self.number, text))

    def _look_at(self, text: str, shape: str) -> None:
        lower = _shortened(text).lower()
        hits = [word for word in self.words if word in lower]
        if not hits and not text.startswith("#"):
            self._forget(shape)
            return
        if comment := COMMENT.match(text):
            self._comment(comment["text"] or "", text)
            return
        line = read(self.number, plain(text))
        if not line.body.strip():
            return
        is_turn = self._follow(line, lower)
        if not is_turn and not any(word in self.rules.by_word or word in OWN_WORDS for word in hits):
            self._forget(shape)
            return
        if frame := FRAME.match(line.body):
            self._frames(line.who).append(f'{frame["path"]}", in {frame["name"]}')
            self.called, self.is_flat = line.who, not line.body.startswith(" ")
        else:
            self._match(line, hits)

    def _forget(self, shape: str) -> None:
        if len(shape) <= LONGEST_SHAPE:
            if len(self.boring) >= MOST_SHAPES:
                self.boring.clear()
            self.boring.add(shape)

    def _comment(self, words: str, text: str) -> None:
        if not HEADER.match(text) and len(self.scan.comments) < MOST_COMMENTS:
            self.scan.comments.append(words[:LONGEST])

    def _follow(self, line: Line, lower: str) -> bool:
        """How far it has come; matches that it survived are no failure. True: it started, or became ready."""
        if TRACEBACK in line.body:
            self._frames(line.who).clear()
        if not any(word in lower for word in self.stages.milestone_has):
            return False
        found = self.scan.found
        is_start, is_ready = bool(self.stages.start.search(line.body)), bool(self.stages.ready.search(line.body))
        if is_start and any(each.life == self.life for each in found):
            self.life += 1
            self.milestone = None
            self.boring.clear()
        if is_ready:
            self.scan.found = [each for each in found if each.life != self.life or each.order[0] != self.order]
            self.counts.clear()
        if self.milestone != "under-load" and (marker := first(self.stages.milestones, line.text)):
            self.milestone = marker.stage
            self.scan.has_served = self.scan.has_served or marker.stage == "under-load"
        return is_start or is_ready

    def _match(self, line: Line, hits: list[str]) -> None:
        is_source = self.is_after_call or (bool(SOURCE.match(line.body)) and bool(self.frames.get(line.who)))
        if is_source and "assert " in line.body:
            self.asserted[line.who] = line, self._around()
        best: tuple[Rule, dict[str, str]] | None = None
        for index in sorted({index for word in hits for index in self.rules.by_word.get(word, ())}):
            rule = self.rules.rules[index]
            if best and STRENGTHS.index(rule.strength) >= STRENGTHS.index(best[0].strength):
                continue
            if line.level in rule.levels and (match := rule.pattern.search(line.text if rule.whole else line.body)):
                best = rule, {name: value for name, value in match.groupdict().items() if value}
        if best:
            self._keep(line, *best, is_source=is_source)
        elif not is_source and line.level in {"none", "error"}:
            self._say(line)

    def _keep(self, line: Line, rule: Rule, values: dict[str, str], *, is_source: bool) -> None:
        key = (self.life, rule.id)
        self.counts[key] = self.counts.get(key, 0) + 1
        if self.counts[key] > MOST_OF_A_RULE:
            return
        order, around = (self.order, line.number), self._around()
        if BARE_ASSERTION.match(line.body) and line.who in self.asserted:
            line, around = self.asserted[line.who]
        weak = is_source and rule.strength not in {"frame", "consequence"}
        kept = Found(
            rule=rule,
            strength="frame" if weak else rule.strength,
            line=line,
            values=values,
            file=self.name,
            order=order,
            life=self.life,
            frames=of_frames(self.frames.get(line.who, ())),
            milestone=self.milestone,
            around=around,
        )
        self.scan.found.append(kept)

    def _source(self, text: str) -> bool:
        """The line after a function of a traceback: its source, unless another process wrote between."""
        line = read(self.number, plain(text))
        called, self.called = self.called, None
        if line.who != called or FRAME.match(line.body) or EXCEPTION.match(line.body):
            return False
        is_indented = bool(SOURCE.match(line.body))
        if is_indented:
            self.source = Said(line, self.name, self.milestone, None, self._around())
        return is_indented or self.is_flat

    def _say(self, line: Line) -> None:
        is_exception = EXCEPTION.match(line.body)
        if (is_exception and self.scan.exception is None) or (line.level == "error" and self.scan.error is None):
            marker = of_frames(self.frames.get(line.who, ()))
            said = Said(line, self.name, self.milestone, marker, self._around())
            if is_exception and self.scan.exception is None:
                self.scan.exception = said
            elif self.scan.error is None:
                self.scan.error = said

    def last(self) -> Said | None:
        """The last line that is not empty, if it is one of the last three."""
        around = [LogLine(number=number, text=plain(text)) for number, text in self.recent]
        told = next((each for each in reversed(around) if each.text.strip()), None)
        if told is None:
            return None
        return Said(read(told.number, told.text), self.name, self.milestone, None, around)

    def _frames(self, who: str) -> deque[str]:
        if who not in self.frames and len(self.frames) >= MOST_PROCESSES:
            self.frames.pop(next(iter(self.frames)))
        return self.frames.setdefault(who, deque(maxlen=MOST_FRAMES))

    def _around(self) -> list[LogLine]:
        around = [LogLine(number=number, text=plain(text)) for number, text in self.recent]
        self.waiting.append(around)
        return around

    def _append_after(self, text: str) -> None:
        after = LogLine(number=self.number, text=plain(text))
        for around in self.waiting:
            around.append(after)
        self.waiting = [around for around in self.waiting if around[-1].number - around[0].number < 2 * NUM_AROUND]
