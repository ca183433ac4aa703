"""The steps a campaign is made of, as values."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records.dials import DialResult
from assay.records.run import RunIntent
from assay.records.state import Ablation, ScreenResult
from assay.records.verdict import Calibration, Headline, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeRun:
    """Launch, check, measure and stop one server."""

    intent: RunIntent


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCalibration:
    """The A/A brackets are complete."""

    calibration: Calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDial:
    """The search of a dial is over."""

    result: DialResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordScreen:
    """A candidate's screen decided in its favour: it goes on to composition."""

    result: ScreenResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordVerdict:
    """A trial is over."""

    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAblation:
    """It is known whether the stack needs one of its members."""

    ablation: Ablation


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Nothing is left to be measured."""

    headline: Headline


@dataclass(frozen=True, slots=True, kw_only=True)
class AskApproval:
    """The policy wants a person's word before these hypotheses."""

    ids: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """The baseline itself cannot be measured: the campaign has no ground to stand on."""

    reason: str
    hint: str
    engine_failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The campaign is finished."""


Step = (
    MakeRun
    | RecordCalibration
    | RecordScreen
    | RecordVerdict
    | RecordAblation
    | RecordDial
    | Finish
    | AskApproval
    | GiveUp
    | Done
)
