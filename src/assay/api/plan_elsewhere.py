"""The verb that plans for a machine that is somewhere else and an engine that is not installed here.

The GPUs are known by name or from the machine's file, the engine by the recorded flags of its version, the model by
its name. Documents are written as for a plan made on the machine, and say what they rest on. No record is begun: a
record is of the machine that is measured, where the folder is planned again (`assay.api.plan_arrived`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.api.plan_elsewhere_target import Question
    from assay.plan.hypotheses import Plan
    from assay.plan.situation import Situation
    from assay.records.elsewhere import Elsewhere
    from assay.records.state import CampaignState
    from assay.records.views import TodoItem


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedElsewhere:
    """The answer."""

    elsewhere: Elsewhere
    state: CampaignState
    """As it would be recorded there, up to the plan. Of a box by name, processors and memory in it are this machine's:
    no condition has seen them."""

    @property
    def todo(self) -> list[TodoItem]:
        """The documents as a todo list, in the plan's order."""
        from assay.plan.todo import todo

        return todo(self.state)

    @property
    def remaining_s(self) -> float:
        """Expected measuring time in seconds, launches assumed."""
        from assay.plan.forecast import describe_next

        return describe_next(self.state).remaining_s


def plan_elsewhere(folder: Path, question: Question, catalogue: Path | None = None) -> PlannedElsewhere:
    """Write the improvement documents for a machine that is not this one; read edited documents back.

    Args:
        folder: the campaign's folder, with its assay.toml.
        question: which machine, engine version and model.
        catalogue: a catalogue folder that replaces the built-in one.

    Raises:
        UsageError: the folder holds a record, no machine is named, or machine, version, model or a flag is not known.
        RecordError: the folder cannot be written.
    """
    from assay.api.plan import earlier_scores, plan_of
    from assay.api.plan_arrived import withdraw
    from assay.api.plan_documents import abouts
    from assay.api.plan_elsewhere_target import known
    from assay.api.plan_question import declared_spec, refuse_beyond_context
    from assay.api.secret_flags import refuse_secret_deltas
    from assay.catalogue.documents import FolderDocuments
    from assay.store.elsewhere_file import drop_unreadable, read_elsewhere, write_elsewhere

    if (folder / "assay.db").exists():
        raise UsageError(
            f"{folder} holds a record: it was planned on its machine",
            hint="plan for another machine in a folder of its own (copy assay.toml)",
        )
    if question.names_machine:
        drop_unreadable(folder)
    spec, before = declared_spec(folder), read_elsewhere(folder)
    situation, elsewhere = known(spec, question, before)
    refuse_beyond_context(situation.spec, situation.build, situation.model)
    found, state = _with_unknown(plan_of(folder, situation, catalogue), elsewhere), _state(situation)
    refuse_secret_deltas(found.hypotheses)
    documents = FolderDocuments(folder)
    if before is None or _asked(before) != _asked(elsewhere):
        dropped = withdraw(folder, documents)
        kept = documents.fingerprints()
        persons = dict.fromkeys(kept, "edited") | dict.fromkeys(dropped, "removed")
        write_elsewhere(folder, elsewhere.model_copy(update={"documents": persons}))
        wanted = [one for one in found.hypotheses if one.id not in dropped.values()]
        documents.write(wanted, abouts(state, found, earlier_scores(state), elsewhere.label))
        written = documents.fingerprints() | persons
        elsewhere = elsewhere.model_copy(update={"documents": written})
        write_elsewhere(folder, elsewhere)
    hypotheses = documents.read()
    refuse_secret_deltas(hypotheses)
    planned = {"planned": True, "passed_over": found.passed_over, "reasoning": found.reasoning}
    return PlannedElsewhere(elsewhere=elsewhere, state=state.model_copy(update={**planned, "hypotheses": hypotheses}))


def planned_elsewhere(folder: Path) -> PlannedElsewhere | None:
    """The plan of a folder that waits for another machine; None where there is a record, or nothing of the kind.

    Raises:
        UsageError: as `plan_elsewhere`.
    """
    from assay.api.plan_arrived import awaited
    from assay.api.plan_elsewhere_target import Question

    return plan_elsewhere(folder, Question()) if awaited(folder) else None


def _with_unknown(plan: Plan, elsewhere: Elsewhere) -> Plan:
    around = plan.reasoning.surroundings
    told = around.model_copy(update={"missing": [*around.missing, *elsewhere.unknown]})
    return replace(plan, reasoning=plan.reasoning.model_copy(update={"surroundings": told}))


def _state(situation: Situation) -> CampaignState:
    from time import time_ns

    from assay import __version__
    from assay.records.state import CampaignState
    from assay.store.spec_file import spec_hash

    return CampaignState(
        created_at_ns=time_ns(),
        spec=situation.spec,
        spec_hash=spec_hash(situation.spec),
        machine=situation.machine,
        build=situation.build,
        model=situation.model,
        shape=situation.shape,
        assay_version=__version__,
    )


def _asked(elsewhere: Elsewhere) -> Elsewhere:
    """What makes the documents what they are."""
    return elsewhere.model_copy(update={"documents": {}})
