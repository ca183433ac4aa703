"""The root cause among what the logs hold: the strongest statement, and of equal ones the earliest.

A process that dies takes others with it, and they write more than it did. So a message that states a cause outranks
one that follows from many causes, wherever it stands; among equals the first counts, because exceptions that wrap
others, the API server's copies of a worker's traceback, and the shutdown come after it. The exit status decides where
the text is silent. Where nothing tells, the cause is unknown, and the line that comes nearest is quoted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.failures.exit_status import cause_of, from_signal, is_end, signal_name
from assay.failures.found import Found, Said
from assay.failures.placing import of_stack, stage_of, which_oom
from assay.failures.root import root_of
from assay.failures.rules import OOM, STRENGTHS, Strength, filled, implication, load_meanings
from assay.failures.scan import Scan
from assay.records.failure import Cause, Certainty, Explanation, LogLine, Stage

CLAIMS = frozenset({"root", "general", "broad", "symptom"})
"""Stronger than what an exit status tells."""
LONGEST_QUOTE = 600
CUT = (
    "It may serve still, or something ended it from outside: give its exit status (--exit-code), and all of its output."
)


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
    notes = [f"asked for, and not in force: {each[:LONGEST_QUOTE]}" for each in scan.service.not_applied]
    return _explained(scan, exit_code, least).model_copy(update={"notes": notes})


def _explained(scan: Scan, exit_code: int | None, least: Strength) -> Explanation:
    causes = [each for each in scan.found if STRENGTHS.index(each.strength) <= STRENGTHS.index(least)]
    chosen = root_of(causes)
    by_signal = from_signal(exit_code)
    stop = None if scan.service.has_complained else scan.service.stop
    if stop and is_end(exit_code) and (chosen is None or chosen.strength == "echo"):
        return _of_stop(scan, stop, exit_code)
    if by_signal and (chosen is None or chosen.strength not in CLAIMS):
        return _of_signal(scan, by_signal, exit_code)
    if chosen is None:
        return _unknown(scan, exit_code)
    return _of_match(scan, chosen, exit_code)


def _of_match(scan: Scan, found: Found, exit_code: int | None) -> Explanation:
    stage, marker = stage_of(scan, found)
    told: str = found.rule.cause_at.get(stage, found.rule.cause)
    cause = which_oom(stage, marker, found) if told == OOM else Cause(told)
    meaning = load_meanings()[cause]
    quoted: Found | Said = found
    if found.strength == "frame" and found.rule.strength == "frame" and scan.nearest.exception:
        quoted = scan.nearest.exception
    implies = found.rule.implies if found.rule.implies is not None else meaning.implies
    unplaced = meaning.unplaced if told == OOM and stage == "unknown" else {}
    is_guessed = found.rule.inferred or found.strength in {"frame", "echo"} or bool(unplaced)
    certainty: Certainty = "inferred" if is_guessed else "stated"
    return Explanation(
        stage=stage,
        cause=cause,
        certainty=certainty,
        **_quotation(quoted),
        meaning=unplaced.get("words", meaning.words),
        remedy=filled(unplaced.get("remedy") or found.rule.remedy or meaning.remedy, found.values),
        implies=[implication(each, found.values) for each in implies],
        rule=found.rule.id,
        exit_code=exit_code,
        num_lines=scan.num_lines,
    )


def _quotation(quoted: Found | Said) -> dict[str, Any]:
    """The fields of an explanation that quote a line."""
    return {
        "quote": quoted.line.text.strip()[:LONGEST_QUOTE],
        "line": quoted.line.number,
        "file": quoted.file,
        "around": _with_quote(quoted.around, quoted.line.number, quoted.line.text),
    }


def _with_quote(around: list[LogLine], number: int, text: str) -> list[LogLine]:
    """The lines in order, the quoted one among them."""
    lines = {each.number: each for each in around if abs(each.number - number) <= 3}  # noqa: PLR2004 - three lines around
    lines[number] = LogLine(number=number, text=text)
    return [lines[each] for each in sorted(lines)]


def _of_signal(scan: Scan, number: int, exit_code: int | None) -> Explanation:
    """What the exit status alone tells."""
    cause = cause_of(number)
    told = _unknown(scan, exit_code, or_last=True)
    meaning = load_meanings()[cause]
    values = {"signal": signal_name(number)}
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


def _of_stop(scan: Scan, stop: Said, exit_code: int | None) -> Explanation:
    """It served and was stopped: nothing failed."""
    meaning = load_meanings()[Cause.NONE]
    return Explanation(
        stage="shutdown",
        cause=Cause.NONE,
        certainty="stated",
        **_quotation(stop),
        meaning=f"{meaning.words}: it started, {_served(scan)} and was stopped",
        remedy=meaning.remedy,
        exit_code=exit_code,
        num_lines=scan.num_lines,
    )


def _served(scan: Scan) -> str:
    count = scan.service.num_answered
    return f"served {count:,} request{'' if count == 1 else 's'}" if count else "was ready"


def _unknown(scan: Scan, exit_code: int | None, *, or_last: bool = False) -> Explanation:
    """No cause; the nearest line: a consequence, an exception that no rule knows, an error, where asked the last."""
    meaning = load_meanings()[Cause.UNKNOWN]
    said, stage = _nearest(scan)
    said = said or (scan.last if or_last else None)
    stage = stage or ("under-load" if scan.has_served else scan.last.milestone if scan.last else None)
    if stage is None and (stack := of_stack(scan, None)):
        stage = stack.stage
    is_cut = said is None and scan.has_served
    return Explanation(
        stage=stage or "unknown",
        cause=Cause.UNKNOWN,
        **(_quotation(said) if said else {}),
        meaning=f"{meaning.words}: it {_served(scan)}, and ends with neither an error nor a shutdown"
        if is_cut
        else meaning.words,
        remedy=CUT if is_cut else meaning.remedy,
        exit_code=exit_code,
        num_lines=scan.num_lines,
    )


def _nearest(scan: Scan) -> tuple[Said | Found | None, Stage | None]:
    consequences = [each for each in scan.found if each.strength == "consequence"]
    consequence = min(consequences, key=lambda each: (each.line.level == "info", each.is_source), default=None)
    near = scan.nearest
    said = near.exception or consequence or near.error or near.source
    if said is None:
        return None, None
    if consequence:
        return said, stage_of(scan, consequence)[0]
    marker = said.frames or scan.frames
    return said, marker.stage if marker else said.milestone
