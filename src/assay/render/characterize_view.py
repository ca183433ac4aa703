"""A characterization in the terminal; readable without colour and at 80 columns."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from assay.records.attribution import Characterization
from assay.render.characterize_ceilings import cpu_ceilings, gpu_ceilings
from assay.render.characterize_measured import attributed, measured_run, traced
from assay.render.characterize_roofline import roofline
from assay.render.grids import bullets
from assay.render.held_loads_view import held_loads_view
from assay.render.held_view import held_view, steps_view


def characterize_view(found: Characterization) -> RenderableType:
    """Ceilings, model, roofline, and the measured run split by cause."""
    parts: list[RenderableType] = [Text(found.machine, style="bold")]
    if found.gpu_ceilings is not None:
        parts += gpu_ceilings(found.gpu_ceilings)
    if found.ceilings is not None:
        parts += cpu_ceilings(found.ceilings)
    parts += roofline(found)
    parts += measured_run(found)
    parts += held_loads_view(found.held_loads)
    if found.trace is not None:
        parts += traced(found.trace)
        if found.held is not None:
            parts += held_view(found.held, found.trace)
        elif found.trace.decode is not None:
            parts += steps_view(found.trace.decode)
    for attribution in found.attributions:
        parts += attributed(attribution)
    held = found.held.notes if found.held else []
    notes = list(dict.fromkeys([*found.notes, *held, *(note for each in found.attributions for note in each.notes)]))
    if notes:
        parts += [Text("\nto know", style="bold"), bullets(notes)]
    return Group(*parts)
