"""Making run intents, and counting what became of earlier ones."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

from assay.plan.cost import assumed_run_s
from assay.plan.reading import once
from assay.plan.series import A_A, why_not_counted
from assay.records.run import Arm, Purpose, RunIntent, RunStatus
from assay.records.state import CampaignState, RunRecord

MAX_ATTEMPTS = 3
"""Invalid or failing runs in a row after which an arm is given up."""


def derived_seed(root: int, *parts: object) -> int:
    """A seed that depends on the campaign's seed and on what it is for, not on when it is drawn."""
    text = ":".join(str(part) for part in (root, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def runs_of(state: CampaignState, series: str, candidate: str | None) -> Sequence[RunRecord]:
    """Ended, not abandoned runs of one arm in one series."""
    return _by_arm(state).get((series, candidate), ())


@once
def _by_arm(state: CampaignState) -> dict[tuple[str, str | None], list[RunRecord]]:
    found = defaultdict(list)
    for run in state.runs:
        if _ended(run):
            found[run.intent.series, run.intent.candidate].append(run)
    return dict(found)


def _ended(run: RunRecord) -> bool:
    return run.outcome is not None and run.outcome.status is not RunStatus.ABANDONED


def candidates_turn(runs: Sequence[RunRecord]) -> bool:
    """Whether the next run of an alternating series is the candidate's: its newest run that counts was a reference."""
    return bool(runs) and runs[-1].intent.candidate is None


def failed_in_a_row(state: CampaignState, first_run: int = 0) -> list[RunRecord]:
    """The newest unbroken chain of baseline runs that did not count (any series, A/A runs included).

    A stack that serves as reference in the composition is not the baseline: its failures end that trial only.

    Args:
        state: the campaign.
        first_run: number of runs that an earlier session made; they are left out.
    """
    baseline = [
        run for run in state.runs[first_run:] if run.intent.candidate in {None, A_A} and not run.intent.arm.deltas
    ]
    return uncounted_tail(state, [run for run in baseline if _ended(run)])


def uncounted_tail(state: CampaignState, runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs at the end of a list that do not count, oldest first."""
    tail = list(takewhile(lambda run: why_not_counted(state, run) is not None, reversed(runs)))
    return tail[::-1]


def intent(
    state: CampaignState,
    *,
    purpose: Purpose,
    series: str,
    candidate: str | None,
    arm: Arm,
    why: str,
    soak_s: float = 0.0,
) -> RunIntent:
    """The next run of a series; a candidate takes the prompts of the reference run just before it."""
    earlier = runs_of(state, series, candidate)
    references = [run for run in runs_of(state, series, None) if why_not_counted(state, run) is None]
    if candidate is not None and references:
        seed = references[-1].intent.seed
    else:
        seed = derived_seed(state.spec.workload.seed, series, len(references))
    return RunIntent(
        run_id=f"r{len(state.runs) + 1:04d}",
        purpose=purpose,
        series=series,
        candidate=candidate,
        arm=arm,
        seed=seed,
        attempt=1 + len(uncounted_tail(state, earlier)),
        why=why + (f", then soaked for {soak_s:g} s at its peak load" if soak_s else ""),
        soak_s=soak_s,
    )


@once
def median_run_s(state: CampaignState) -> float:
    """What a run costs here without a soak, from the runs so far; before the first it is assumed (`has_measured`)."""
    measured = [run.outcome for run in state.runs if run.outcome and run.outcome.measures]
    durations = sorted(one.duration_s - (one.soak.soaked_s if one.soak else 0.0) for one in measured)
    return durations[len(durations) // 2] if durations else assumed_run_s(state.spec, state.model.size_bytes)


def has_measured(state: CampaignState) -> bool:
    """Whether any run has measured anything, so that times are known and not assumed."""
    return any(run.outcome and run.outcome.measures for run in state.runs)
