"""Same answer? The next greedy tokens at fixed positions, alone and under load."""

from __future__ import annotations

from collections.abc import Sequence
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


def _difference(check: AnswerCheck, numerics: Numerics, quality: Quality, state: CampaignState) -> str | None:
    alone, alone_n, loaded, loaded_n = natural(state)
    parts = [("alone", check.agreed, check.probes, alone, alone_n)]
    if check.under_load_agreed is not None and check.under_load_probes:
        parts.append(("under load", check.under_load_agreed, check.under_load_probes, loaded, loaded_n))
    for where, agreed, probes, natural_bad, natural_n in parts:
        if numerics == "exact":
            p_value = more_disagreement_p_value(probes - agreed, probes, natural_bad, natural_n)
            if p_value < quality.alpha:
                return (
                    f"{probes - agreed} of {probes} next tokens differ {where}; the baseline differs from itself in "
                    f"{natural_bad} of {natural_n} (p = {p_value:.2g})"
                )
            continue
        p_value = below_floor_p_value(agreed, probes, quality.min_agreement, natural_bad, natural_n)
        if p_value < quality.alpha:
            return (
                f"only {agreed} of {probes} next tokens stay the same {where} ({100 * agreed / probes:.0f}%, "
                f"{_asked(quality.min_agreement, natural_bad, natural_n)}, p = {p_value:.2g})"
            )
    return None


def _asked(floor: float, natural_bad: int, natural_n: int) -> str:
    asked = f"{100 * floor:.0f}% asked"
    if not natural_bad:
        return asked
    return f"{asked} of the {100 * (1 - natural_bad / natural_n):.0f}% that the baseline keeps of its own"
