"""Micro-benchmarks: what they measure, what they refuse, what is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from assay.probes.ceilings import cache
from assay.probes.ceilings.disk import DiskRead
from assay.probes.ceilings.memory import MemoryBandwidth
from assay.probes.ceilings.port import Conditions, NotMeasurable, Reading
from assay.probes.ceilings.quiet import ATTEMPTS, TOO_BUSY, describe, measure, too_busy
from assay.probes.ceilings.standard import numa_cpus, thread_counts
from assay.records.ceilings import CeilingName, Ceilings, Measurement

MIB_BYTES = 1 << 20


def measured(**changes: object) -> Measurement:
    fields: dict[str, object] = {
        "name": "memory_read", "what": "reads", "unit": "bytes/s", "threads": 1, "samples": [1.0, 2.0, 3.0, 4.0, 5.0],
        "took_s": 1.0, "check": "as written", "correct": True, "foreign_cpu_cores": 0.0, "at_ns": 0,
    }  # fmt: skip
    return Measurement.model_validate({**fields, **changes})


def ceilings_of(*measurements: Measurement, library: str | None = "a library") -> Ceilings:
    return Ceilings(fingerprint="f00d", machine="a machine", library=library, measurements=list(measurements))


@dataclass
class Benchmark:
    """One whose readings are given."""

    readings: Callable[[int], Reading]
    runs: int = 0
    name: CeilingName = "memory_read"
    what: str = "nothing"
    unit: Literal["bytes/s", "flop/s", "s"] = "bytes/s"
    at: Conditions = field(default_factory=Conditions)
    expected_s: float = 0.0

    def run(self) -> Reading:
        self.runs += 1
        return self.readings(self.runs)


def reading(*, correct: bool = True) -> Reading:
    return Reading(samples=[1.0], check="looked at", correct=correct)


def silent(_what: str, _spent_s: float, _expected_s: float) -> None:
    return


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_ceiling_is_what_a_tenth_of_the_samples_surpassed_and_of_seconds_undercut() -> None:
    rates, costs = measured(samples=[float(n) for n in range(11)]), measured(samples=[1.0] * 9 + [9.0] * 2, unit="s")

    assert (rates.best, rates.median, rates.worst) == pytest.approx((9.0, 5.0, 1.0))
    assert (costs.best, costs.median, costs.worst) == (1.0, 1.0, 9.0)


def test_the_spread_of_three_samples_is_unknown() -> None:
    assert measured(samples=[1.0, 2.0, 3.0]).spread is None
    assert measured().spread == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("correct", "foreign", "trusted"), [(True, 0.0, True), (True, 0.5, False), (False, 0.0, False)]
)
def test_what_is_wrong_or_was_disturbed_is_not_trusted(*, correct: bool, foreign: float, trusted: bool) -> None:
    assert measured(correct=correct, foreign_cpu_cores=foreign).trusted is trusted


def test_a_measurement_that_others_drowned_is_none() -> None:
    found = ceilings_of(measured(foreign_cpu_cores=0.2), measured(threads=2, foreign_cpu_cores=0.5))

    assert found.find("memory_read", 1) is not None
    assert found.find("memory_read", 2) is None
    assert [one.threads for one in found.unusable] == [2]


def test_a_wrong_measurement_is_never_found() -> None:
    found = ceilings_of(measured(threads=1, correct=False), measured(threads=2))

    assert found.find("memory_read", 1) is None
    assert found.find("memory_read", 2) is not None
    assert found.find("memory_copy", 2) is None


@pytest.mark.parametrize("name", ["memory_read", "memory_copy"])
@pytest.mark.parametrize("threads", [1, 2])
def test_bandwidth_is_measured_and_the_buffers_are_checked(
    name: Literal["memory_read", "memory_copy"], threads: int
) -> None:
    found = MemoryBandwidth(name=name, threads=threads, buffer_bytes=8 * MIB_BYTES, seconds=0.05).run()

    assert found.correct, found.check
    assert len(found.samples) >= 4
    assert 1e8 < max(found.samples) < 1e13


def test_a_node_whose_processors_this_process_may_not_use_is_not_measurable() -> None:
    elsewhere = MemoryBandwidth(
        name="memory_read", threads=2, numa_node=1, cpus=frozenset({4000}), buffer_bytes=8 * MIB_BYTES, seconds=0.05
    )

    with pytest.raises(NotMeasurable, match="may not run on the processors of the node"):
        elsewhere.run()


def test_a_file_is_read_and_the_share_that_came_from_the_device_is_told(tmp_path: Path) -> None:
    try:
        found = DiskRead(file=None, folder=tmp_path, most_bytes=32 * MIB_BYTES).run()
    except NotMeasurable as reason:  # a file system in memory has no device to read from
        assert "from a device" in str(reason)  # noqa: PT017 - either outcome is right
    else:
        assert found.correct
        assert "the kernel fetched from the device" in found.check
        assert len(found.samples) == 8
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_read_is_not_measurable(tmp_path: Path) -> None:
    with pytest.raises(NotMeasurable, match="cannot be read"):
        DiskRead(file=tmp_path / "missing", folder=tmp_path).run()
    (tmp_path / "tiny").write_bytes(b"x" * 100)
    with pytest.raises(NotMeasurable, match="too few"):
        DiskRead(file=tmp_path / "tiny", folder=tmp_path).run()


def test_a_wrong_result_is_kept_as_wrong_and_not_measured_again() -> None:
    benchmark = Benchmark(lambda _: reading(correct=False))

    (found,), missing = measure([benchmark], silent)

    assert (benchmark.runs, found.correct, found.trusted, missing) == (1, False, False, {})


def test_a_benchmark_is_repeated_only_while_others_disturb_it() -> None:
    benchmark = Benchmark(lambda _: reading(), expected_s=60.0)

    (found,), _ = measure([benchmark], silent)

    assert 1 <= benchmark.runs <= ATTEMPTS
    assert found.trusted or benchmark.runs == ATTEMPTS


def test_nothing_is_repeated_once_the_time_is_spent() -> None:
    benchmark = Benchmark(lambda _: reading(), expected_s=0.0)

    measure([benchmark], silent)

    assert benchmark.runs == 1


def test_what_cannot_be_measured_is_told_with_its_reason_and_the_others_are_measured() -> None:
    def refuse(_run: int) -> Reading:
        raise NotMeasurable("no such thing here")

    refused = Benchmark(refuse, name="disk_read", at=Conditions(threads=2, storage="Q4_0", columns=4, numa_node=1))
    found, missing = measure([refused, Benchmark(lambda _: reading())], silent)

    assert [one.name for one in found] == ["memory_read"]
    assert missing == {"disk read, Q4_0, 2 threads, 4 columns, node 1": "no such thing here"}


def test_a_machine_that_is_busy_from_the_beginning_is_not_measured_to_the_end() -> None:
    drowned, quiet = measured(foreign_cpu_cores=1.9), measured()
    assert too_busy([drowned] * TOO_BUSY)
    assert not too_busy([drowned] * (TOO_BUSY - 1))
    assert not too_busy([drowned, drowned, quiet, drowned])
    assert not too_busy([drowned, drowned, drowned, measured(correct=False, foreign_cpu_cores=1.9)])


def test_progress_tells_each_benchmark_and_the_expected_time() -> None:
    told: list[tuple[str, float]] = []
    benchmark = Benchmark(lambda _: reading(), expected_s=2.5)

    measure([benchmark, benchmark], lambda what, _, total_s: told.append((what, total_s)))

    assert told == [(describe(benchmark), 5.0)] * 2


def test_what_was_measured_is_found_again_for_this_machine_and_these_kernels_only() -> None:
    kept = ceilings_of(measured(), measured(threads=2))

    cache.remember(kept)

    assert cache.remembered("f00d", "a library") == kept
    assert cache.remembered("f00d", "another library") is None
    assert cache.remembered("beef", "a library") is None


def test_a_damaged_cache_is_no_error(tmp_path: Path) -> None:
    cache.remember(ceilings_of(measured()))
    (file,) = (tmp_path / "cache").rglob("*.json")

    file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")

    assert cache.remembered("f00d", "a library") is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    cache.remember(ceilings_of(measured()))

    assert cache.remembered("f00d", "a library") is None


def test_fresh_measurements_replace_the_known_ones_of_the_same_conditions() -> None:
    known = ceilings_of(measured(samples=[1.0]), measured(threads=2, samples=[2.0]))

    whole = cache.merged(known, ceilings_of(measured(samples=[9.0])))

    assert [(one.threads, one.median) for one in whole.measurements] == [(1, 9.0), (2, 2.0)]


def test_a_measurement_that_others_drowned_does_not_replace_a_known_one() -> None:
    known = ceilings_of(measured())
    drowned = ceilings_of(measured(samples=[1.0], foreign_cpu_cores=1.9))
    assert cache.merged(known, drowned).measurements == known.measurements
    assert cache.merged(drowned, known).measurements == known.measurements


@pytest.mark.parametrize(
    ("cores", "more", "counts"), [(1, (), [1]), (2, (), [1, 2]), (6, (3, 12, 13), [1, 2, 3, 4, 6, 12])]
)
def test_bandwidth_is_measured_at_doubling_thread_counts_up_to_all_cores(
    cores: int, more: tuple[int, ...], counts: list[int]
) -> None:
    assert thread_counts(cores, more) == counts


def test_processors_of_numa_nodes_are_read_as_the_kernel_lists_them(tmp_path: Path) -> None:
    for number, text in enumerate(["0-2,8", "3", "\n"]):
        node = tmp_path / f"sys/devices/system/node/node{number}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(text, encoding="ascii")

    assert numa_cpus(tmp_path) == {0: frozenset({0, 1, 2, 8}), 1: frozenset({3})}
