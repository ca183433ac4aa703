"""A plan that was made here for a machine that is somewhere else: what it rests on, and what it could not know."""

from __future__ import annotations

from pydantic import Field

from assay.records.base import Frozen
from assay.records.snapshot import MachineSnapshot


class Elsewhere(Frozen):
    """For whom a folder's documents were written, and from what; nothing of it was measured."""

    box: str | None = None
    """As it was asked for, `8xRTX-PRO-6000`: data sheets stand for it. None: the machine's file was given."""
    snapshot: MachineSnapshot | None = None
    """What `assay assess --save` saw there."""
    machine: str
    """In words."""
    version: str | None = None
    """Of the engine, as it was asked for; None: the one in assay.toml, else the newest recorded one."""
    engine: str
    """With its version, as "SGLang 0.5.9"."""
    flags_from: str
    """Where the engine's flags are known from."""
    model: str | None = None
    """What was named for the model's shape; None: the name of the target's own model told it."""
    shape: str
    """Name of the shape that was calculated with."""
    spec_hash: str
    """Of the question in assay.toml as it then was."""
    documents: dict[str, str] = Field(default_factory=dict)
    """Documents that were there, with the SHA-256 of each as it was written: what still has it nobody edited. Of one
    that a person edited before, "edited"; of one that a person removed, "removed"."""

    @property
    def label(self) -> str:
        """Who this is for, and from what: for the head of whatever shows it."""
        return (
            f"Made for another machine, {self.machine}, from the recorded flags of {self.engine} ({self.flags_from}): "
            "nothing was measured or asked there. It is planned again on that machine before anything is measured."
        )

    @property
    def unknown(self) -> list[str]:
        """What only the machine itself can tell, and what stands for it here."""
        seen = self.snapshot
        machine = (
            "processors, memory, NUMA nodes, driver and topology: nothing stands for them, and what hangs on them is "
            "undecided (`assay assess --save FILE` there, then --machine FILE here)"
        )
        has_gpus = seen is None or bool(seen.machine.gpus)
        rates = (
            "the rates of its GPUs and links: data sheets and measurements elsewhere stand for them (`assay "
            "characterize` measures them there)"
            if has_gpus
            else "the rates of its memory and processors: nothing stands for them (`assay characterize` measures them "
            "there)"
        )
        return [
            f"the machine as it is now: it is taken as its file saw it on {seen.taken_at}" if seen else machine,
            rates,
            f"the engine as it is installed there, patches included: recorded flags of {self.engine} stand for it",
            f"the files of the model: the known shape {self.shape} stands for them",
            "how noisy the machine is: no effect is called real before the campaign's own calibration",
        ]
