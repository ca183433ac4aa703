"""What trying a candidate takes, before anything was measured: launches, and time."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records.spec import Budget, CampaignSpec
from assay.units import giga

EXPECTED_BRACKETS = 0.45
"""Share of the allowed brackets that an average trial is expected to use: clear cases and hopeless ones stop early.
In simulated campaigns they used 2.0 to 2.6 of 6 (docs/verdicts.md)."""
LEAST_CONFIRMED = 2
"""Brackets of the confirmation that are made though the budget is spent."""
NO_TIME = (0.0, 0.0, 0.0)
START_S = {
    "llamacpp": (0.5, 2.0, 10.0),
    "vllm": (20.0, 60.0, 600.0),
    "sglang": (20.0, 60.0, 600.0),
    "trtllm": (20.0, 60.0, 600.0),
    "rehearsal": (2.0, 4.0, 30.0),
    "openai": NO_TIME,
}
"""Lowest, expected and highest time of a launch beside the reading of its weights, where none was recorded: guesses.
llama.cpp maps its file, and compiles and captures nothing (0.6 s in examples/demo); vLLM imports, compiles and captures
(24 s in examples/vllm-cpu, 49 s on an H200 machine, minutes for large models); a server that somebody else runs is
there already."""
LAUNCH_SHARE = 0.5
"""Of `target.start_timeout_s`, for an engine that nothing is known of."""
READ_BYTES_PER_S = (5e9, 1e9, 2e8)
"""Fast, usual and slow reading of a model: from memory or a fast disk, from a disk, over a network."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchGuess:
    """How long a launch may take, as long as none was recorded."""

    low_s: float
    expected_s: float
    high_s: float
    basis: str
    """What the guess rests on, in words."""


def guessed_launch(spec: CampaignSpec, model_bytes: int | None = None) -> LaunchGuess:
    """What a launch of this engine usually takes, and the reading of its weights.

    A slow one is no slower than the start timeout, which would end it. What is expected is not cut: where it is beyond
    the timeout, the timeout has to be raised (`assay plan` says so), and then that is what a launch costs.

    Args:
        spec: the campaign.
        model_bytes: size of the model's file or folder; None: not known, and then not counted.
    """
    most, name = spec.target.start_timeout_s, spec.target.engine
    if name not in START_S:
        return LaunchGuess(low_s=0.0, expected_s=LAUNCH_SHARE * most, high_s=most, basis="half of the start timeout")
    reading = [0.0] * 3 if START_S[name] == NO_TIME else [(model_bytes or 0) / rate for rate in READ_BYTES_PER_S]
    low, expected, high = (start + read for start, read in zip(START_S[name], reading, strict=True))
    high = min(high, max(most, expected))
    size = f" and the reading of {giga(model_bytes)} GB" if model_bytes and any(reading) else ""
    return LaunchGuess(low_s=low, expected_s=expected, high_s=high, basis=f"what a start of {name} usually takes{size}")


def assumed_run_s(spec: CampaignSpec, model_bytes: int | None = None) -> float:
    """What a run is assumed to take as long as none has been measured; arguments as of `guessed_launch`."""
    return trial_cost(spec, guessed_launch(spec, model_bytes).expected_s).run_s


def least_calibration_s(spec: CampaignSpec) -> float:
    """Load that the calibration makes at the least; what its launches take comes on top."""
    return (2 * spec.budget.calibration_brackets + 1) * spec.workload.least_load_s


def least_runs(budget: Budget) -> int:
    """Runs from composition to headline of one candidate at the least: both are made though the budget is spent."""
    return 2 * min(budget.min_brackets, budget.composition_brackets) + 1 + 2 * LEAST_CONFIRMED + 1


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
