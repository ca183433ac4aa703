"""What a processor, its links and a whole box can do: each number with where it comes from.

>>> fact = Fact(value=4.09e12, unit="bytes/s", basis="measured", source="read benchmark of this box")
>>> fact.value / 1e12
4.09
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.records.base import Frozen

Basis = Literal["measured", "elsewhere", "spec", "assumed"]
"""measured here; measured elsewhere on the same kind; a data sheet; nobody measured it, a stated assumption."""
Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "point_to_point"]


class Fact(Frozen):
    """One number about a device."""

    value: float
    unit: str
    """SI: bytes, bytes/s, flop/s, s, w, hz, or 1 for a count."""
    basis: Basis
    source: str
    date: str = ""
    """Of the measurement or the page, YYYY-MM or YYYY-MM-DD."""


class Device(Frozen):
    """A GPU, or a CPU with its memory.

    Names of facts: `memory_bytes`, `memory_read_bytes_per_s` (what a kernel that only reads can reach; a data sheet's
    bandwidth stands here with basis spec), `memory_copy_bytes_per_s`, `l2_bytes`, `l2_read_bytes_per_s`,
    `smem_per_block_bytes`, `sms`, `compute_capability` (12.0), `fp32_flop_per_s`, `bf16_flop_per_s`,
    `fp8_flop_per_s`, `fp4_flop_per_s`, `int8_flop_per_s` (dense), `launch_s` (one kernel inside a replayed graph),
    `power_w`, `link_bytes_per_s` (one direction, to its peers), `host_link_bytes_per_s`, `cores`.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    name: str
    kind: Literal["gpu", "cpu"]
    aliases: list[str] = Field(default_factory=list)
    """Other spellings that users and drivers give it."""
    link: str = ""
    """How several are joined: `NVLink 4`, `PCIe 5.0 x16, two sockets`."""
    facts: dict[str, list[Fact]]
    """Every fact known under a name: spec and measured never share a field. The best one is `fact(name)`."""

    def fact(self, name: str) -> Fact | None:
        """The fact to calculate with: measured here, else elsewhere, else spec, else assumed."""
        order = ("measured", "elsewhere", "spec", "assumed")
        return min(self.facts.get(name, []), key=lambda fact: order.index(fact.basis), default=None)


class LinkPoint(Frozen):
    """One measured message size."""

    message_bytes: float = Field(gt=0)
    """Bytes that one rank contributes."""
    time_s: float = Field(gt=0)


class LinkCurve(Frozen):
    """How long a collective takes: points where there are some, else latency and bandwidth."""

    collective: Collective
    world: int = Field(ge=2)
    """Ranks that take part."""
    algorithm: str = "default"
    """`nccl`, `one-shot`, `mscclpp` ..."""
    latency_s: float = Field(ge=0)
    """alpha: what an empty message costs."""
    bus_bytes_per_s: float = Field(gt=0)
    """beta: bus bandwidth as nccl-tests define it (bytes on the busiest link per second)."""
    points: list[LinkPoint] = Field(default_factory=list)
    """Measured times by size, ascending; used between the smallest and the largest, alpha and beta outside."""
    max_message_bytes: float | None = None
    """The algorithm does not act above this size (MSCCL++ in SGLang: 1 MiB by default)."""
    basis: Basis
    source: str


class Box(Frozen):
    """Devices of one kind joined in one machine."""

    device: Device
    count: int = Field(ge=1)
    curves: list[LinkCurve] = Field(default_factory=list)
    """Of collectives between them; where there are none, an assumed ring over `link_bytes_per_s`."""

    @property
    def name(self) -> str:
        """`8x RTX PRO 6000 Blackwell Server`."""
        return f"{self.count}x {self.device.name}"
