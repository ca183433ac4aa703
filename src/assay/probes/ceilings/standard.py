"""The standard set of micro-benchmarks of a CPU, and what of it is known already."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from assay.probes.ceilings import cache
from assay.probes.ceilings.disk import DiskRead
from assay.probes.ceilings.memory import BUFFER_BYTES, LEAST_BUFFER_BYTES, MemoryBandwidth
from assay.probes.ceilings.port import MicroBenchmark, NotMeasurable, Say
from assay.probes.ceilings.products import Kernels, Product, kernels
from assay.probes.ceilings.quiet import LEFT_OUT
from assay.probes.ceilings.quiet import measure as measured
from assay.probes.files import Files
from assay.probes.topology import numa_nodes, parse_list
from assay.records.ceilings import Ceilings, Key
from assay.records.machine import Machine

WeightShape = tuple[str, int, int]
"""Type, rows, columns."""
STANDARD_STORAGES = ("F16", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K")
"""Types that models are commonly served in; those of a model at hand are measured beside them."""
BATCHES = (4, 16, 128)
"""Columns of products with several tokens; the last stands for prefill."""
SHARE_OF_MEMORY = 0.25
"""That all buffers together may take."""
COSTS: tuple[Literal["product_start", "graph_node", "graph_start"], ...] = (
    "product_start",
    "graph_node",
    "graph_start",
)
KERNELS = "matrix products"
BESIDE = (
    "nothing is measured beside a server that is being watched; once it is idle: `assay characterize --model MODEL`"
)


def ceilings(
    machine: Machine,
    folder: Path,
    say: Say,
    *,
    storages: Sequence[str] = (),
    shapes: Sequence[WeightShape] = (),
    threads: Sequence[int] = (),
    model: Path | None = None,
    again: bool = False,
    measure: bool = True,
) -> Ceilings:
    """Measure what is not known yet, and keep it.

    Args:
        machine: this one.
        folder: where a scratch file may be written.
        say: told what is measured.
        storages: types of weights that matter; none: the standard ones.
        shapes: matrices of a model that products with one column are measured for, each as it is.
        threads: thread counts that matter beside 1 and all cores.
        model: a file of weights for the disk benchmark; None: a scratch file.
        again: measure everything anew.
        measure: False: only what is known already, since a server that is being watched would disturb a measurement,
            and be disturbed by it.
    """
    with ExitStack() as stack:
        missing: dict[str, str] = {}
        program: Kernels | None = None
        try:
            program = stack.enter_context(kernels(folder))
        except NotMeasurable as reason:
            missing[KERNELS] = str(reason)
        library = program.library if program else None
        known = cache.remembered(machine.fingerprint, library)
        counts = thread_counts(machine.usable_cores, threads)
        wanted: list[MicroBenchmark] = [
            *_memory(machine, counts),
            DiskRead(file=model, folder=folder),
            *(_products(program, storages or STANDARD_STORAGES, counts, missing) if program else ()),
            *(_shapes(program, shapes, counts) if program else ()),
        ]
        unknown = _unknown(wanted, None if again else known)
        found, unmeasured = measured(unknown, say) if measure else ([], {LEFT_OUT: BESIDE} if unknown else {})
    fresh = Ceilings(
        fingerprint=machine.fingerprint,
        machine=f"{machine.cpu_model}, {machine.usable_cores} cores",
        library=library,
        measurements=found,
        missing={**missing, **unmeasured},
    )
    whole = cache.merged(known, fresh)
    if found:
        cache.remember(whole)
    return whole


def thread_counts(cores: int, more: Iterable[int] = ()) -> list[int]:
    """1, 2, 4 ... up to all cores, all cores, and what else is wanted up to twice as many."""
    doubling = [1 << power for power in range(cores.bit_length()) if 1 << power <= cores]
    return sorted({*doubling, cores, *(count for count in more if 1 <= count <= 2 * cores)})


def numa_cpus(root: Path = Path("/")) -> dict[int, frozenset[int]]:
    """Processors of each NUMA node that has any; empty where the system does not say."""
    nodes = {node.index: frozenset(parse_list(node.cpus)) for node in numa_nodes(Files(root))}
    return {node: cpus for node, cpus in nodes.items() if cpus}


def _memory(machine: Machine, counts: Sequence[int]) -> Iterator[MicroBenchmark]:
    size = int(min(BUFFER_BYTES, max(LEAST_BUFFER_BYTES, SHARE_OF_MEMORY * machine.memory_bytes / 2 / counts[-1])))
    for count in counts:
        yield MemoryBandwidth(name="memory_read", threads=count, buffer_bytes=size)
    for count in sorted({1, machine.usable_cores}):
        yield MemoryBandwidth(name="memory_copy", threads=count, buffer_bytes=size)
    nodes = numa_cpus()
    for node, cpus in nodes.items() if len(nodes) > 1 else ():
        if own := _allowed(cpus):
            yield MemoryBandwidth(name="memory_read", threads=len(own), numa_node=node, cpus=own, buffer_bytes=size)


def _allowed(cpus: frozenset[int]) -> frozenset[int]:
    """Those that this process may run on: a container may have a part of a machine that it sees whole."""
    return cpus & os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else cpus


def _products(
    program: Kernels, storages: Sequence[str], counts: Sequence[int], missing: dict[str, str]
) -> Iterator[MicroBenchmark]:
    """At one thread and at the most; the types in turn, so that weights are made once."""
    ends = _ends(counts)
    for count in ends:
        for name in COSTS:
            yield Product(kernels=program, name=name, threads=count)
    for storage in storages:
        if storage not in program.types:
            missing[storage] = f"no benchmark for weights of type {storage}"
            continue
        for count in ends:
            yield Product(kernels=program, name="matvec_streamed", threads=count, storage=storage)
        for columns in BATCHES:
            for count in ends if columns == BATCHES[-1] else ends[-1:]:
                yield Product(kernels=program, name="matmul", threads=count, storage=storage, columns=columns)
        for count in ends:
            yield Product(kernels=program, name="matvec_cached", threads=count, storage=storage)


def _shapes(program: Kernels, shapes: Sequence[WeightShape], counts: Sequence[int]) -> Iterator[MicroBenchmark]:
    for storage, rows, columns in shapes:
        if storage in program.types:
            for count in _ends(counts):
                yield Product(
                    kernels=program, name="matvec_streamed", threads=count, storage=storage, shape=(rows, columns)
                )


def _ends(counts: Sequence[int]) -> list[int]:
    """One thread, and the largest two counts: all cores, and what else was asked for."""
    return sorted({1, *counts[-2:]})


def _unknown(wanted: Iterable[MicroBenchmark], known: Ceilings | None) -> list[MicroBenchmark]:
    trusted = {one.key for one in known.measurements if one.trusted} if known else set()
    return [one for one in wanted if _key(one) not in trusted]


def _key(one: MicroBenchmark) -> Key:
    return one.name, one.at.storage, one.at.columns, one.at.threads, one.at.numa_node, one.at.shape


__all__ = ["STANDARD_STORAGES", "ceilings", "numa_cpus", "thread_counts"]
