"""The end of `assay demo` and `assay run`: verdicts, headline, reasons, the command to ship, the report's path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay import api
from assay.cli.failure import fail_after_shown
from assay.cli.output import show, show_json
from assay.errors import MeasurementError

if TYPE_CHECKING:
    from assay.records.state import CampaignState


def conclude(folder: Path, state: CampaignState, *, limits: list[str], as_json: bool) -> None:
    """Show what the campaign found; where that is nothing of any candidate, it is a failure all the same.

    Args:
        folder: the campaign's.
        state: its record as it is now.
        limits: what this campaign cannot claim, a sentence each.
        as_json: one document for programs.

    Raises:
        MeasurementError: the campaign is finished and measured no candidate; for programs click's Exit instead.
    """
    _show(folder, state, limits, as_json=as_json)
    if why := api.nothing_measured(state):
        hint = "begin again in a new folder: with a larger budget.total_s, or on a quieter machine; this record stands"
        fail_after_shown(MeasurementError(f"no candidate was measured: {why}", hint=hint), as_json=as_json)


def _show(folder: Path, state: CampaignState, limits: list[str], *, as_json: bool) -> None:
    page = folder / "report" / "index.html"
    command = api.export(folder) if state.headline else None
    if as_json:
        show_json(_document(folder, state, command, limits))
        return
    from assay.render import next_facts, terminal

    show(terminal.verdict_table(state), terminal.headline_panel(state))
    if len(state.verdicts) > len(state.stack):
        show("Not adopted, and why:\n", terminal.reasons(state), "")
    if left := next_facts.counted(state):
        show(f"What next: {left}; the report says what each would take.\n")
    if command:
        show(f"{_about_the_command(state)}\n", command)
    if limits:
        show("What this campaign cannot claim:", *(f"- {limit}" for limit in limits), "")
    show(f"report: {page}")


def quick_limits(state: CampaignState) -> list[str]:
    """What a campaign with the quick demo's small budget cannot claim."""
    budget, noise = state.spec.budget, state.calibration
    undecided = sum(1 for verdict in state.verdicts.values() if verdict.kind == "undecided")
    smallest = "unknown, for the box was not calibrated"
    if noise is not None:
        smallest = f"about {100 * noise.min_detectable_effect:.0f}% on this box"
    brackets = f"at no more than {budget.max_brackets} brackets each"
    return [
        f"that a candidate does nothing: {undecided} of {len(state.verdicts)} ended undecided, {brackets}",
        f"small gains: the smallest effect that this budget finds is {smallest}",
        f"a narrow headline: it rests on {budget.confirmation_brackets} brackets of fresh runs",
        "anything about the optimizations that it left out; `assay demo` without --quick tries more, more often",
    ]


def _about_the_command(state: CampaignState) -> str:
    if state.spec.target.url is not None:
        return "Nothing to ship: the server is not ours. The command that measures it again:"
    if not state.stack:
        nothing_was = "measured" if api.nothing_measured(state) else "adopted"
        return f"Launch command to ship (the baseline: nothing was {nothing_was}):"
    if state.headline and state.headline.confirmed:
        return "Launch command to ship:"
    return "Launch command of the baseline (the stack is NOT confirmed; measure longer before you ship it):"


def _document(folder: Path, state: CampaignState, command: str | None, limits: list[str]) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "finished": state.headline is not None,
        "headline": state.headline.model_dump(mode="json") if state.headline else None,
        "stack": state.stack,
        "verdicts": {name: verdict.model_dump(mode="json") for name, verdict in state.verdicts.items()},
        "launch_command": command,
        "report": str(folder / "report" / "index.html"),
        "cannot_claim": limits,
    }
