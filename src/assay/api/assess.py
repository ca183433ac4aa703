"""The verb that takes stock: assess."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.api.init import SPEC
from assay.errors import AssayError, UsageError

if TYPE_CHECKING:
    from assay.records.assessment import Assessment


def assess(folder: Path | None = None, *, machine: Path | None = None, save: Path | None = None) -> Assessment:
    """Take stock of the machine, the engine and the model; with a folder, of its target and its record.

    Args:
        folder: a campaign's.
        machine: a file that `save` wrote: that machine is analysed, and neither engine nor model are looked for.
        save: where to write what was seen of this machine, without secrets.

    Raises:
        UsageError: the machine's file cannot be read, or both files were given.
        RecordError: `save` cannot be written.
    """
    from assay.probes.findings import findings
    from assay.records.assessment import Assessment
    from assay.store.machine_file import read_machine, write_machine

    if machine and save:
        raise UsageError(f"{machine} is saved already: --machine and --save contradict", hint="copy the file")
    if machine:
        seen = read_machine(machine)
        elsewhere = "not looked for: the machine is in a file"
        return Assessment(
            machine=seen.machine, build=None, build_problem=elsewhere, model=None, model_problem=elsewhere,
            findings=findings(seen), record=None, snapshot=seen, machine_file=str(machine),
        )  # fmt: skip
    found = _assess_here(folder)
    if save and found.snapshot:
        write_machine(save, found.snapshot)
    return found


def _assess_here(folder: Path | None) -> Assessment:
    from assay import wiring
    from assay.probes.findings import findings
    from assay.probes.machine import MachineProbe
    from assay.records.assessment import Assessment
    from assay.records.spec import CampaignSpec
    from assay.store.spec_file import read_spec

    spec = read_spec(folder / SPEC) if folder and (folder / SPEC).exists() else CampaignSpec()
    engine = wiring.engine(spec.target.engine)
    build = build_problem = model = model_problem = None
    try:
        build = engine.find(spec.target)
    except AssayError as error:
        build_problem = f"{error.message}; {error.hint}"
    try:
        model = engine.model(spec.target)
    except AssayError as error:
        model_problem = f"{error.message}; {error.hint}"
    seen = MachineProbe(folder=folder if folder and folder.is_dir() else None).stock()
    return Assessment(
        machine=seen.machine,
        build=build,
        build_problem=build_problem,
        model=model,
        model_problem=model_problem,
        findings=findings(seen),
        record=_record_sentence(folder),
        snapshot=seen,
    )


def _record_sentence(folder: Path | None) -> str | None:
    from assay.api.inspect import status

    if folder is None:
        return None
    try:
        state = status(folder)
    except UsageError:  # there is none
        return None
    done = sum(1 for run in state.runs if run.outcome)
    return (
        f"{done} runs, {len(state.verdicts)} verdicts of {len(state.hypotheses)} hypotheses, {state.num_events} events"
    )
