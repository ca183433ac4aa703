"""What a plan for another machine rests on, for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from assay.records.elsewhere import Elsewhere
from assay.records.reasoning import PlanReasoning
from assay.render.grids import bullets


def elsewhere_view(elsewhere: Elsewhere, plan: PlanReasoning) -> RenderableType:
    """For whom and from what; the target in numbers; what only the machine itself can tell."""
    parts: list[RenderableType] = [Text(elsewhere.label, style="bold"), Text("")]
    parts += [Text(sentence) for sentence in plan.surroundings.sentences]
    parts += [Text(f"today's command: {text}") for text in plan.baseline]
    parts += [Text("\nknown only there", style="bold"), bullets(plan.surroundings.missing), Text("")]
    return Group(*parts)
