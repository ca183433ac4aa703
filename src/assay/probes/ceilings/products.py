"""Rates of matrix products by type of weights, as llama.cpp's own kernels reach them in a process of their own."""

from __future__ import annotations

import json
import select
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from assay.probes.ceilings.port import Conditions, NotMeasurable, Reading
from assay.process import Piped

MODULE = "assay.probes.ceilings.ggml_program"
PATIENCE_S = 60.0
"""Until an answer; the program itself ends a measurement earlier."""
SECONDS = 0.18
LARGEST_ERROR = 0.03
"""Of the product's mean size, against float32 arithmetic on the same stored weights: kernels round the other factor to
8 bits, which costs about 1%; one that computes something else is off by 100% and more."""
WORDS = {
    "matvec_streamed": "product with one column, weights streamed from memory",
    "matvec_cached": "product with one column, weights in the cache",
    "matmul": "product with several columns",
    "product_start": "a product of 64 x 256 numbers in a graph of 256",
    "graph_node": "an addition of 256 numbers in a chain of 512",
    "graph_start": "a graph of one such addition",
}


class Kernels:
    """The program that answers."""

    def __init__(self, piped: Piped, log: Path) -> None:
        self._piped, self._log = piped, log
        hello = self._answer()
        self.library = str(hello["library"])
        self.types = [str(name) for name in hello["types"]]

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """One measurement.

        Raises:
            NotMeasurable: the program says why, or died.
        """
        self._piped.tell(json.dumps(job).encode())
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        deadline_s = time.monotonic() + PATIENCE_S
        while (left_s := deadline_s - time.monotonic()) > 0:
            select.select([self._piped], [], [], left_s)
            lines = self._piped.lines()
            if lines is None:
                raise NotMeasurable(f"llama.cpp's kernels ended their process: {self._last_words()}")
            if lines:
                answer: dict[str, Any] = json.loads(lines[0])
                if "problem" in answer:
                    raise NotMeasurable(str(answer["problem"]))
                return answer
        raise NotMeasurable(f"llama.cpp's kernels did not answer within {PATIENCE_S:g} s")

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "no output"


@contextmanager
def kernels(weights_in: Path | None = None) -> Iterator[Kernels]:
    """The program, alive while the block runs.

    Args:
        weights_in: a folder where it may write weights for a while, best the model's own; None: the temporary one.

    Raises:
        NotMeasurable: the wheel is missing, or its library cannot be called.
    """
    with tempfile.TemporaryDirectory(prefix="assay-ceilings-") as folder:
        log = Path(folder) / "kernels.log"
        piped = Piped(MODULE, [] if weights_in is None else [str(weights_in)], log)
        try:
            yield Kernels(piped, log)
        finally:
            piped.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One rate (or cost) of the engine's arithmetic."""

    kernels: Kernels
    name: Literal["matvec_streamed", "matvec_cached", "matmul", "product_start", "graph_node", "graph_start"]
    threads: int
    storage: str | None = None
    columns: int = 1
    shape: tuple[int, int] | None = None
    """Rows and columns of the matrix; None: a large square one."""
    seconds: float = SECONDS

    @property
    def what(self) -> str:
        """In words."""
        return WORDS[self.name]

    @property
    def unit(self) -> Literal["bytes/s", "flop/s", "s"]:
        """Weights streamed count in bytes, arithmetic in operations, costs in seconds."""
        if self.name == "matvec_streamed":
            return "bytes/s"
        return "flop/s" if self.storage else "s"

    @property
    def at(self) -> Conditions:
        """Threads, type, columns, shape."""
        return Conditions(threads=self.threads, storage=self.storage, columns=self.columns, shape=self.shape)

    @property
    def expected_s(self) -> float:
        """Making the weights included."""
        return 2 * self.seconds

    def run(self) -> Reading:
        """Ask the program; a product must be the one that plain float32 arithmetic finds."""
        told = self.kernels.ask(
            {
                "job": self.name,
                "storage": self.storage,
                "columns": self.columns,
                "shape": self.shape,
                "threads": self.threads,
                "seconds": self.seconds,
            }
        )
        work = {"bytes/s": told["bytes"], "flop/s": told["flops"]}.get(self.unit)
        samples = [one if work is None else work / one for one in told["samples"]]
        error = float(told["error"])
        return Reading(
            samples=samples,
            correct=error <= LARGEST_ERROR,  # a NaN is not
            check=f"{100 * error:.2f}% off float32 arithmetic on the same weights (at most {100 * LARGEST_ERROR:.0f}%)",
            conditions={"kernel": told["kernel"], "pass_bytes": told["bytes"], "pages": told["pages"]},
        )
