"""A folder that was planned for another machine: is this that machine, and what becomes of its documents here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.catalogue.documents import FolderDocuments
    from assay.records.elsewhere import Elsewhere
    from assay.records.machine import Machine


def awaited(folder: Path) -> Elsewhere | None:
    """For which machine a folder was planned from afar; None: it was not, or was planned on its machine since.

    Raises:
        UsageError: the file that says so cannot be read.
    """
    from assay.store.elsewhere_file import read_elsewhere

    return None if (folder / "assay.db").exists() else read_elsewhere(folder)


def is_here(elsewhere: Elsewhere) -> bool:
    """Whether this is the machine that a folder was planned for."""
    from assay import wiring

    return is_for(elsewhere, wiring.probe().machine())


def is_for(elsewhere: Elsewhere, machine: Machine) -> bool:
    """Whether this is the machine: by the fingerprint in its file, or by number and kind of the GPUs that were named.

    Args:
        elsewhere: what was planned.
        machine: the one that is to be measured.
    """
    if elsewhere.snapshot is not None:
        return elsewhere.snapshot.machine.fingerprint == machine.fingerprint
    return _has(machine, elsewhere.box or "")


def refuse_elsewhere(folder: Path) -> None:
    """What is planned for another machine is not measured on this one.

    Raises:
        UsageError: the folder waits for another machine.
    """
    from assay import wiring
    from assay.render.words import gpu_words

    elsewhere = awaited(folder)
    if elsewhere is None or is_for(elsewhere, machine := wiring.probe().machine()):
        return
    raise UsageError(
        f"{folder} was planned for another machine, {elsewhere.machine}; this one has "
        f"{gpu_words(machine.gpus) or 'no GPU'} (fingerprint {machine.fingerprint})",
        hint="copy the folder to that machine and call `assay run` in it: it is planned again there with the installed "
        "engine, and documents that you edited stay; to measure on this machine, copy assay.toml into a new folder",
    )


def withdraw(folder: Path, documents: FolderDocuments) -> dict[str, str]:
    """Before documents are written anew, on their own machine or for another one: those that nobody edited go.

    What a person edited or removed is written down first: whoever is killed in here has lost nothing that a person did.

    Returns:
        Those that a person removed, which are not to be written again: file names with the ids of their hypotheses.
    """
    from assay.catalogue.documents import named
    from assay.store.elsewhere_file import read_elsewhere, write_elsewhere

    elsewhere = read_elsewhere(folder)
    if elsewhere is None:
        return {}
    there, written = documents.fingerprints(), elsewhere.documents
    dropped = written.keys() - there.keys()
    touched = [name for name, found in there.items() if written.get(name) != found]
    remembered = dict.fromkeys(touched, "edited") | dict.fromkeys(dropped, "removed")
    write_elsewhere(folder, elsewhere.model_copy(update={"documents": remembered}))
    documents.withdraw(written)
    return {name: named(name) for name in dropped}


def _has(machine: Machine, wanted: str) -> bool:
    from assay.probes.devices import box

    try:
        asked, here = box(wanted), box(machine.gpus[0].name) if machine.gpus else None
    except UsageError:  # GPUs of a kind that is not known are not those that were named
        return False
    return here is not None and here.device.id == asked.device.id and len(machine.gpus) >= asked.count
