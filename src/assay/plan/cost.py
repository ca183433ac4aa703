"""What trying a candidate takes, before anything was measured: launches, and time."""

from __future__ import annotations

from dataclasses import dataclass

from assay.plan.runs import EXPECTED_BRACKETS
from assay.records.spec import CampaignSpec

LAUNCH_SHARE = 0.5
"""Of `target.start_timeout_s` that a launch is assumed to take where none was recorded."""


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


def trial_cost(spec: CampaignSpec, launch_s: float | None = None) -> TrialCost:
    """What a candidate's screen is expected to take.

    Args:
        spec: the campaign.
        launch_s: how long a launch takes here, when that was measured; None: half of the start timeout, assumed.
    """
    budget, workload = spec.budget, spec.workload
    brackets = max(float(budget.min_brackets), EXPECTED_BRACKETS * budget.max_brackets)
    launch = LAUNCH_SHARE * spec.target.start_timeout_s if launch_s is None else launch_s
    load = (1 + len(workload.points)) * (workload.warmup_min_s + workload.windows * workload.window_s)
    return TrialCost(
        brackets=brackets, runs=brackets * (1 + 1 / budget.block), run_s=launch + load, launch_s=launch
    )  # fmt: skip
