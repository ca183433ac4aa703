"""The machine and the engine build a number belongs to."""

from __future__ import annotations

import hashlib
import json

from pydantic import Field

from assay.records.base import Frozen
from assay.records.launch import LaunchPrefix
from assay.units import GIB_BYTES


class GpuIdentity(Frozen):
    """What of a GPU a measurement depends on."""

    name: str
    memory_bytes: int | None = Field(default=None, ge=0)
    compute_capability: float | None = None
    power_limit_w: float | None = Field(default=None, ge=0)
    pcie_generation: int | None = None
    """The most that the GPU in its slot can: the one in use changes with the load."""
    pcie_width: int | None = None
    """Lanes in use."""
    nvlinks: int | None = None
    """Links that are up."""
    ecc: bool | None = None
    mig: bool | None = None


class Machine(Frozen):
    """What the machine is; two machines whose fingerprints differ never share statistics."""

    cpu_model: str
    physical_cores: int = Field(ge=1)
    logical_cores: int = Field(ge=1)
    usable_cores: int = Field(ge=1)
    """Cores this process may run on (affinity and cgroup quota)."""
    isa: list[str]
    """Vector extensions that matter to engines (avx2, avx512f, amx_tile, neon ...)."""
    memory_bytes: int = Field(ge=1)
    numa_nodes: int = Field(ge=1)
    kernel: str
    os: str
    python: str
    hypervisor: bool
    gpus: list[GpuIdentity] = Field(default_factory=list)
    gpu_driver_major: int | None = None

    @property
    def fingerprint(self) -> str:
        """Twelve hex digits over what a measurement depends on (kernel and Python versions left out).

        Memory counts in whole GiB: what is left of it for programs changes by some MB with the kernel, and machines
        of one kind lent one after the other would each be another one.
        What only machines with GPUs have is left out where there are none: their fingerprints stay what they were
        before GPUs were looked at.
        """
        without = {"kernel", "python", "os"} | (set() if self.gpus else {"gpus", "gpu_driver_major"})
        facts = self.model_dump(exclude=without) | {"memory_bytes": round(self.memory_bytes / GIB_BYTES) * GIB_BYTES}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]


class Finding(Frozen):
    """Something about this machine that will spoil or bound a measurement."""

    severity: str
    """blocker, warning or note."""
    title: str
    evidence: str
    remedy: str
    rule: str = ""
    """Name of the rule that says so, for programs."""


class FlagInfo(Frozen):
    """One flag of the installed build, from its own help."""

    names: list[str]
    """Every spelling: `-c`, `--ctx-size`."""
    value: str | None
    """The help's placeholder for its value; None for a bare switch."""
    choices: list[str] = Field(default_factory=list)
    default: str | None = None
    help: str = ""
    removed: bool = False
    """The build still parses it, only to say that it is gone."""


class EngineBuild(Frozen):
    """One installed engine: its program and what that program says of itself."""

    engine: str
    argv: list[str]
    """How it is started, before any flag."""
    version: str
    source: str
    """Where it was found: PATH, a given path, or the embedded wheel."""
    flags: list[FlagInfo]
    launch: LaunchPrefix | None = None
    """What its commands are wrapped in; `argv` are the engine's own words."""
    variables: list[str] = Field(default_factory=list)
    """Names of environment variables that are handed through the wrapping; their values are kept nowhere."""

    def flag(self, name: str) -> FlagInfo | None:
        """Find a flag by any of its spellings."""
        return next((info for info in self.flags if name in info.names), None)


class ModelFacts(Frozen):
    """What the model file says of itself."""

    path: str
    sha256: str
    size_bytes: int | None
    """None: on a server that somebody else runs."""
    architecture: str
    quantization: str
    num_layers: int | None = None
    context_length: int | None = None
    num_experts: int | None = None
    name: str = ""
    license: str = ""
