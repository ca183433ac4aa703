"""How a prediction fared once its hypothesis had a verdict, and how far the catalogue is to be believed since.

Scores are read off the record and can always be made again; a person may also keep them from campaign to campaign
(`assay.store.credibility_file`). They re-order what is left and correct the ranges that are printed. No verdict, effect
or threshold ever looks at them.

    >>> MachineClass(hardware="AMD EPYC", engine="llamacpp", model="dense").words
    'AMD EPYC, llamacpp, dense models'
"""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field

from assay.records.base import Frozen
from assay.records.hypothesis import MechanismId
from assay.records.machine import EngineBuild, Machine, ModelFacts

NOMINAL_COVERAGE = 0.80
"""Share of true effects that predicted ranges are taken to hold: each is read as a central 80% prediction interval.

An entry's author is asked for a range "that you would bet on" (CONTRIBUTING.md). Four to one is such a bet, and the 10%
and 90% quantiles are what people are commonly asked for; at 95% a single miss among a dozen would already condemn."""
Z_NOMINAL = 1.2815515655446004
"""Standard normal quantile at 90%: half width of a central 80% interval in standard deviations."""
Warned = Literal["no", "idle", "fails"]
"""Whether the entry itself says beforehand that it does nothing here (idle) or does not run (fails)."""
NOISE_WORDS = re.compile(r"\([^)]*\)|@.*|\b(?:CPU|Processor|with Radeon Graphics)\b", re.IGNORECASE)
MODEL_NUMBER = re.compile(r"\S*\d{3}\S*|\S*\d+-core\S*|\S*\d+\.\d+GHz", re.IGNORECASE)
FAMILY_WORDS = 4


class MachineClass(Frozen):
    """What catalogue entries can be right or wrong about together: hardware family, engine, kind of model."""

    hardware: str
    """GPU name where there is one, else the CPU's family: "NVIDIA H200", "AMD EPYC", "Apple M2 Max"."""
    engine: str
    model: Literal["dense", "moe"]

    @classmethod
    def of(cls, machine: Machine, build: EngineBuild, model: ModelFacts) -> Self:
        """The class that a campaign's target belongs to."""
        hardware = machine.gpus[0].name if machine.gpus else cpu_family(machine.cpu_model)
        return cls(hardware=hardware, engine=build.engine, model="moe" if (model.num_experts or 0) > 1 else "dense")

    @property
    def words(self) -> str:
        """For a sentence."""
        return f"{self.hardware}, {self.engine}, {'mixture-of-experts' if self.model == 'moe' else 'dense'} models"


class EffectScore(Frozen):
    """A predicted range against the measured effect, in log ratio; `assay.stats.scoring` has the formulas."""

    low: float
    high: float
    """The predicted range."""
    estimate: float
    standard_error: float
    interval_low: float
    interval_high: float
    """The measured effect with its interval."""
    meets: bool
    """Whether the interval and the range have a point in common."""
    inside: bool
    """Whether the estimate lies in the range."""
    expected_inside: float
    """Chance of that for a range that holds `NOMINAL_COVERAGE` of true effects, given the noise of the estimate."""
    signed_error: float
    """Estimate minus the middle of the range: negative where less came than was promised."""
    interval_score: float
    """Less is better: width, and a penalty for what lies outside."""


class ApplicabilityScore(Frozen):
    """Whether the change could be used here at all, against the chance that was given to it."""

    forecast: float
    """Chance that it starts, is in force, stays up and answers rightly, told before the trial."""
    usable: bool
    brier: float
    """(forecast - usable)^2: 0 is best, 0.25 is what a coin gets."""


class PredictionScore(Frozen):
    """One hypothesis, its prediction, and what became of it."""

    campaign: str
    """Names one campaign for ever: spec hash and instant of creation."""
    hypothesis: str
    mechanism_id: MechanismId | None = None
    machine_class: MachineClass
    warned: Warned = "no"
    control: bool = False
    """A control is tried to see whether the judge says no: it tells nothing of how far gains are to be believed."""
    edited: bool = False
    """A person wrote this range into the document: it is scored, and says nothing about the catalogue."""
    predicted: tuple[float, float]
    """As relative change: 0.1 is +10%."""
    effect: EffectScore | None = None
    """None where no effect was measured."""
    applicability: ApplicabilityScore | None = None
    """None where nothing was learned of it: see `unscored`."""
    unscored: str | None = None
    """Why there is neither: the budget ended, the build was known not to have the flag."""


class Bias(Frozen):
    """By which factor effects are larger or smaller than the middles of their predicted ranges (log ratios)."""

    factor: float
    """1: as predicted; 0.7: seven tenths of it. Shrunk towards 1."""
    sd: float
    num_effects: int

    @property
    def is_clear(self) -> bool:
        """Whether the central 80% of what the factor may be leaves out 1."""
        return self.num_effects > 0 and abs(self.factor - 1) > Z_NOMINAL * self.sd


class Credibility(Frozen):
    """What the scores of one machine class say, as `assay.plan.credibility.learn` finds it."""

    machine_class: MachineClass
    measured: Bias
    """Of the entries measured, as if they had one factor: what a report tells."""
    overall: Bias
    """Of the class: what an entry of a mechanism that was never measured is corrected by."""
    mechanisms: dict[MechanismId, Bias] = Field(default_factory=dict)
    widening: float = 1.0
    """Factor on the half width of ranges: above 1 where truths scatter more than was predicted."""
    usable: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """By warning and mechanism ("no/kv-bytes"): how many could be used, of how many."""


class CorrectedRange(Frozen):
    """A predicted range as this class's scores correct it, for printing and for the order of work."""

    low: float
    high: float
    """As relative change, central `NOMINAL_COVERAGE`."""
    middle: float
    """Log ratio."""
    sd: float
    """Standard deviation of the true log ratio."""


class Outlook(Frozen):
    """What another trial is expected to bring and to cost."""

    hypothesis: str
    predicted: tuple[float, float]
    corrected: CorrectedRange
    usable: float
    """Chance that it can be used here."""
    adoption: float
    """Chance that it is adopted."""
    expected_gain: float
    """Expected log ratio that it adds to the stack: what is not adopted adds nothing."""
    expected_runs: float
    expected_s: float

    @property
    def worth(self) -> float:
        """Expected gain per second of measuring: the order of work."""
        return self.expected_gain / self.expected_s


def cpu_family(cpu_model: str) -> str:
    """The CPU's model name without its model numbers: "Intel(R) Xeon(R) Platinum 8480+" is "Intel Xeon Platinum"."""
    words = MODEL_NUMBER.sub(" ", NOISE_WORDS.sub(" ", cpu_model)).split()
    return " ".join(words[:FAMILY_WORDS]) or cpu_model or "unknown CPU"
