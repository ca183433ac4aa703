"""A launch command as it was read, and what is wrong with its flags.

>>> said = Evidence(source="sglang 0.5.9 wheel", basis="source")
>>> Finding(kind="dead", severity="warning", flags=["--x"], what="unread", evidence=[said], remedy="drop it").kind
'dead'
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.records.base import Frozen

EngineName = Literal["sglang", "vllm", "trtllm", "llamacpp"]
Severity = Literal["error", "warning", "note"]
"""error: the engine does not start, or stops at the first request; warning: it starts and does something else than the
command says; note: worth knowing."""
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
Kind = Literal[
    "unknown",
    "ambiguous",
    "renamed",
    "removed",
    "not-yet",
    "bad-value",
    "missing-value",
    "stray-word",
    "contradiction",
    "needs",
    "substituted",
    "dead",
    "inert",
    "deprecated",
    "repeated",
    "capped",
    "default",
]
"""unknown: this engine never had it; not-yet: a later version has it; needs: it stands for nothing, or stops the
engine, without another; substituted: another value or flag acts in its place; dead: nothing in the engine's source
reads it; inert: it cannot act in this configuration; capped: something else bounds it first; default: it says what
would be so anyway."""


class Evidence(Frozen):
    """Why a finding is believed."""

    source: str
    """File, pull request, issue or wheel; or the help of the installed engine."""
    basis: Literal["help", "history", "source", "rule", "calculation"]
    """The engine's own help; recorded versions; the engine's source, scanned; a rule with its source; arithmetic."""


class GivenFlag(Frozen):
    """One flag as it was written."""

    name: str
    values: list[str] = Field(default_factory=list)
    """The words that belong to it; empty for a bare switch."""
    joined: bool = False
    """Written as `--flag=value`."""

    @property
    def written(self) -> str:
        """As it would be typed."""
        if not self.values:
            return self.name
        return f"{self.name}={self.values[0]}" if self.joined else " ".join([self.name, *self.values])


class Launch(Frozen):
    """A launch command, taken apart; nothing of it was given to a shell."""

    engine: EngineName
    program: list[str]
    """The words that start the engine: `python -m sglang.launch_server`, `vllm serve`."""
    wrapper: list[str] = Field(default_factory=list)
    """What stands before it: `docker run`, `srun`, `numactl`."""
    image: str | None = None
    """Of a container."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables that the command itself sets; secrets are masked."""
    flags: list[GivenFlag] = Field(default_factory=list)
    positionals: list[str] = Field(default_factory=list)

    @property
    def num_given(self) -> int:
        """Flags on the command line."""
        return len(self.flags)


class Finding(Frozen):
    """Something about one flag, or about several together."""

    kind: Kind
    severity: Severity
    flags: list[str]
    """As written; the first is the one to look at."""
    what: str
    evidence: list[Evidence] = Field(min_length=1)
    remedy: str
    replacement: str | None = None
    """What to write instead, where one flag or value takes its place."""
    rule: str = ""
    """Name of the rule that says so; empty where it comes from the flags alone."""


class Undecided(Frozen):
    """A condition that could not be decided, because something is not known here."""

    rule: str
    flags: list[str]
    reason: str
    """Which facts are missing."""


class DoctorReport(Frozen):
    """What the flags of one launch command mean to one version of an engine."""

    schema_version: int = 1
    engine: EngineName
    version: str
    """That the flags were held against."""
    version_from: str
    """`--engine-version`, the installed package, the image's tag, or the newest known version."""
    knowledge: str
    """Where the flags of that version are known from."""
    model: str | None = None
    box: str | None = None
    launch: Launch
    findings: list[Finding]
    """Worst first."""
    clean: list[str]
    """Flags without a finding, as written."""
    undecided: list[Undecided] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)

    @property
    def num_errors(self) -> int:
        """Findings that keep the engine from working."""
        return sum(finding.severity == "error" for finding in self.findings)
