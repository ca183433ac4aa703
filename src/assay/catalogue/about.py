"""What a document says of its target, beyond the hypothesis itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.records.reasoning import Reasoning, Surroundings
from assay.records.views import Corrected


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Of one hypothesis."""

    reasoning: Reasoning | None = None
    surroundings: Surroundings = field(default_factory=Surroundings)
    command: str = ""
    """The whole launch command of the arm, for a shell; empty when it is not known yet."""
    objective: str = "the objective"
    """In words: "output tokens/s"."""
    min_effect: float = 0.05
    known: frozenset[str] | None = None
    """Ids of every entry for this engine; None: not told."""
    corrected: Corrected | None = None
    """The range as earlier verdicts on machines of this class correct it; None while there are none."""
    random_weights: bool = False
    """Whether the model's answers say nothing about quality."""
    cost: str = ""
    """What trying it takes, in a sentence."""
    elsewhere: str = ""
    """Of a plan that was made away from its machine: for which, and from what; empty: the machine was here."""
