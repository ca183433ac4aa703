"""Whether a record proves itself: the chain, the payloads, the runs and their files. Reads only, repairs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from assay.records.event import GENESIS, EventKind, event_hash
from assay.records.views import Verification
from assay.store.canonical import recorded_spec_hash
from assay.store.evidence import Evidence
from assay.store.files import CampaignFolder
from assay.store.payloads import parse_payload
from assay.store.reader import RawEvent, read_raw


class Checked(NamedTuple):
    """An event whose kind is known, with the parts of its payload that are sound."""

    seq: int
    kind: EventKind
    parts: dict[str, Any]


def verify(folder: Path) -> Verification:
    """Check a campaign's record against itself and against the files of its runs.

    What it cannot see is an end that was cut off cleanly together with the run folders: compare `last_hash` with
    one that was noted elsewhere (the report prints it).

    Raises:
        RecordError: there is no record, or its database is damaged beyond reading.
    """
    files = CampaignFolder(folder)
    rows = read_raw(files.database)
    problems = [] if rows else [f"{files.database}: expected events, found none"]
    problems += chain_problems(rows)
    checked: list[Checked] = []
    for row in rows:
        event, found = _check_content(row)
        checked += [event] if event else []
        problems += [f"event {row.seq} ({row.kind}): {problem}" for problem in found]
    problems += _order_problems(checked)
    evidence = Evidence(files)
    for event in checked:
        problems += evidence.check(event.seq, event.kind, event.parts)
    problems += evidence.strays()
    return Verification(
        ok=not problems,
        num_events=len(rows),
        num_runs=evidence.num_runs,
        last_hash=rows[-1].hash if rows else GENESIS,
        problems=problems,
    )


def chain_problems(rows: Sequence[RawEvent]) -> list[str]:
    """Gaps in the numbers, links that do not fit, contents that do not have their hash."""
    return list(_chain_problems(rows))


def _chain_problems(rows: Sequence[RawEvent]) -> Iterator[str]:
    expected_seq, expected_previous = 1, GENESIS
    for row in rows:
        if row.seq != expected_seq:
            yield f"event {row.seq}: expected event {expected_seq} here; {_missing(expected_seq, row.seq)}"
        elif row.previous_hash != expected_previous:
            yield (
                f"event {row.seq} ({row.kind}): expected previous hash {expected_previous}, found {row.previous_hash}: "
                "the event before it was replaced"
            )
        actual = _hash_of(row)
        if actual != row.hash:
            yield (
                f"event {row.seq} ({row.kind}): expected hash {actual} for its content, found {row.hash}: "
                "it was changed after it was written"
            )
        expected_seq, expected_previous = row.seq + 1, row.hash


def _missing(expected: int, found: int) -> str:
    if found < expected:
        return "its number is out of place"
    return f"event {expected} is missing" if found == expected + 1 else f"events {expected} to {found - 1} are missing"


def _hash_of(row: RawEvent) -> str:
    """The hash that the content of a row should have; unreadable content has none that fits."""
    try:
        return event_hash(row.seq, row.at_ns, row.kind, json.loads(row.payload), row.previous_hash)
    except (ValueError, TypeError, RecursionError):
        return "(none: unreadable)"


def _check_content(row: RawEvent) -> tuple[Checked | None, list[str]]:
    try:
        payload = json.loads(row.payload)
    except (ValueError, RecursionError) as error:
        return None, [f"expected JSON as payload, found {row.payload[:60]!r} ({error})"]
    if row.kind not in list(EventKind):
        return None, [f"expected a known kind of event, found {row.kind!r}"]
    if not isinstance(payload, dict):
        return None, [f"expected an object as payload, found {row.payload[:60]!r}"]
    kind = EventKind(row.kind)
    parts, problems = parse_payload(kind, payload)
    # The hash is over the values, so spaces or repeated keys in the text would escape it.
    if not problems and json.dumps(payload, sort_keys=True, separators=(",", ":")) != row.payload:
        problems.append("expected canonical JSON, found the same values in another spelling")
    if kind is EventKind.CAMPAIGN_CREATED and {"spec", "spec_hash"} <= parts.keys():
        expected = recorded_spec_hash(payload["spec"])
        if expected != parts["spec_hash"]:
            problems.append(f"expected spec_hash {expected}, found {parts['spec_hash']}")
    return Checked(row.seq, kind, parts), problems


def _order_problems(events: Sequence[Checked]) -> list[str]:
    problems = []
    for position, event in enumerate(events):
        first, created = position == 0, event.kind is EventKind.CAMPAIGN_CREATED
        if first != created:
            expected = f"{EventKind.CAMPAIGN_CREATED} as the first event" if first else "one creation only, the first"
            problems.append(f"event {event.seq} ({event.kind}): expected {expected}, found {event.kind}")
    return problems
