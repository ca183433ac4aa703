"""Same answer? The next greedy tokens at fixed positions, alone and under load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from assay.plan.series import A_A
from assay.ports import Server
from assay.records.hypothesis import Numerics
from assay.records.load import RequestSample
from assay.records.run import AnswerCheck, RunStatus
from assay.records.spec import RANDOM_WEIGHTS, Quality
from assay.records.state import CampaignState
from assay.stats.agreement import below_floor_p_value, more_disagreement_p_value

CONTEXT_TOKENS = 16
"""Length of the fixed prefix before each probed token."""
NOTICED_LOSS = 0.5
"""Share of the answers that the baseline keeps of its own: a test that would not notice its loss tells nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What was compared in one place, and what the baseline's comparisons with itself gave there."""

    where: str
    agreed: int
    probes: int
    natural_bad: int
    natural_n: int

    @property
    def kept(self) -> float:
        """Share of its own answers that the baseline keeps from run to run."""
        return 1 - self.natural_bad / self.natural_n if self.natural_n else 1.0


def ask(server: Server, quality: Quality) -> list[int]:
    """The server's next greedy token at `quality.probes` fixed positions, requests one at a time."""
    text = resources.files("assay.data").joinpath("answers.txt").read_text(encoding="utf-8")
    ids = server.tokenize(text)
    stride = max(1, (len(ids) - CONTEXT_TOKENS) // quality.probes)
    prompts = [ids[i * stride : i * stride + CONTEXT_TOKENS] for i in range(quality.probes)]
    return server.next_tokens(prompts)


def reference_tokens(state: CampaignState) -> list[int] | None:
    """The tokens of the first baseline run that was asked."""
    for run in state.runs:
        outcome = run.outcome
        if run.intent.candidate is None and not run.intent.arm.deltas and outcome and outcome.answer_tokens:
            return outcome.answer_tokens
    return None


def compare(tokens: Sequence[int], reference: Sequence[int]) -> AnswerCheck:
    """Count agreements, position by position."""
    return AnswerCheck(probes=len(reference), agreed=sum(a == b for a, b in zip(tokens, reference, strict=True)))


def compare_under_load(samples: Sequence[RequestSample], reference: Sequence[RequestSample]) -> tuple[int, int]:
    """Requests whose first content equals that of the same request in the reference run.

    Both runs sent the same prompts in the same order, so request n of one is request n of the other.

    Returns:
        Number that agree, number compared.
    """
    known = {sample.index: sample.first_text for sample in reference if sample.first_text is not None}
    both = [s for s in samples if s.first_text is not None and s.index in known]
    return sum(s.first_text == known[s.index] for s in both), len(both)


def natural(state: CampaignState) -> tuple[int, int, int, int]:
    """How often the baseline disagrees with itself, from the A/A runs.

    Returns:
        Disagreements alone, probes alone, disagreements under load, requests compared under load.
    """
    alone = alone_n = loaded = loaded_n = 0
    for run in state.runs:
        if run.intent.candidate != A_A or run.outcome is None or run.outcome.status is not RunStatus.OK:
            continue
        if check := run.outcome.answers:
            alone, alone_n = alone + check.probes - check.agreed, alone_n + check.probes
            if check.under_load_agreed is not None and check.under_load_probes is not None:
                loaded += check.under_load_probes - check.under_load_agreed
                loaded_n += check.under_load_probes
    return alone, alone_n, loaded, loaded_n


def judge(check: AnswerCheck, numerics: Numerics, quality: Quality, state: CampaignState) -> str | None:
    """Why these answers are not the same answers; None when they are.

    exact: must not disagree more than the baseline does with itself (Fisher's exact test). reordered and
    approximate: sums in another order flip near-ties, so a declared share must stay of the tokens that the baseline
    itself keeps from run to run, and the number of probes that stayed must not contradict it (binomial test).
    """
    said = _difference(check, numerics, quality, state)
    return f"{said}; {RANDOM_WEIGHTS}" if said and state.spec.target.has_random_weights else said


def untold(check: AnswerCheck, numerics: Numerics, quality: Quality, state: CampaignState) -> str | None:
    """Where the comparison tells nothing, because the baseline keeps too little of its own answers; None where it does.

    It tells something where it would notice that an arm had lost half of what the baseline keeps (`NOTICED_LOSS`), and
    where it did notice something.
    """
    blind = [part for part in _parts(check, state) if not _notices(part, numerics, quality)]
    return "; ".join(_why_untold(part) for part in blind) or None


def _notices(part: _Part, numerics: Numerics, quality: Quality) -> bool:
    half = int(part.probes * part.kept * (1 - NOTICED_LOSS))
    return _p_value(part, min(half, part.agreed), numerics, quality) < quality.alpha


def _why_untold(part: _Part) -> str:
    said = f"answers {part.where} could not be compared"
    if not part.natural_n:
        return f"{said}: the baseline was not compared with itself"
    kept = f"the baseline keeps {'only ' if part.natural_bad else ''}{100 * part.kept:.0f}% of its own from run to run"
    return f"{said}: {kept} ({part.natural_n - part.natural_bad:,} of {part.natural_n:,}), {part.probes:,} were asked"


def _parts(check: AnswerCheck, state: CampaignState) -> Iterator[_Part]:
    alone, alone_n, loaded, loaded_n = natural(state)
    yield _Part(where="alone", agreed=check.agreed, probes=check.probes, natural_bad=alone, natural_n=alone_n)
    if check.under_load_agreed is not None and check.under_load_probes:
        agreed, probes = check.under_load_agreed, check.under_load_probes
        yield _Part(where="under load", agreed=agreed, probes=probes, natural_bad=loaded, natural_n=loaded_n)


def _p_value(part: _Part, agreed: int, numerics: Numerics, quality: Quality) -> float:
    """Of so many agreements, by the test that the promise of an arm asks for."""
    if numerics == "exact":
        return more_disagreement_p_value(part.probes - agreed, part.probes, part.natural_bad, part.natural_n)
    return below_floor_p_value(agreed, part.probes, quality.min_agreement, part.natural_bad, part.natural_n)


def _difference(check: AnswerCheck, numerics: Numerics, quality: Quality, state: CampaignState) -> str | None:
    for part in _parts(check, state):
        p_value = _p_value(part, part.agreed, numerics, quality)
        if p_value >= quality.alpha:
            continue
        if numerics == "exact":
            return (
                f"{part.probes - part.agreed} of {part.probes} next tokens differ {part.where}; the baseline differs "
                f"from itself in {part.natural_bad} of {part.natural_n} (p = {p_value:.2g})"
            )
        return (
            f"only {part.agreed} of {part.probes} next tokens stay the same {part.where} "
            f"({100 * part.agreed / part.probes:.0f}%, {_asked(quality.min_agreement, part)}, p = {p_value:.2g})"
        )
    return None


def _asked(floor: float, part: _Part) -> str:
    asked = f"{100 * floor:.0f}% asked"
    return f"{asked} of the {100 * part.kept:.0f}% that the baseline keeps of its own" if part.natural_bad else asked
