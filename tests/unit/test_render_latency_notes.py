"""What is said below the latency table, and of the step that was calculated."""

from __future__ import annotations

from assay.records.reasoning import PlanReasoning, Surroundings
from assay.records.run import Measures
from assay.records.state import CampaignState
from assay.records.verdict import Effect
from assay.render.bottleneck_facts import beside
from assay.render.latency_facts import latency_notes, tokens_per_chunk
from assay.render.next_facts import next_up
from assay.render.report import report_html, report_markdown
from assay.testing.sample_state import sample_state


def with_latencies(*, itl_s: float, tpot_s: float, chunks_hold: float, ttft_s: float = 0.1) -> CampaignState:
    """The sample, with the same latencies in each of its runs."""
    state, runs = sample_state(), []
    for run in state.runs:
        if run.outcome is None or run.outcome.measures is None:
            runs.append(run)
            continue
        measures = run.outcome.measures
        tokens = sum(window.output_tokens for window in measures.windows)
        gaps = round(tokens / chunks_hold) - measures.requests_completed
        changed = measures.model_copy(
            update={
                "itl": measures.itl.model_copy(update={"p50_s": itl_s, "num_samples": gaps}),
                "tpot": measures.tpot.model_copy(update={"p50_s": tpot_s}),
                "ttft": measures.ttft.model_copy(update={"p50_s": ttft_s}),
            }
        )
        runs.append(run.model_copy(update={"outcome": run.outcome.model_copy(update={"measures": changed})}))
    return state.model_copy(update={"runs": runs})


def some_measures(state: CampaignState) -> Measures:
    return next(run.outcome.measures for run in state.runs if run.outcome and run.outcome.measures)


def test_chunks_of_several_tokens_are_counted_where_itl_and_tpot_disagree() -> None:
    state = with_latencies(itl_s=0.0114, tpot_s=0.0069, chunks_hold=1.6)
    held = tokens_per_chunk(some_measures(state))

    assert held is not None
    assert abs(held - 1.6) < 0.05
    told = " ".join(latency_notes(state))
    assert "Of the baseline, ITL p50 is 1.7 times TPOT p50, with 1.6 tokens a chunk on average." in told
    assert "compare by TPOT" in told
    assert told in report_markdown(state, launch_commands={})
    assert "with 1.6 tokens a chunk" in report_html(state, launch_commands={}, latencies=None)


def test_where_itl_and_tpot_agree_within_a_fifth_nothing_is_said() -> None:
    assert latency_notes(with_latencies(itl_s=0.0075, tpot_s=0.0069, chunks_hold=1.0)) == []


def test_a_measured_token_beside_the_calculated_step_lies_below_in_or_above_its_range() -> None:
    state = with_latencies(itl_s=0.0069, tpot_s=0.00688, chunks_hold=1.0)

    assert "6.88 ms a token" in beside(state, (0.00715, 0.0189))
    assert "below the calculated range" in beside(state, (0.00715, 0.0189))
    assert "inside the calculated range" in beside(state, (0.005, 0.0189))
    assert "above the calculated range" in beside(state, (0.001, 0.002))


def test_the_plans_own_sentence_on_the_step_is_held_against_what_was_measured() -> None:
    said = "By calculation a decode step of 64 takes 9.56 ms (7.15 to 18.9): experts 69%, host 15%."
    reasoning = PlanReasoning(surroundings=Surroundings(sentences=[said]))
    state = with_latencies(itl_s=0.0069, tpot_s=0.00688, chunks_hold=1.0)
    told = next_up(state.model_copy(update={"reasoning": reasoning, "stack": []}), None).bottleneck

    assert f"as the plan estimated it (Assay {state.assay_version})" in told
    assert "6.88 ms a token (TPOT p50 of the baseline, median of its runs). That is below" in told


def test_what_the_screen_saw_stands_beside_a_verdict_that_rests_on_other_runs() -> None:
    state = sample_state()
    screened = state.screened["parallel-slots"]
    effect = Effect(log_ratio=0.043, low=0.008, high=0.078, num_brackets=2, standard_error=0.01,
                    degrees_of_freedom=8, confidence=0.9)  # fmt: skip
    changed = state.model_copy(update={"screened": {"parallel-slots": screened.model_copy(update={"effect": effect})}})

    assert "in the screen: +4.4% [+0.8, +8.1]" in report_html(changed, launch_commands={}, latencies=None)
    assert "in the screen: +4.4% [+0.8, +8.1]" in report_markdown(changed, launch_commands={})
    assert "in the screen: " not in report_markdown(state, launch_commands={})
