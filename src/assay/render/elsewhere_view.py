"""What a plan for another machine rests on, for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from assay.plan.surroundings import as_sentence
from assay.records.elsewhere import Elsewhere
from assay.records.reasoning import PlanReasoning
from assay.render.grids import bullets


def elsewhere_view(elsewhere: Elsewhere, plan: PlanReasoning) -> RenderableType:
    """For whom and from what; the target in numbers; what only the machine itself can tell.

    What the configuration has no room for is told before it.
    """
    parts: list[RenderableType] = [Text(elsewhere.label, style="bold"), Text("")]
    told_first = {as_sentence(warning) for warning in plan.surroundings.warnings}
    parts += [Text(sentence) for sentence in plan.surroundings.sentences if sentence not in told_first]
    parts += [Text(f"today's command: {text}") for text in plan.baseline]
    only_there = elsewhere.unknown
    if other := [told for told in plan.surroundings.missing if told not in only_there]:
        parts += [Text("\nnot calculated", style="bold"), bullets(other)]
    parts += [Text("\nknown only there", style="bold"), bullets(only_there), Text("")]
    return Group(*parts)
