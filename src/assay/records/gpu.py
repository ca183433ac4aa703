"""What a GPU says of itself, how it is right now, and how it is joined to its neighbours."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.records.base import Frozen
from assay.records.device import Fact


class PcieLink(Frozen):
    """The link of one GPU to its host. An idle link may run at a lower generation than it can: that is power saving."""

    generation: int | None = None
    width: int | None = None
    """Lanes in use."""
    max_generation: int | None = None
    """The most that this GPU in this slot can."""
    max_width: int | None = None
    gpu_max_generation: int | None = None
    """The most that the GPU could in a better slot."""
    replays: int | None = None
    """Packets sent again since the driver was loaded: a count that grows means a bad contact."""


class Clocks(Frozen):
    """Clocks of the processor (SM) and of the memory."""

    sm_hz: float | None = None
    sm_max_hz: float | None = None
    sm_application_hz: float | None = None
    """The clock that applications are told to take; None where the driver has no such setting."""
    sm_application_default_hz: float | None = None
    memory_hz: float | None = None
    memory_max_hz: float | None = None


class Power(Frozen):
    """Power in watts."""

    draw_w: float | None = Field(default=None, ge=0)
    limit_w: float | None = Field(default=None, ge=0)
    default_limit_w: float | None = None
    max_limit_w: float | None = None


class Ecc(Frozen):
    """Error correction of the memory, counts since the driver was loaded."""

    enabled: bool | None = None
    pending: bool | None = None
    """What it will be after the next reset."""
    corrected: int | None = None
    uncorrected: int | None = None
    remap_pending: bool | None = None
    """A row of memory is to be replaced at the next reset."""
    remap_failed: bool | None = None


class GpuProcess(Frozen):
    """A process that holds memory of a GPU."""

    pid: int
    program: str | None = None
    """None when it belongs to another namespace or user."""
    memory_bytes: int | None = None
    kind: Literal["compute", "graphics"] = "compute"


class Gpu(Frozen):
    """One GPU. What it would not say is None, and `missing` has the reason under the field's name."""

    index: int
    vendor: Literal["nvidia", "amd"] = "nvidia"
    name: str
    id_hash: str = ""
    """Twelve hex digits over its unique id: tells two GPUs of one kind apart and names neither."""
    bus_id: str | None = None
    architecture: str | None = None
    """`sm_120`, `gfx942`."""
    compute_capability: float | None = None
    sms: Fact | None = None
    smem_per_block_bytes: Fact | None = None
    """The most shared memory that a block may ask for."""
    l2_bytes: Fact | None = None
    memory_bytes: int | None = Field(default=None, ge=0)
    memory_used_bytes: int | None = Field(default=None, ge=0)
    bar1_bytes: int | None = None
    """The window through which the host and other devices reach its memory."""
    clocks: Clocks = Field(default_factory=Clocks)
    power: Power = Field(default_factory=Power)
    temperature_c: float | None = None
    slowdown_temperature_c: float | None = None
    throttle_reasons: list[str] | None = None
    """Why the clock is not higher right now: `sw-power-cap`, `hw-thermal`, `idle` ..."""
    performance_state: int | None = None
    """0 is full speed, 8 and above idle."""
    utilization: float | None = None
    """Share of the last moments in which a kernel ran."""
    ecc: Ecc = Field(default_factory=Ecc)
    mig_enabled: bool | None = None
    mig_instances: int | None = None
    persistence: bool | None = None
    compute_mode: str | None = None
    """default, exclusive-process or prohibited."""
    pcie: PcieLink = Field(default_factory=PcieLink)
    nvlinks_active: int | None = None
    nvlinks_inactive: int | None = None
    nvlink_version: str | None = None
    fabric: str | None = None
    """State of the NVSwitch fabric: not-supported, not-started, in-progress or completed."""
    numa_node: int | None = None
    cpus: str | None = None
    """Logical processors near it, as Linux writes lists: `0-31,64-95`."""
    processes: list[GpuProcess] | None = None
    lost: str | None = None
    """Why it does not answer any more, when it does not."""
    missing: dict[str, str] = Field(default_factory=dict)


class GpuPair(Frozen):
    """How two GPUs reach each other."""

    a: int
    b: int
    level: str | None = None
    """What lies between them: internal, switch (one PCIe switch), switches, host-bridge, node, system (between
    sockets), nvlink, xgmi."""
    p2p_read: str | None = None
    """`ok`, or why peer-to-peer access is not possible."""
    p2p_write: str | None = None


class GpuReading(Frozen):
    """Everything about the GPUs of a machine; without any, why."""

    gpus: list[Gpu] = Field(default_factory=list)
    pairs: list[GpuPair] = Field(default_factory=list)
    driver: str | None = None
    cuda: str | None = None
    """The newest CUDA that the driver can serve."""
    problem: str | None = None
    """Why there are none, or why they cannot be asked."""
