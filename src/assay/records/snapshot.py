"""A machine at one moment: everything that `assay assess` saw, so that it can be analysed elsewhere and later.

>>> Disk(mount="/", kind="nvme", filesystem="ext4", total_bytes=10, free_bytes=1).free_share
0.1
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.records.base import Frozen
from assay.records.gpu import GpuReading
from assay.records.machine import Machine


class NumaNode(Frozen):
    """Processors and the memory next to them."""

    index: int
    cpus: str
    """As Linux writes lists: `0-31,64-95`."""
    memory_bytes: int | None = None
    free_bytes: int | None = None


class Cache(Frozen):
    """Caches of one level and kind."""

    level: int
    kind: str
    """data, instruction or unified."""
    size_bytes: int = Field(ge=0)
    """Of one."""
    instances: int = Field(ge=1)
    """How many there are."""


class Cpu(Frozen):
    """The processors, beyond what the fingerprint holds."""

    sockets: int | None = None
    nodes: list[NumaNode] = Field(default_factory=list)
    caches: list[Cache] = Field(default_factory=list)
    affinity_cores: int = Field(ge=1)
    """Logical processors that this process may run on."""
    affinity: str | None = None
    """The same as a list."""
    quota_cores: float | None = Field(default=None, gt=0)
    """What the control group allows; None: no limit."""
    frequency_hz: float | None = Field(default=None, ge=0)
    governors: list[str] = Field(default_factory=list)
    frequency_driver: str | None = None
    load_1m: float | None = Field(default=None, ge=0)
    steal_share: float | None = Field(default=None, ge=0, le=1)
    """Of all CPU time since boot, what the hypervisor gave to others; None where the system does not say."""


class Memory(Frozen):
    """Main memory and how it is handed out."""

    available_bytes: int | None = Field(default=None, ge=0)
    limit_bytes: int | None = Field(default=None, ge=0)
    """What the control group allows; None: no limit."""
    swap_bytes: int | None = None
    swap_used_bytes: int | None = None
    hugepages: int | None = None
    """Pages reserved for programs that ask for huge ones."""
    hugepages_free: int | None = None
    hugepage_bytes: int | None = None
    transparent_hugepages: str | None = None
    """always, madvise or never."""
    numa_balancing: bool | None = None
    """Whether the kernel moves pages after the processors that touch them."""


class Disk(Frozen):
    """A file system that a campaign writes to or reads models from, or a large one beside them."""

    mount: str
    kind: str
    """nvme, ssd, hdd, virtual, network, memory, overlay or unknown."""
    filesystem: str
    total_bytes: int = Field(ge=0)
    free_bytes: int = Field(ge=0)
    roles: list[str] = Field(default_factory=list)
    """What it is used for: campaign, models, temporary."""

    @property
    def free_share(self) -> float:
        """What is left of it; undefined on an empty file system, and then none."""
        return self.free_bytes / self.total_bytes if self.total_bytes else 0.0


class Limits(Frozen):
    """What this process may have; None: no limit, or unknown (`unknown` names those)."""

    open_files: int | None = None
    open_files_hard: int | None = None
    locked_bytes: int | None = None
    shm_bytes: int | None = None
    """Size of /dev/shm."""
    shm_free_bytes: int | None = None
    unknown: list[str] = Field(default_factory=list)


class PciGpu(Frozen):
    """A GPU that is on the bus, whether or not a driver serves it."""

    bus_id: str
    vendor: Literal["nvidia", "amd"]


class Xid(Frozen):
    """Errors of one kind that the NVIDIA driver wrote to the kernel's log."""

    code: int
    bus_id: str
    count: int


class Platform(Frozen):
    """What lies between the programs and the hardware."""

    container: str | None = None
    """docker, podman, kubernetes, lxc, or `yes`; None outside of one."""
    virtual_machine: str | None = None
    """The hypervisor's name as the firmware gives it; None on bare metal."""
    kernel_parameters: dict[str, str] = Field(default_factory=dict)
    """Those of the kernel's command line that bear on performance."""
    iommu: str | None = None
    """off, passthrough or translating; None: not known."""
    acs_redirect: bool | None = None
    """Whether PCIe bridges send traffic between devices up to the root; None: only root can read it."""
    pci_gpus: list[PciGpu] = Field(default_factory=list)
    xids: list[Xid] | None = None
    """None: the kernel's log cannot be read without root."""


class Server(Frozen):
    """An inference server that somebody else runs here."""

    port: int | None = None
    """None when it does not listen, or the port is not known to be its own."""
    pid: int | None = None
    """None when it belongs to another user or namespace."""
    program: str | None = None
    engine: str | None = None
    """vllm, sglang, llamacpp, tgi, ollama, trtllm, or openai for one that only speaks the protocol."""
    version: str | None = None
    models: list[str] = Field(default_factory=list)
    settings: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """A few that matter, by the server's own names."""
    problem: str | None = None
    """Why it was not asked, or did not say."""


class MachineSnapshot(Frozen):
    """Everything about a machine at one moment; holds no host name, no user name, no command line."""

    format: Literal[1] = 1
    taken_at: str
    """UTC, ISO 8601."""
    host_hash: str
    """Eight hex digits over the host's name: tells two machines apart and names neither."""
    machine: Machine
    cpu: Cpu
    memory: Memory = Field(default_factory=Memory)
    disks: list[Disk] = Field(default_factory=list)
    limits: Limits = Field(default_factory=Limits)
    platform: Platform = Field(default_factory=Platform)
    gpu: GpuReading = Field(default_factory=GpuReading)
    software: dict[str, str] = Field(default_factory=dict)
    """Versions: packages of this Python by their names, `cuda`, `rocm` and `nccl` of the system."""
    servers: list[Server] = Field(default_factory=list)
