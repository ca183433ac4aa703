"""Comparisons of answers that told nothing, as the record has them: for verdicts, the headline, and what is shown."""

from __future__ import annotations

from collections.abc import Collection

from assay.records.state import CampaignState, RunRecord


def untold_answers(state: CampaignState) -> list[str]:
    """Every way in which comparisons of this campaign told nothing, in words, each once; empty where all told."""
    return list(dict.fromkeys(said for run in state.runs if (said := _untold(run))))


def untold_clause(state: CampaignState, deltas: Collection[str]) -> str:
    """The same of an arm's newest comparison, as a clause behind others; empty where it told."""
    wanted = set(deltas)
    checks = (run for run in reversed(state.runs) if run.outcome and run.outcome.answers)
    newest = next((run for run in checks if set(run.intent.arm.deltas) == wanted), None)
    said = _untold(newest) if newest else None
    return f"; {said}" if said else ""


def _untold(run: RunRecord) -> str | None:
    return run.outcome.answers.untold if run.outcome and run.outcome.answers else None
