"""The soaks of an arm, as the record has them."""

from __future__ import annotations

from collections.abc import Collection

from assay.plan.soak_counts import Counts, counted
from assay.records.run import Failure, RunStatus
from assay.records.soak import Soak
from assay.records.state import CampaignState, RunRecord


def asked(state: CampaignState, deltas: Collection[str]) -> list[RunRecord]:
    """Runs of an arm that count and were to be soaked; one whose soak was interrupted has none, and is no try."""
    wanted = set(deltas)
    return [
        run
        for run in state.runs
        if run.intent.soak_s
        and set(run.intent.arm.deltas) == wanted
        and run.outcome is not None
        and run.outcome.status is RunStatus.OK
    ]


def completed(state: CampaignState, deltas: Collection[str]) -> list[Soak]:
    """Those of an arm that were not interrupted, oldest first."""
    return [soak for run in asked(state, deltas) if (soak := soak_of(run)) is not None]


def telling(state: CampaignState, deltas: Collection[str]) -> list[Soak]:
    """Those of an arm that say anything, oldest first."""
    return [soak for soak in completed(state, deltas) if soak.passed is not None]


def latest(state: CampaignState, deltas: Collection[str]) -> Soak | None:
    """The newest soak of an arm that says anything."""
    found = telling(state, deltas)
    return found[-1] if found else None


def deciding(state: CampaignState, deltas: Collection[str]) -> Soak | None:
    """The first soak of an arm in which its server fell, else the newest that says anything."""
    found = telling(state, deltas)
    return next((soak for soak in found if soak.fell), found[-1] if found else None)


def failure_in(state: CampaignState, deltas: Collection[str]) -> Failure | None:
    """Of the first soak in which an arm's server died; None where it did in none."""
    died = (run.outcome for run in asked(state, deltas) if run.outcome and run.outcome.soak and run.outcome.soak.died)
    return next((outcome.failure for outcome in died), None)


def counts_of(state: CampaignState, deltas: Collection[str]) -> Counts:
    """Requests of an arm's soaks that say anything."""
    return counted(telling(state, deltas))


def num_interrupted(state: CampaignState, deltas: Collection[str]) -> int:
    """How many soaks of an arm ended with Assay itself (Ctrl-C, a kill), where none was ever completed."""
    return 0 if completed(state, deltas) else len(asked(state, deltas))


def compared_with(state: CampaignState, deltas: Collection[str], reference: Collection[str]) -> list[Soak]:
    """Soaks that an arm's is held against: its reference's, else those of the arm without its last member."""
    return telling(state, reference) or telling(state, list(deltas)[:-1])


def soak_of(run: RunRecord) -> Soak | None:
    """Of one run; None where it has none, or was interrupted in it."""
    return run.outcome.soak if run.outcome else None
