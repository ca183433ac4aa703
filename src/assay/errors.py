"""Every error that Assay raises on purpose.

    AssayError
    ├── CheckFailed       exit 1   a check did not hold: broken chain, regression
    ├── UsageError        exit 2   the command, assay.toml or a document is wrong
    ├── ApprovalNeeded    exit 3   the policy wants a person's word first
    ├── EngineError       exit 4   the engine is missing, or the baseline does not start
    ├── MeasurementError  exit 5   no valid measurement can be made here
    └── RecordError       exit 6   the record cannot be read or written

An error states what happened, with the values; its hint names the next step. A trial that
fails is not an error: it is a recorded outcome (`assay.records.run.Failure`).
"""

from __future__ import annotations

from typing import ClassVar


class AssayError(Exception):
    """What happened, and what to do next."""

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CheckFailed(AssayError):  # noqa: N818 - a failed check is a finding, not a malfunction
    """A check did not hold."""

    exit_code = 1


class UsageError(AssayError):
    """The command line, assay.toml or an improvement document is wrong."""

    exit_code = 2


class ApprovalNeeded(AssayError):  # noqa: N818 - a state to resolve, not a malfunction
    """The policy asks for a person's approval before this step."""

    exit_code = 3


class EngineError(AssayError):
    """The engine cannot be found, or the baseline itself does not run."""

    exit_code = 4


class MeasurementError(AssayError):
    """No valid measurement can be made under these conditions."""

    exit_code = 5


class RecordError(AssayError):
    """The record cannot be read or written."""

    exit_code = 6
