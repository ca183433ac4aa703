"""What the roofline says of a model on a box: times of operations, sums, memory, and what would help at most.

>>> Range(low=1.0, mid=2.0, high=4.0).scaled(0.5)
Range(low=0.5, mid=1.0, high=2.0)
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.records.base import Frozen
from assay.records.device import Basis, Collective
from assay.records.range import Range as Range  # noqa: PLC0414 - told here; it stands alone for light readers

Bound = Literal["compute", "memory", "communication", "launch"]
Phase = Literal["prefill", "decode"]


class Layout(Frozen):
    """How a model is spread over devices; tp * pp * dp devices in all.

    `ep` ranks share the routed experts (1: every rank has a slice of each expert, as plain TP does); with `dp > 1` the
    attention is replicated and the batch split.
    """

    tp: int = Field(default=1, ge=1)
    pp: int = Field(default=1, ge=1)
    dp: int = Field(default=1, ge=1)
    ep: int = Field(default=1, ge=1)

    @property
    def devices(self) -> int:
        """Devices in all."""
        return self.tp * self.pp * self.dp

    @property
    def name(self) -> str:
        """`tp8`, `tp8 ep8`, `tp2 dp4 ep8`."""
        parts = [f"{key}{value}" for key, value in self.model_dump().items() if value > 1]
        return " ".join(parts) or "tp1"


class OperatingPoint(Frozen):
    """What is computed in one step."""

    phase: Phase
    sequences: int = Field(ge=1)
    """Sequences in the step, over the whole box: the running batch of decode, the prompts of a prefill."""
    context_tokens: int = Field(ge=0)
    """Tokens of each sequence in the cache before the step."""
    new_tokens: int = Field(default=1, ge=1)
    """Tokens that each sequence computes in the step: 1 in decode, the prompt's (or chunk's) in prefill."""

    @property
    def tokens(self) -> int:
        """Tokens of the step over the whole box."""
        return self.sequences * self.new_tokens


class Routing(Frozen):
    """How tokens spread over experts."""

    law: Literal["uniform", "zipf"] = "uniform"
    exponent: float = Field(default=0.0, ge=0)
    """Of Zipf: expert r is chosen in proportion to r**-exponent."""


class OpTime(Frozen):
    """One kind of operation in a step, over all layers that have it, on the busiest rank."""

    name: str
    """`routed_experts.gate_up`, `attention.scores`, `all_reduce.attention` ..."""
    part: str
    """Its matrix's part, or `attention_core`, `communication`, `elementwise`, `sampling`."""
    calls: int = Field(ge=0)
    """Launches in one step."""
    flops: float = Field(ge=0)
    read_bytes: float = Field(ge=0)
    """Bytes moved to and from device memory (wire bytes for communication)."""
    compute: str | None = None
    """The arithmetic it runs in; None for communication."""
    collective: Collective | None = None
    message_bytes: float | None = None
    """Of one collective call, per rank."""
    floor_s: float = Field(ge=0)
    """max(flops / ceiling, bytes / bandwidth): no kernel is faster."""
    floor_bytes: float = Field(default=0.0, ge=0)
    """Bytes of device memory that the floor counts: unavoidable, and not kept by the last-level cache."""
    time_s: Range
    """Expected: the floor over the efficiency that such kernels reach, plus launches."""
    bound: Bound
    basis: list[Basis]
    """What the ceilings that bind it rest on, worst last: bandwidth where it is bound by memory, and so on."""

    @property
    def speed_of_light(self) -> float | None:
        """Floor / expected; None when nothing is expected to take no time."""
        return self.floor_s / self.time_s.mid if self.time_s.mid > 0 else None


Scheduling = Literal["serial", "overlapped"]
"""serial: the next step is prepared when this one has ended; overlapped: while the device computes it."""
Graphs = Literal["all", "decode", "none"]
"""Steps whose kernels are replayed from captured graphs; in the others the host launches them one by one."""


class Host(Frozen):
    """How an engine's host shares a step with the device."""

    engine: str = ""
    """Whose costs are taken; empty, or unknown: those of no engine in particular."""
    scheduling: Scheduling = "overlapped"
    graphs: Graphs = "all"
    captured_decode_tokens: int | None = None
    """Most tokens of a step of decode, of one attention rank, that a graph was captured for; None: of any."""
    captured_prompt_tokens: int | None = None
    """The same of a step with prompts in it."""
    compiles: bool = True
    """A compiler fuses passes over activations; without one, norms of queries and keys are kernels of their own."""
    why: str = ""
    """What the scheduling rests on: a default of a version, a flag, what forbids overlapping."""

    @property
    def words(self) -> str:
        """`overlapped scheduling (vllm 0.26.0 does it by default)`."""
        return f"{self.scheduling} scheduling" + (f" ({self.why})" if self.why else "")


class HostTime(Frozen):
    """What the host does in a step: `assay.roofline.host` says how that adds up with the kernels."""

    ahead_s: Range
    """Work for a step that overlapped scheduling does while the device computes the step before, its fixed part."""
    ahead_sequences_s: Range
    """The part of that work that grows with the sequences of the step."""
    rest_s: Range
    """What the device waits for in either case, its fixed part."""
    rest_sequences_s: Range
    """The part of that which grows with the sequences."""
    launches_s: Range
    """Launching kernels one by one; 0 where a graph is replayed."""


class StepEstimate(Frozen):
    """One step at one operating point."""

    point: OperatingPoint
    layout: Layout
    routing: Routing
    ops: list[OpTime]
    """Longest first."""
    floor_s: float = Field(ge=0)
    """Sum of floors: the ceiling of speed."""
    time_s: Range
    overhead_s: Range
    """What the step takes beyond its kernels, because the device waits for the host; in `time_s`."""
    sequences_s: Range = Range(low=0.0, mid=0.0, high=0.0)
    """The part of it that grows with the sequences of the step."""
    host: Host | None = None
    """How the engine schedules; None: processors, whose engine is the host."""
    host_time: HostTime | None = None
    """What the host does, hidden behind kernels or not."""
    tokens_per_s: Range
    """Tokens of the step over its time, over the whole box."""
    ceiling_tokens_per_s: float
    """Tokens of the step over the floor: a measurement above it refutes the estimate or the measurement."""
    bound: Bound
    """Of the largest share of time."""
    experts_hit: float | None = None
    """Expected distinct experts that a layer's tokens touch, over the whole box."""
    tokens_per_expert: float | None = None
    """Mean over the experts that are touched."""
    notes: list[str] = Field(default_factory=list)
    """Assumptions, one sentence each."""

    def share(self, op: OpTime) -> float:
        """An operation's part of the expected time."""
        return op.time_s.mid / self.time_s.mid if self.time_s.mid > 0 else 0.0


class MemoryBudget(Frozen):
    """Where the memory of the fullest device goes, and what is left for the cache."""

    device_bytes: float
    weight_bytes: float
    activation_bytes: float
    """Workspace of the largest step, and logits."""
    graph_bytes: float
    """Captured graphs and the engine's own."""
    reserved_bytes: float
    """Kept free by the engine's memory fraction."""
    cache_bytes: float
    """Left for the cache; 0 when the weights do not fit."""
    cache_bytes_per_token: float
    """On that device: MLA's latent is not split by TP, key/value heads are while there are enough."""
    cache_tokens: int
    """Tokens that all sequences together can hold, over the whole box."""
    fits: bool
    notes: list[str] = Field(default_factory=list)

    def sequences(self, tokens_each: int) -> int:
        """How many sequences of that many tokens can run at once."""
        return self.cache_tokens // max(1, tokens_each)


class MechanismCeiling(Frozen):
    """What an optimization could be worth at most at an operating point, by Amdahl over the step's operations."""

    id: str
    """The catalogue entry, or the mechanism's name."""
    title: str
    touches: list[str]
    """Operations (names or parts) that it changes."""
    touched_share: float = Field(ge=0, le=1)
    """Their part of the expected time."""
    gain: Range
    """Relative gain in tokens/s: low is what little can be expected, high the ceiling."""
    applies: bool
    reason: str
    """Why it applies, or why it cannot act here, with the numbers."""
