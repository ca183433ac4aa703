"""The root cause among what the logs hold: the strongest statement, and of equal ones the earliest.

A process that dies takes others with it, and they write more than it did. So a message that states a cause outranks
one that follows from many causes, wherever it stands; among equals the first counts, because exceptions that wrap
others, the API server's copies of a worker's traceback, and the shutdown come after it. The exit status decides where
the text is silent. Where nothing tells, the cause is unknown, and the line that comes nearest is quoted.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.failures.found import Found, Said
from assay.failures.rules import OOM, STRENGTHS, Strength, filled, implication, load_meanings
from assay.failures.scan import Scan
from assay.failures.stages import Marker, first, load_stages
from assay.records.failure import Cause, Certainty, Explanation, LogLine, Stage

SHELL_SIGNAL = 128
"""A shell reports a child that signal n ended as 128 + n."""
FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
STATING = frozenset({"root", "general", "broad"})
CLAIMS = frozenset({"root", "general", "broad", "symptom"})
"""Stronger than what an exit status tells."""
LONGEST_QUOTE = 600


@dataclass(frozen=True, slots=True)
class Log:
    """A log: its name, and its lines as they are read."""

    name: str
    lines: Iterable[str]


def explain(
    logs: Sequence[Log], exit_code: int | None = None, *, engine: str | None = None, least: Strength = "frame"
) -> Explanation:
    """Find stage, cause and the line to quote. Never raises.

    Args:
        logs: of one failure, for example stdout and stderr; each is read once, in this order.
        exit_code: of the server; negative or above 128: ended by that signal; None: not known.
        engine: name of its adapter, for rules that count for one engine only; None: not known.
        least: weaker matches do not name a cause.
    """
    scan = Scan(engine)
    for order, log in enumerate(logs):
        scan.read(order, log.name, log.lines)
    causes = [each for each in scan.found if STRENGTHS.index(each.strength) <= STRENGTHS.index(least)]
    chosen = _root(causes)
    by_signal = _from_signal(exit_code)
    if by_signal and (chosen is None or chosen.strength not in CLAIMS):
        return _of_signal(scan, by_signal, exit_code)
    if chosen is None:
        return _unknown(scan, exit_code)
    return _of_match(scan, chosen, exit_code)


def _root(causes: list[Found]) -> Found | None:
    """Of the first life in which a cause is stated, else of all."""
    stated = min((each.life for each in causes if each.strength in STATING), default=None)
    candidates = causes if stated is None else [each for each in causes if each.life == stated]
    return min(candidates, key=lambda each: (STRENGTHS.index(each.strength), each.order), default=None)


def _of_match(scan: Scan, found: Found, exit_code: int | None) -> Explanation:
    stage, marker = _stage(scan, found)
    told: str = found.rule.cause_at.get(stage, found.rule.cause)
    cause = _which_oom(stage, marker, found) if told == OOM else Cause(told)
    meaning = load_meanings()[cause]
    quoted: Found | Said = found
    if found.strength == "frame" and found.rule.strength == "frame" and scan.exception:
        quoted = scan.exception
    implies = found.rule.implies if found.rule.implies is not None else meaning.implies
    certainty: Certainty = "inferred" if found.rule.inferred or found.strength in {"frame", "echo"} else "stated"
    return Explanation(
        stage=stage,
        cause=cause,
        certainty=certainty,
        quote=quoted.line.text.strip()[:LONGEST_QUOTE],
        line=quoted.line.number,
        file=quoted.file,
        around=_with_quote(quoted.around, quoted.line.number, quoted.line.text),
        meaning=meaning.words,
        remedy=filled(found.rule.remedy or meaning.remedy, found.values),
        implies=[implication(each, found.values) for each in implies],
        rule=found.rule.id,
        exit_code=exit_code,
        num_lines=scan.num_lines,
    )


def _stage(scan: Scan, found: Found) -> tuple[Stage, Marker | None]:
    """The rule's own; else what the line says, the traceback, what the log said before, and what stands beside it."""
    if found.rule.stage:
        return found.rule.stage, found.frames
    words, line = load_stages().words, found.line.body
    said = first((marker for marker in words if not marker.is_weak), line)
    frames = found.frames
    for marker in (said, None if frames and frames.is_weak else frames):
        if marker:
            return (marker.stage_of_oom if found.rule.cause == OOM else None) or marker.stage, marker
    if found.milestone and found.milestone != "load":
        return found.milestone, None
    if not frames and scan.frames and not scan.frames.is_weak:
        return scan.frames.stage, scan.frames
    if _says_that_it_served(scan, found):
        return "under-load", None
    weak = frames or first(words, line) or _of_comments(scan)
    if weak:
        return weak.stage, weak
    milestone = None if found.milestone == "load" and _is_before_the_engine(found) else found.milestone
    return milestone or _default_stage(found), None


def _says_that_it_served(scan: Scan, found: Found) -> bool:
    return scan.has_served or any(
        each.strength == "consequence" and each.rule.stage == "under-load" and each.life == found.life
        for each in scan.found
    )


def _of_comments(scan: Scan) -> Marker | None:
    noted = "\n".join(scan.comments)
    return first(load_stages().words, noted) or first(load_stages().frames, noted) if noted else None


def _default_stage(found: Found) -> Stage:
    """Where nothing tells: what fails in vLLM's API server fails before the engine is started."""
    cause = Cause.OOM_AT_LOAD if found.rule.cause == OOM else Cause(found.rule.cause)
    default = found.rule.default_stage or load_meanings()[cause].stage
    return "arguments" if default == "load" and _is_before_the_engine(found) else default


def _is_before_the_engine(found: Found) -> bool:
    return found.line.who.startswith("APIServer")


def _which_oom(stage: Stage, marker: Marker | None, found: Found) -> Cause:
    """At load, at capture, or under load."""
    if stage == "warm-up":
        pools = first((each for each in load_stages().words if each.oom), found.line.body)
        return (marker and marker.oom) or (pools and pools.oom) or Cause.OOM_AT_LOAD
    return {"graph-capture": Cause.OOM_AT_CAPTURE, "under-load": Cause.OOM_UNDER_LOAD}.get(stage, Cause.OOM_AT_LOAD)


def _with_quote(around: list[LogLine], number: int, text: str) -> list[LogLine]:
    """The lines in order, the quoted one among them."""
    lines = {each.number: each for each in around if abs(each.number - number) <= 3}  # noqa: PLR2004 - three lines around
    lines[number] = LogLine(number=number, text=text)
    return [lines[each] for each in sorted(lines)]


def _from_signal(exit_code: int | None) -> int | None:
    if exit_code is None or 0 <= exit_code <= SHELL_SIGNAL:
        return None
    return -exit_code if exit_code < 0 else exit_code - SHELL_SIGNAL


def _of_signal(scan: Scan, number: int, exit_code: int | None) -> Explanation:
    """What the exit status alone tells."""
    if number == signal.SIGILL:
        cause = Cause.ILLEGAL_INSTRUCTION
    else:
        cause = Cause.KILLED if number in FROM_OUTSIDE else Cause.CRASHED
    told = _unknown(scan, exit_code, or_last=True)
    meaning = load_meanings()[cause]
    values = {"signal": _signal_name(number)}
    default: Stage = meaning.stage if scan.num_lines else "unknown"  # without a log nobody knows when it came
    return told.model_copy(
        update={
            "cause": cause,
            "certainty": "inferred",
            "stage": told.stage if told.stage != "unknown" else default,
            "meaning": meaning.words,
            "remedy": filled(meaning.remedy, values),
            "implies": [implication(each, values) for each in meaning.implies],
        }
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _unknown(scan: Scan, exit_code: int | None, *, or_last: bool = False) -> Explanation:
    """No cause; the nearest line: a consequence, an exception that no rule knows, an error, where asked the last."""
    meaning = load_meanings()[Cause.UNKNOWN]
    said, stage = _nearest(scan)
    said = said or (scan.last if or_last else None)
    stage = stage or ("under-load" if scan.has_served else scan.last.milestone if scan.last else None)
    return Explanation(
        stage=stage or "unknown",
        cause=Cause.UNKNOWN,
        quote=said.line.text.strip()[:LONGEST_QUOTE] if said else None,
        line=said.line.number if said else None,
        file=said.file if said else None,
        around=_with_quote(said.around, said.line.number, said.line.text) if said else [],
        meaning=meaning.words,
        remedy=meaning.remedy,
        exit_code=exit_code,
        num_lines=scan.num_lines,
    )


def _nearest(scan: Scan) -> tuple[Said | Found | None, Stage | None]:
    consequences = [each for each in scan.found if each.strength == "consequence"]
    consequence = min(consequences, key=lambda each: each.line.level == "info", default=None)
    said = scan.exception or consequence or scan.error or scan.source
    if said is None:
        return None, None
    if consequence:
        return said, _stage(scan, consequence)[0]
    marker = said.frames or scan.frames
    return said, marker.stage if marker else said.milestone
