"""Tables for people who speak SQL: `runs`, `verdicts`, `windows`, thrown away and rebuilt from the state."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert

from assay.records.state import CampaignState, RunRecord
from assay.records.verdict import Verdict
from assay.store.record import SqlRecord
from assay.store.schema import PROJECTIONS, RUNS, VERDICTS, WINDOWS


def rebuild(record: SqlRecord, state: CampaignState) -> None:
    """Replace all three tables in one transaction; a reader sees the old ones or the new ones.

    Raises:
        RecordError: the database cannot be written; the old tables remain.
    """
    contents = {
        RUNS: [run_row(run) for run in state.runs],
        VERDICTS: [verdict_row(verdict) for verdict in state.verdicts.values()],
        WINDOWS: [row for run in state.runs for row in window_rows(run)],
    }
    with record.dialect.writing() as connection:
        PROJECTIONS.drop_all(connection)
        PROJECTIONS.create_all(connection)
        for table, rows in contents.items():
            if rows:
                connection.execute(insert(table), rows)


def run_row(run: RunRecord) -> dict[str, Any]:
    """One run, with the numbers a query usually wants; status is NULL while it has not ended."""
    outcome = run.outcome
    measures = outcome.measures if outcome else None
    return {
        "run_id": run.intent.run_id,
        "purpose": run.intent.purpose.value,
        "series": run.intent.series,
        "candidate": run.intent.candidate,
        "arm": run.intent.arm.label,
        "status": outcome.status.value if outcome else None,
        "output_tokens_per_s": measures.output_tokens_per_s if measures else None,
        "ttft_p50_s": measures.ttft.p50_s if measures else None,
        "tpot_p50_s": measures.tpot.p50_s if measures else None,
        "start_s": outcome.start_s if outcome else None,
        "duration_s": outcome.duration_s if outcome else None,
        "reason": outcome.reason if outcome else None,
    }


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """One verdict; the effect's columns are NULL where nothing could be measured."""
    effect = verdict.effect
    return {
        "candidate": verdict.candidate,
        "kind": verdict.kind.value,
        "log_ratio": effect.log_ratio if effect else None,
        "low": effect.low if effect else None,
        "high": effect.high if effect else None,
        "n": effect.num_brackets if effect else None,
        "prediction_held": verdict.prediction_held,
        "reason": verdict.reason,
    }


def window_rows(run: RunRecord) -> list[dict[str, Any]]:
    """The measured windows of a run, numbered from 0; none where nothing was measured."""
    measures = run.outcome.measures if run.outcome else None
    windows = measures.windows if measures else []
    return [{"run_id": run.intent.run_id, "index": i, **window.model_dump()} for i, window in enumerate(windows)]
