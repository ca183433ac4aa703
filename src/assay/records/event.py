"""The journal's events: each is written once, hashed over the one before it, and never changed."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Any

from assay.records.base import Frozen

GENESIS = "0" * 64
"""The hash before the first event."""


class EventKind(StrEnum):
    """Everything that can happen to a campaign."""

    CAMPAIGN_CREATED = "campaign-created"
    """payload: spec, spec_hash, machine, build, model, shape (where its files tell it), assay_version."""
    PLAN_WRITTEN = "plan-written"
    """payload: hypotheses, passed_over, reasoning, earlier_scores; an older Assay wrote only some of them."""
    RUN_INTENDED = "run-intended"
    """payload: intent (RunIntent)."""
    SERVER_STARTED = "server-started"
    """payload: run_id, server (ServerIdentity)."""
    RUN_MEASURED = "run-measured"
    """payload: outcome (RunOutcome) as it stands before its soak. Its end follows by `run-ended`."""
    RUN_ENDED = "run-ended"
    """payload: outcome (RunOutcome), files (name to SHA-256)."""
    CALIBRATED = "calibrated"
    """payload: calibration (Calibration)."""
    DIAL_SETTLED = "dial-settled"
    """payload: result (DialResult). From here on its hypothesis has the flags that the search found."""
    SCREENED = "screened"
    """payload: result (ScreenResult)."""
    VERDICT_REACHED = "verdict-reached"
    """payload: verdict (Verdict). An adopted candidate joins the stack by this event."""
    ABLATED = "ablated"
    """payload: ablation (Ablation). A candidate that is not kept leaves the stack by this event."""
    CAMPAIGN_FINISHED = "campaign-finished"
    """payload: headline (Headline)."""


class Event(Frozen):
    """One line of the journal."""

    seq: int
    """1, 2, 3 ... without gaps."""
    at_ns: int
    """Wall-clock time of writing, nanoseconds since the epoch."""
    kind: EventKind
    payload: dict[str, Any]
    previous_hash: str
    hash: str


def event_hash(seq: int, at_ns: int, kind: str, payload: dict[str, Any], previous_hash: str) -> str:
    """SHA-256 over the canonical JSON (sorted keys, no spaces) of all the other fields."""
    body = json.dumps([seq, at_ns, kind, payload, previous_hash], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(body.encode()).hexdigest()
