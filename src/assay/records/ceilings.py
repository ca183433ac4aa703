"""What this machine can do at most, as micro-benchmarks measured it: one record a measurement, kept with its samples.

>>> one = Measurement(
...     name="memory_read", what="reads", unit="bytes/s", threads=2, samples=[30e9, 31e9, 29e9], took_s=0.3,
...     check="as written", correct=True, foreign_cpu_cores=0.0, at_ns=0,
... )
>>> one.median / 1e9, one.trusted
(30.0, True)
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.records.base import Frozen
from assay.records.device import Fact, LinkCurve

CeilingName = Literal[
    "memory_read",
    "memory_copy",
    "disk_read",
    "matvec_streamed",
    "matvec_cached",
    "matmul",
    "product_start",
    "graph_node",
    "graph_start",
]
"""memory_read, memory_copy: bytes/s of plain reads, and of copies (read and write counted).
disk_read: bytes/s of a file that the page cache was asked to forget.
matvec_streamed: weight bytes/s of products with one column, weights larger than the caches: decode of one sequence.
matvec_cached: flop/s of the same product with weights that stay in the cache: what its arithmetic can do.
matmul: flop/s of a product with `columns` columns.
product_start, graph_node, graph_start: seconds that a product with hardly any weights, an operation without work, and a
graph of one operation cost the engine.
"""
MAX_FOREIGN_CORES = 0.10
"""As `assay.records.spec.Gates.max_foreign_cores`: threads that spin at barriers all wait for the one disturbed."""
MOST_FOREIGN_CORES = 0.30
"""Beyond it not even the best sample says what the machine can do: a measurement is then none."""
Key = tuple[str, str | None, int, int, int | None, tuple[int, int] | None]
BEST_SHARE = 0.9
"""A ceiling is the quantile at which this share of the samples lies below: one lucky sample is none."""


class Measurement(Frozen):
    """One quantity under one condition."""

    name: CeilingName
    what: str
    """What was done, in words."""
    unit: Literal["bytes/s", "flop/s", "s"]
    threads: int = Field(ge=1)
    storage: str | None = None
    """Type of the weights as GGUF names it: Q4_0; None where there are none."""
    columns: int = 1
    """Columns (tokens) of a product."""
    shape: tuple[int, int] | None = None
    """Rows and columns of the matrix, where it is one of a model's own; None: a large square one."""
    numa_node: int | None = None
    """Node whose processors and memory were used; None: wherever the system puts them."""
    samples: list[float] = Field(min_length=1)
    """Every value, in the order of measuring."""
    took_s: float
    check: str
    """How the result was checked, and what came out."""
    correct: bool
    conditions: dict[str, str | int | float] = Field(default_factory=dict)
    foreign_cpu_cores: float | None = None
    """CPU of other processes meanwhile, in cores; None where it cannot be known."""
    steal_share: float | None = None
    at_ns: int
    """Wall clock, nanoseconds since the epoch."""

    @property
    def median(self) -> float:
        """Of the samples."""
        return _quantile(self.samples, 0.5)

    @property
    def best(self) -> float:
        """The ceiling: what was reached or surpassed by a tenth of the samples (of seconds: undercut)."""
        return _quantile(self.samples, 1 - BEST_SHARE if self.unit == "s" else BEST_SHARE)

    @property
    def worst(self) -> float:
        """What nine tenths of the samples reached or surpassed (of seconds: undercut)."""
        return _quantile(self.samples, BEST_SHARE if self.unit == "s" else 1 - BEST_SHARE)

    @property
    def spread(self) -> float | None:
        """Interquartile range over the median; None below four samples."""
        if len(self.samples) < 4:  # noqa: PLR2004 - a quartile wants four
            return None
        return (_quantile(self.samples, 0.75) - _quantile(self.samples, 0.25)) / self.median

    @property
    def trusted(self) -> bool:
        """The result was right, and the machine quiet."""
        return self.correct and (self.foreign_cpu_cores is None or self.foreign_cpu_cores <= MAX_FOREIGN_CORES)

    @property
    def usable(self) -> bool:
        """Right, and not so disturbed that it says nothing."""
        return self.correct and (self.foreign_cpu_cores is None or self.foreign_cpu_cores <= MOST_FOREIGN_CORES)

    @property
    def key(self) -> Key:
        """What tells it from the other measurements of a machine."""
        return self.name, self.storage, self.columns, self.threads, self.numa_node, self.shape


class Ceilings(Frozen):
    """Everything measured of one machine."""

    fingerprint: str
    """Of the machine (`assay.records.machine.Machine.fingerprint`)."""
    machine: str
    """In words."""
    library: str | None
    """Whose kernels the products ran in; None: it is not installed."""
    measurements: list[Measurement]
    missing: dict[str, str] = Field(default_factory=dict)
    """What could not be measured, by name, and why."""

    def find(
        self,
        name: CeilingName,
        threads: int,
        storage: str | None = None,
        columns: int = 1,
        shape: tuple[int, int] | None = None,
    ) -> Measurement | None:
        """The measurement under exactly these conditions, whole machine; None when there is none that is usable."""
        wanted: Key = (name, storage, columns, threads, None, shape)
        return next((one for one in self.measurements if one.key == wanted and one.usable), None)

    def threads(self, name: CeilingName, storage: str | None = None) -> list[int]:
        """Thread counts at which a quantity is known, ascending."""
        return sorted({one.threads for one in self.measurements if one.name == name and one.storage == storage})

    @property
    def storages(self) -> list[str]:
        """Types of weights whose products are known."""
        return sorted({one.storage for one in self.measurements if one.storage is not None and one.correct})

    @property
    def unusable(self) -> list[Measurement]:
        """What is as good as not measured."""
        return [one for one in self.measurements if not one.usable]

    @property
    def untrusted(self) -> list[Measurement]:
        """What was wrong or disturbed."""
        return [one for one in self.measurements if not one.trusted]


class GpuCeilings(Frozen):
    """What was measured of a machine's GPUs, as facts of one of them and curves between them."""

    fingerprint: str
    """Of the machine; empty for a file from elsewhere."""
    about: str
    """Device, library and date, in words."""
    facts: dict[str, Fact]
    curves: list[LinkCurve] = Field(default_factory=list)
    problems: dict[str, str] = Field(default_factory=dict)
    """What could not be measured, and why."""


def _quantile(values: list[float], share: float) -> float:
    """Linear between the two nearest."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
