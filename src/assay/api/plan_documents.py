"""What the improvement documents say of their target: reasoning, the whole command, the cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import AssayError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.catalogue.about import About
    from assay.plan.hypotheses import Plan
    from assay.records.hypothesis import Hypothesis
    from assay.records.scoring import PredictionScore
    from assay.records.state import CampaignState


def abouts(
    state: CampaignState, plan: Plan, earlier: Sequence[PredictionScore] = (), elsewhere: str = ""
) -> dict[str, About]:
    """For each hypothesis of a new plan, by id.

    Args:
        state: the campaign, before its plan is recorded.
        plan: what is to be planned.
        earlier: scores of predictions for machines of this class.
        elsewhere: of a plan made away from its machine: what is said of that in every document.
    """
    from assay.catalogue.about import About
    from assay.plan.corrected import corrected
    from assay.plan.scores import readable

    by_id = {one.id: one for one in plan.hypotheses}
    cost = _cost(state)
    planned = state.model_copy(update={"hypotheses": plan.hypotheses, "reasoning": plan.reasoning})
    known = corrected(planned, earlier)
    return {
        one.id: About(
            reasoning=plan.reasoning.entries.get(one.id),
            surroundings=plan.reasoning.surroundings,
            command=_command(state, one, by_id),
            objective=readable(state.spec.objective.metric, state.spec),
            min_effect=state.spec.objective.min_effect,
            random_weights=state.spec.target.has_random_weights,
            cost="" if one.status == "blocked" else cost,
            corrected=known.get(one.id),
            known=frozenset(plan.reasoning.entries),
            elsewhere=elsewhere,
        )
        for one in plan.hypotheses
    }


def _cost(state: CampaignState) -> str:
    from assay.plan.cost import guessed_launch, trial_cost
    from assay.render.words import duration_words

    cost = trial_cost(state.spec, guessed_launch(state.spec, state.model.size_bytes).expected_s)
    load = cost.run_s - cost.launch_s
    return (
        f"Trying it takes about {cost.runs:.0f} launches ({cost.brackets:.2g} brackets, with its share of the "
        f"baseline's runs), each {duration_words(load)} of load and the server's start, taken for "
        f"{duration_words(cost.launch_s)}: {duration_words(cost.total_s)} in all. `assay next --why` knows better once "
        "something was measured."
    )


def _command(state: CampaignState, hypothesis: Hypothesis, by_id: dict[str, Hypothesis]) -> str:
    """The whole command of its arm; empty where it cannot be made yet (a dial to search, an artifact to make)."""
    import shlex

    from assay.api.shown_command import shown_command
    from assay.plan.arms import arm_with
    from assay.store.redact import redact

    optimization = hypothesis.optimization
    if optimization.needs_work or optimization.dial is not None or optimization.artifact is not None:
        return ""
    arm = arm_with(state.spec.target, [*(by_id[name] for name in hypothesis.waits_for if name in by_id), hypothesis])
    try:
        shown = shown_command(state, arm)
    except AssayError:
        return ""
    words, env = redact(shown.argv), shown.env
    lines = [f"{name}={shlex.quote(value)}" for name, value in env.items()]
    first = True
    for word in words:
        if word.startswith("--") or first:
            lines.append(shlex.quote(word))
            first = False
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return " \\\n  ".join(lines)
