"""Measured ceilings of a CPU at one thread count, looked up by what a step needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from assay.errors import UsageError
from assay.records.ceilings import CeilingName, Ceilings, Measurement
from assay.records.estimate import Range
from assay.records.model_shape import Matrix


@dataclass(frozen=True, slots=True)
class Rates:
    """The ceilings at one thread count."""

    ceilings: Ceilings
    threads: int

    def get(self, name: CeilingName, storage: str | None = None, columns: int = 1) -> Measurement:
        """A measurement that is right.

        Raises:
            UsageError: there is none; says which, and why where that is known.
        """
        found = self.ceilings.find(name, self.threads, storage, columns)
        if found is None:
            of = f" of {storage} weights" if storage else ""
            raise UsageError(f"{name}{of} is not measured at {self.threads} thread(s)", hint=self._why(name, storage))
        return found

    def _why(self, name: CeilingName, storage: str | None) -> str:
        for one in self.ceilings.unusable:
            if (one.name, one.storage, one.threads) == (name, storage, self.threads) and one.correct:
                used = f"other processes used {one.foreign_cpu_cores or 0.0:.1f} cores while it was measured"
                return f"{used}; repeat it when the machine is quiet"
        reason = self.ceilings.missing.get(storage or "") or next(iter(self.ceilings.missing.values()), None)
        return reason or "measure it: `assay characterize --model FILE.gguf --again`"

    @property
    def memory_peak(self) -> float:
        """Bytes/s that nothing has surpassed: of plain reads, or of products that stream their weights."""
        streamed = (
            one.best
            for one in self.ceilings.measurements
            if (one.name, one.threads) == ("matvec_streamed", self.threads) and one.usable
        )
        return max(self.get("memory_read").best, *streamed, 0.0)

    def flop_peak(self, storage: str, columns: float, flops_per_byte: float) -> float:
        """Flop/s that no product with such weights has surpassed: with one column, or with any number."""
        one_column = max(
            self.get("matvec_cached", storage).best, self.get("matvec_streamed", storage).best * flops_per_byte
        )
        return one_column if columns <= 1 else max(one_column, *(one.best for one in self._products(storage)))

    def flop_rates(self, storage: str, flops_per_byte: float) -> list[tuple[float, Range]]:
        """Flop/s of streamed products by columns, ascending."""
        streamed = self.get("matvec_streamed", storage)
        measured = [(1.0, range_of(streamed).scaled(flops_per_byte))]
        return measured + sorted(
            ((float(one.columns), range_of(one)) for one in self._products(storage)), key=lambda pair: pair[0]
        )

    def own_shape(self, storage: str, matrix: Matrix) -> Measurement | None:
        """The product with one column of just such a matrix; None where it was not measured."""
        return self.ceilings.find("matvec_streamed", self.threads, storage, shape=(matrix.rows, matrix.cols))

    def _products(self, storage: str) -> list[Measurement]:
        return [
            one
            for one in self.ceilings.measurements
            if (one.name, one.storage, one.threads) == ("matmul", storage, self.threads) and one.usable
        ]


def interpolated(rates: list[tuple[float, Range]], columns: float) -> Range:
    """Between the two nearest numbers of columns, linear in their logarithm; the last one beyond it."""
    for (left, below), (right, above) in pairwise(rates):
        if columns <= right:
            share = math.log(columns / left) / math.log(right / left)
            return Range(
                low=below.low + share * (above.low - below.low),
                mid=below.mid + share * (above.mid - below.mid),
                high=below.high + share * (above.high - below.high),
            )
    return rates[-1][1]


def range_of(measured: Measurement) -> Range:
    """From worst to best, as sizes: of seconds the best is the low end.

    The middle is the median; where others disturbed the measurement it is the best, which they disturbed least.
    """
    middle = measured.median if measured.trusted else measured.best
    return (
        Range(low=min(measured.worst, middle), mid=middle, high=max(measured.best, middle))
        if (measured.unit != "s")
        else Range(low=min(measured.best, middle), mid=middle, high=max(measured.worst, middle))
    )
