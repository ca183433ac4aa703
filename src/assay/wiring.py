"""The one place that picks concrete adapters for ports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.campaign.bench import Bench
    from assay.ports import Engine, Probe, Progress
    from assay.records.spec import Target
    from assay.records.state import CampaignState
    from assay.store.record import SqliteRecord


def engine(name: str) -> Engine:
    """Load an engine adapter by name, from the entry-point group `assay.engines`.

    Raises:
        UsageError: no adapter has that name.
    """
    known = {point.name: point for point in entry_points(group="assay.engines")}
    if name not in known:
        raise UsageError(
            f"no engine adapter is named {name!r}; known: {', '.join(sorted(known)) or 'none'}",
            hint="set target.engine in assay.toml, or install the adapter's package",
        )
    adapter: Engine = known[name].load()()
    return adapter


def engine_names() -> list[str]:
    """Every adapter's name."""
    return sorted({point.name for point in entry_points(group="assay.engines")})


def probe() -> Probe:
    """The machine probe."""
    from assay.probes.machine import create

    return create()


@contextmanager
def bench(
    folder: Path, record: SqliteRecord, state: CampaignState, target: Target, progress: Progress, host: str
) -> Iterator[Bench]:
    """Everything a campaign works with, a guardian watching over its servers while the block runs."""
    from assay import load, process
    from assay.campaign.bench import Bench
    from assay.catalogue.documents import FolderDocuments
    from assay.engines.launch_prefix import end_orphan
    from assay.process.guardian import guard
    from assay.store.files import CampaignFolder
    from assay.store.redact import secret_values

    with guard() as guardian:
        yield Bench(
            folder=folder,
            engine=engine(state.spec.target.engine),
            load=load.create(),
            probe=probe(),
            record=record,
            files=CampaignFolder(folder, secret_values(target.model_dump(mode="json"))),
            documents=FolderDocuments(folder),
            progress=progress,
            free_port=process.free_port,
            end_recorded=end_orphan,
            end_marked=process.end_marked,
            find_alive=process.find_alive,
            has_open=process.has_open,
            expect=guardian.expect,
            target=target,
            state=state,
            host=host,
        )
