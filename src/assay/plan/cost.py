"""What trying a candidate takes, before anything was measured: launches, and time."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records.spec import CampaignSpec

EXPECTED_BRACKETS = 0.45
"""Share of the allowed brackets that an average trial is expected to use: clear cases and hopeless ones stop early.
In simulated campaigns they used 2.0 to 2.6 of 6 (docs/verdicts.md)."""
LAUNCH_SHARE = 0.5
"""Of `target.start_timeout_s` that a launch is assumed to take where none was recorded."""
QUICK_LAUNCH_S = {"llamacpp": 3.0, "openai": 0.0}
"""By engine, where half of the timeout would be far too much: llama.cpp maps its file, and compiles and captures
nothing; a server that somebody else runs is there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCost:
    """Of one candidate of the screen."""

    brackets: float
    """Expected: clear cases stop early."""
    runs: float
    """Launches, its share of the baseline's included."""
    run_s: float
    """One of them."""
    launch_s: float
    """Of that, until the server is ready."""

    @property
    def total_s(self) -> float:
        """Of the whole trial."""
        return self.runs * self.run_s


def assumed_run_s(spec: CampaignSpec) -> float:
    """What a run is assumed to take as long as none has been measured."""
    return trial_cost(spec, QUICK_LAUNCH_S.get(spec.target.engine)).run_s


def least_calibration_s(spec: CampaignSpec) -> float:
    """Load that the calibration makes at the least; what its launches take comes on top."""
    return (2 * spec.budget.calibration_brackets + 1) * spec.workload.least_load_s


def trial_cost(spec: CampaignSpec, launch_s: float | None = None) -> TrialCost:
    """What a candidate's screen is expected to take.

    Args:
        spec: the campaign.
        launch_s: how long a launch takes here, when that was measured; None: half of the start timeout, assumed.
    """
    budget = spec.budget
    brackets = max(float(budget.min_brackets), EXPECTED_BRACKETS * budget.max_brackets)
    launch = LAUNCH_SHARE * spec.target.start_timeout_s if launch_s is None else launch_s
    return TrialCost(
        brackets=brackets,
        runs=brackets * (1 + 1 / budget.block),
        run_s=launch + spec.workload.least_load_s,
        launch_s=launch,
    )
