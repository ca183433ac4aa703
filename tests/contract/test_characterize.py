"""Ceilings on this machine, with the kernels of the embedded engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from assay import models, wiring
from assay.engines.embedded_model import embedded_model
from assay.errors import UsageError
from assay.probes.ceilings import ceilings
from assay.probes.ceilings.ggml_library import TYPES
from assay.probes.ceilings.port import NotMeasurable
from assay.probes.ceilings.products import Kernels, Product, kernels
from assay.probes.ceilings.quiet import LEFT_OUT, TOO_BUSY
from assay.records.ceilings import Ceilings
from assay.records.estimate import OperatingPoint
from assay.roofline import cpu

pytestmark = pytest.mark.slow
QUICK_S = 0.01


@pytest.fixture(scope="module")
def program() -> Iterator[Kernels]:
    with kernels() as running:
        yield running


@pytest.mark.parametrize("storage", TYPES)
def test_a_product_of_every_type_is_what_plain_arithmetic_finds(program: Kernels, storage: str) -> None:
    for name, columns in (("matvec_cached", 1), ("matmul", 4)):
        product = Product(
            kernels=program, name=name, threads=1, storage=storage, columns=columns, seconds=QUICK_S
        )  # fmt: skip
        if name == "matmul" and storage not in {"F16", "Q8_0", "Q4_0"}:
            continue  # streamed weights take a while to make; one of each kind of kernel is enough
        found = product.run()

        assert found.correct, f"{storage}: {found.check}"
        assert min(found.samples) > 1e8


def test_plain_weights_are_read_from_a_mapped_file_and_rearranged_ones_from_memory(tmp_path: Path) -> None:
    """As llama.cpp has them; the file leaves nothing behind."""
    with kernels(tmp_path) as running:
        found = {
            storage: Product(
                kernels=running, name="matvec_streamed", threads=1, storage=storage, seconds=QUICK_S
            ).run()
            for storage in ("F16", "Q4_0")
        }  # fmt: skip
    assert all(each.correct for each in found.values())
    assert found["F16"].conditions["pages"] == "mapped file"
    assert (found["Q4_0"].conditions["pages"] == "mapped file") == (found["Q4_0"].conditions["kernel"] == "CPU")
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_the_kernels_refuse_is_not_measurable_and_the_next_one_is(program: Kernels) -> None:
    with pytest.raises(NotMeasurable, match="IQ9"):
        Product(kernels=program, name="matvec_cached", threads=1, storage="IQ9", seconds=QUICK_S).run()

    found = Product(kernels=program, name="graph_node", threads=1, seconds=QUICK_S).run()
    assert found.correct
    assert 1e-9 < min(found.samples) < 1e-3


def test_kernels_that_die_are_told_with_the_fact_that_they_did() -> None:
    with kernels() as running:
        psutil.Process(running._piped.pid).kill()
        with pytest.raises(NotMeasurable, match="ended their process"):
            Product(kernels=running, name="graph_node", threads=1, seconds=QUICK_S).run()


def test_ceilings_are_measured_once_and_carry_the_roofline_of_a_real_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = models.load(str(embedded_model()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    machine = wiring.probe().machine()
    told: list[str] = []

    def measure() -> Ceilings:
        return ceilings(machine, tmp_path, lambda what, *_: told.append(what), storages=["Q4_1", "Q8_0"])

    first = measure()
    asked = len(told)
    measure()

    if LEFT_OUT in first.missing:  # the machine was busy
        assert asked >= TOO_BUSY
    else:
        assert asked > 20
        assert len(told) - asked <= len(first.untrusted) + len(first.missing)
        assert set(first.missing) <= {"disk read, 1 thread"}  # of a file system without a device
    try:
        step = cpu.estimate(shape, first, 1, OperatingPoint(phase="decode", sequences=1, context_tokens=64))
    except UsageError as error:  # the machine was busy: then nothing is said
        assert re.search("other processes used|when the machine is quiet", str(error.hint))  # noqa: PT017 - either outcome is right
    else:
        assert 1 < step.tokens_per_s.low < step.ceiling_tokens_per_s < 1e5
