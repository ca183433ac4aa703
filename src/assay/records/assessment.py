"""What `assay assess` found; never stored in a record."""

from __future__ import annotations

from assay.records.base import Frozen
from assay.records.machine import EngineBuild, Finding, Machine, ModelFacts
from assay.records.snapshot import MachineSnapshot


class Assessment(Frozen):
    """What `assay assess` found."""

    machine: Machine
    build: EngineBuild | None
    build_problem: str | None
    """Why there is no engine build, when there is none."""
    model: ModelFacts | None
    model_problem: str | None
    findings: list[Finding]
    record: str | None
    """What the campaign's record holds already, in one sentence."""
    snapshot: MachineSnapshot | None = None
    """Everything that was seen of the machine."""
    machine_file: str | None = None
    """The file that the machine was read from; None: the one Assay runs on."""

    @property
    def blocked(self) -> bool:
        """Whether anything found here makes a campaign impossible; of a machine in a file, only the machine counts."""
        blocker = any(finding.severity == "blocker" for finding in self.findings)
        return blocker or (self.machine_file is None and (self.build is None or self.model is None))
