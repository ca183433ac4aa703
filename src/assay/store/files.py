"""The campaign folder: where everything lies, and the files of its runs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.errors import RecordError
from assay.records.load import RequestSample
from assay.store.atomic import TEMPORARY_PREFIX, atomic_write
from assay.store.disk import disk_errors
from assay.store.log_file import mask_log, mask_values
from assay.store.redact import redact, secret_values

SAMPLES_NAME = "samples.parquet"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


class CampaignFolder:
    """A campaign on disk. Files are whole or absent, and whatever cannot be written is said as a RecordError."""

    def __init__(self, path: Path, secrets: frozenset[str] = frozenset()) -> None:
        """Remember the folder.

        Args:
            path: of the campaign.
            secrets: values that its target holds: masked in every log, also of a run that an earlier Assay left open.
        """
        self.path = path
        self._known = secrets
        self._secrets: dict[str, frozenset[str]] = {}
        """What was masked in the files of a run of this session: masked in its logs too."""

    @property
    def spec(self) -> Path:
        """The question: `assay.toml`."""
        return self.path / "assay.toml"

    @property
    def database(self) -> Path:
        """The record."""
        return self.path / "assay.db"

    @property
    def improvements(self) -> Path:
        """Folder of the improvement documents."""
        return self.path / "improvements"

    @property
    def runs(self) -> Path:
        """Folder of the runs' folders."""
        return self.path / "runs"

    @property
    def report(self) -> Path:
        """Folder of the generated report."""
        return self.path / "report"

    def folder(self, run_id: str) -> Path:
        """`runs/<run id>`, made when absent.

        Raises:
            RecordError: it cannot be made, or the id is no plain name.
        """
        folder = self._run(run_id)
        with disk_errors(folder, "write"):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def write_samples(self, run_id: str, samples: Sequence[RequestSample]) -> None:
        """`samples.parquet`, atomically.

        Raises:
            RecordError: it cannot be written.
        """
        from assay.store.samples import to_parquet  # noqa: PLC0415 - pyarrow is slow to import, few commands need it

        self._write(self.folder(run_id) / SAMPLES_NAME, to_parquet(samples))

    def read_samples(self, run_id: str) -> list[RequestSample]:
        """The samples of a run, in the order they were written.

        Raises:
            RecordError: there are none, or they are damaged.
        """
        from assay.store.samples import read_parquet  # noqa: PLC0415 - pyarrow is slow to import, few commands need it

        path = self._run(run_id) / SAMPLES_NAME
        with disk_errors(path, "read"):
            return read_parquet(path)

    def write_json(self, run_id: str, name: str, content: dict[str, Any]) -> None:
        """A JSON file, atomically, secrets redacted.

        Raises:
            RecordError: it cannot be written, or is not JSON.
        """
        self._secrets[run_id] = self._of(run_id) | secret_values(content)
        try:
            text = json.dumps(redact(content), indent=2, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise RecordError(
                f"{name} of run {run_id} is not JSON: {error}", hint="record None with a reason"
            ) from error
        self._write(self.folder(run_id) / _plain(name), f"{text}\n".encode())

    def masked(self, run_id: str, content: dict[str, Any]) -> dict[str, Any]:
        """JSON-like content without the secrets that this run was started with, wherever they stand in it."""
        secrets = self._of(run_id)
        if not secrets:
            return content
        return {name: _without(item, secrets) for name, item in content.items()}

    def hashes(self, run_id: str) -> dict[str, str]:
        """SHA-256 of every file of a run, by path within its folder; unfinished writes are left out.

        Its logs, which the engine wrote itself, are masked first.

        Raises:
            RecordError: a file cannot be read or masked.
        """
        folder = self._run(run_id)
        for log in folder.glob("*.log"):
            mask_log(log, self._of(run_id))
        with disk_errors(folder, "read"):
            files = sorted(path for path in folder.rglob("*") if path.is_file())
        kept = (path for path in files if not path.name.startswith(TEMPORARY_PREFIX))
        return {path.relative_to(folder).as_posix(): file_sha256(path) for path in kept}

    def _of(self, run_id: str) -> frozenset[str]:
        return self._secrets.get(run_id, self._known)

    def _run(self, run_id: str) -> Path:
        return self.runs / _plain(run_id)

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        with disk_errors(path, "write"):
            atomic_write(path, content)


def _without(content: Any, secrets: frozenset[str]) -> Any:
    if isinstance(content, dict):
        return {name: _without(item, secrets) for name, item in content.items()}
    if isinstance(content, list):
        return [_without(item, secrets) for item in content]
    return mask_values(content, secrets) if isinstance(content, str) else content


def file_sha256(path: Path) -> str:
    """Hash a file's content.

    Raises:
        RecordError: it cannot be read.
    """
    with disk_errors(path, "read"), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plain(name: str) -> str:
    """Refuse names that would leave their folder."""
    if not _PLAIN_NAME.fullmatch(name):
        raise RecordError(
            f"{name!r} cannot name a file or a run", hint="letters, digits, `_`, `.`, `+` and `-`, no folder in it"
        )
    return name
