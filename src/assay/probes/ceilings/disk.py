"""How fast the weights come from the disk: a file that the page cache was asked to forget, read once."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.probes.ceilings.port import Conditions, NotMeasurable, Reading

READ_BYTES = 256 << 20
CHUNK_BYTES = 4 << 20
SECONDS = 1.5
"""At most; a slow disk is read for so long."""
FEWEST_SAMPLES = 4
LEAST_COLD = 0.5
"""Share of the bytes that must come from the device for it to be a benchmark of the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRead:
    """Bytes/s of reading a file from its beginning, in chunks, by one thread.

    The kernel is asked to drop the file from its page cache first (`posix_fadvise`, DONTNEED). That is a request: it
    drops clean pages that nobody has mapped. A hypervisor or the disk itself may still hold them, and no process can
    ask those to forget; `check` says whether pages came back from the cache.
    """

    file: Path | None
    """The model; None: a file written for this, in `folder`."""
    folder: Path
    name: Literal["disk_read"] = "disk_read"
    unit: Literal["bytes/s"] = "bytes/s"
    most_bytes: int = READ_BYTES

    @property
    def what(self) -> str:
        """In words."""
        return f"read of {self.file.name if self.file else 'a scratch file'} after DONTNEED, one thread"

    @property
    def at(self) -> Conditions:
        """One thread."""
        return Conditions()

    @property
    def expected_s(self) -> float:
        """Writing a scratch file included."""
        return 1.0 if self.file else 2.0

    def run(self) -> Reading:
        """Forget, read, and look whether the disk was touched."""
        if not hasattr(os, "posix_fadvise"):
            raise NotMeasurable("this system has no posix_fadvise: a file cannot be read past the page cache")
        try:
            if self.file is not None:
                return self._read(self.file)
            with tempfile.TemporaryDirectory(dir=self.folder, prefix=".assay-disk-") as scratch:
                return self._read(_scratch_file(Path(scratch), self.most_bytes))
        except OSError as error:
            raise NotMeasurable(f"{self.file or self.folder} cannot be read past the page cache: {error}") from error

    def _read(self, path: Path) -> Reading:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            with suppress(OSError):
                os.fsync(descriptor)  # dirty pages are not dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            before = _device_reads_bytes()
            samples, read_bytes = _read_chunks(descriptor, self.most_bytes)
            after = _device_reads_bytes()
        finally:
            os.close(descriptor)
        if len(samples) < FEWEST_SAMPLES:
            raise NotMeasurable(f"{path} has {read_bytes} bytes: too few to time")
        cold = None if before is None or after is None else min(1.0, (after - before) / read_bytes)
        if cold is not None and cold < LEAST_COLD:
            raise NotMeasurable(
                f"the kernel fetched only {100 * cold:.0f}% of {path} from a device: the rest stays in the page cache "
                "(a server may have it mapped), or its file system does not count"
            )
        told = "unknown here" if cold is None else f"{100 * cold:.0f}%"
        return Reading(
            samples=samples,
            correct=read_bytes > 0,
            check=f"{read_bytes} bytes read; share that the kernel fetched from the device: {told}",
            conditions={"file": str(path), **({} if cold is None else {"cold_share": round(cold, 3)})},
        )


def _read_chunks(descriptor: int, most_bytes: int) -> tuple[list[float], int]:
    buffer = bytearray(CHUNK_BYTES)
    samples, total, began_s = [], 0, time.perf_counter()
    while total < most_bytes and time.perf_counter() - began_s < SECONDS:
        before_s = time.perf_counter()
        count = os.readv(descriptor, [buffer])
        if count < CHUNK_BYTES:
            total += count
            break
        samples.append(count / (time.perf_counter() - before_s))
        total += count
    return samples, total


def _scratch_file(folder: Path, size_bytes: int) -> Path:
    path = folder / "weights"
    block = os.urandom(CHUNK_BYTES)  # not compressible by a clever file system
    with path.open("wb") as sink:
        for _ in range(size_bytes // CHUNK_BYTES):
            sink.write(block)
        sink.flush()
        os.fsync(sink.fileno())
    return path


def _device_reads_bytes() -> int | None:
    """What this process made the kernel fetch from storage; None where it does not say."""
    try:
        text = Path("/proc/self/io").read_text(encoding="ascii")
    except OSError:
        return None
    found = [line.partition(":")[2] for line in text.splitlines() if line.startswith("read_bytes")]
    return int(found[0]) if found else None
