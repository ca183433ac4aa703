"""The verb that measures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.ports import Progress
    from assay.records.state import CampaignState


def run(
    folder: Path, progress: Progress, *, max_runs: int | None = None, catalogue: Path | None = None
) -> CampaignState:
    """Plan if need be, carry the campaign on to its end, and write the report.

    Resumable: after a crash or Ctrl-C the same call goes on; a run that was in flight is abandoned and made again.

    Args:
        folder: the campaign's folder, with its assay.toml.
        progress: where to say what is being done.
        max_runs: stop after this many more runs.
        catalogue: a catalogue folder that replaces the built-in one.

    Raises:
        AssayError: see `assay.errors`; what was measured before stays in the record.
    """
    from assay import wiring
    from assay.api.environment import host, refuse_another
    from assay.api.init import SPEC
    from assay.api.inspect import report
    from assay.api.plan import plan
    from assay.campaign.loop import note_verdict, run_campaign
    from assay.plan.fold import fold
    from assay.store.projections import rebuild
    from assay.store.record import SqliteRecord
    from assay.store.spec_file import read_spec

    plan(folder, catalogue=catalogue)
    with SqliteRecord(folder / "assay.db") as record, record.lock():
        state = fold(record.events())
        target = read_spec(folder / SPEC, declared=state.spec).target
        refuse_another(state, target)
        with wiring.bench(folder, record, state, target, progress, host()) as bench:
            for verdict in bench.state.verdicts.values():
                note_verdict(bench, verdict)  # a kill between the record and the document left them apart
            state = run_campaign(bench, max_runs=max_runs)
        rebuild(record, state)
    report(folder)
    _remember(state, progress)
    return state


def _remember(state: CampaignState, progress: Progress) -> None:
    """What became of the predictions, for later campaigns on machines of this class; of real machines only."""
    from assay.plan.scoring import score
    from assay.render.words import is_simulated
    from assay.store.credibility_file import remember

    if state.headline is not None and not is_simulated(state) and (note := remember(score(state))):
        progress.result(note)
