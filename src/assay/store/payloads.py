"""What each kind of event must carry, and whether a payload does."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from assay.records.dials import DialResult
from assay.records.event import EventKind
from assay.records.hypothesis import Hypothesis
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.model_shape import ModelShape
from assay.records.reasoning import PlanReasoning
from assay.records.run import RunIntent, RunOutcome, ServerIdentity
from assay.records.scoring import PredictionScore
from assay.records.spec import CampaignSpec
from assay.records.state import Ablation, ScreenResult
from assay.records.verdict import Calibration, Headline, Verdict

SHAPES: dict[EventKind, dict[str, Any]] = {
    EventKind.CAMPAIGN_CREATED: {
        "spec": CampaignSpec,
        "spec_hash": str,
        "machine": Machine,
        "build": EngineBuild,
        "model": ModelFacts,
        "shape": ModelShape,
        "assay_version": str,
    },
    EventKind.PLAN_WRITTEN: {
        "hypotheses": list[Hypothesis],
        "passed_over": dict[str, str],
        "earlier_scores": list[PredictionScore],
        "reasoning": PlanReasoning,
        "random_weights": bool,
    },
    EventKind.RUN_INTENDED: {"intent": RunIntent},
    EventKind.SERVER_STARTED: {"run_id": str, "server": ServerIdentity},
    EventKind.RUN_MEASURED: {"outcome": RunOutcome},
    EventKind.RUN_ENDED: {"outcome": RunOutcome, "files": dict[str, str]},
    EventKind.CALIBRATED: {"calibration": Calibration},
    EventKind.DIAL_SETTLED: {"result": DialResult},
    EventKind.SCREENED: {"result": ScreenResult},
    EventKind.VERDICT_REACHED: {"verdict": Verdict},
    EventKind.ABLATED: {"ablation": Ablation},
    EventKind.CAMPAIGN_FINISHED: {"headline": Headline},
}

LATER: dict[EventKind, set[str]] = {
    EventKind.CAMPAIGN_CREATED: {"shape"},
    EventKind.PLAN_WRITTEN: {"earlier_scores", "reasoning", "random_weights"},
}
"""Keys that records written by an earlier Assay lack, or that only some have: the shape, where a model's files tell it;
random weights, where they were declared after the campaign had begun."""


def parse_payload(kind: EventKind, payload: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Read a payload into its record types.

    Returns:
        The parts that are as they should be, and what is wrong with the others.
    """
    shape = SHAPES[kind]
    parts: dict[str, Any] = {}
    differ = set(shape) ^ set(payload)
    problems = (
        [f"expected the keys {sorted(shape)}, found {sorted(payload)}"] if differ - LATER.get(kind, set()) else []
    )
    for name in shape.keys() & payload.keys():
        try:
            parts[name] = TypeAdapter(shape[name]).validate_python(payload[name])
        except ValidationError as error:
            problems += [_said(name, detail["loc"], detail["msg"], detail["input"]) for detail in error.errors()]
    return parts, problems


def _said(name: str, location: tuple[int | str, ...], message: str, found: Any) -> str:
    path = ".".join(map(str, (name, *location)))
    return f"{path}: {message}, found {str(found)[:80]!r}"
