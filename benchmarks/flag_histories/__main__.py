"""Read the flags of one version of an engine out of its wheel, and compare or record them.

    pip download vllm==0.34.0 --no-deps --dest ~/wheels
    python -m benchmarks.flag_histories vllm ~/wheels/vllm-0.34.0-*.whl            # what would change
    python -m benchmarks.flag_histories vllm ~/wheels/vllm-0.34.0-*.whl --write    # record it

Nothing of the wheel is imported or run. Besides a wheel, the folder of an installed package (`.../site-packages/vllm`)
is read; then --version says which one it is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.flag_histories import sglang, spans, vllm
from benchmarks.flag_histories.consumers import mark_dead
from benchmarks.flag_histories.declared import Declared
from benchmarks.flag_histories.objects import keys_of
from benchmarks.flag_histories.variables import names_in, with_version

from assay.flags.history import DATA

READERS = {"vllm": vllm.declared, "sglang": sglang.declared}
SHOWN = 60


def main() -> int:
    """End with 1 where a recorded version is read otherwise than it is recorded."""
    options = _options()
    with unpacked(options.source, options.engine) as root:
        if not (root / "__init__.py").exists():
            sys.exit(f"{options.source} holds no package {options.engine}: name its wheel, or the package's own folder")
        version = options.version or version_of(options.source)
        found = flags_of(options.engine, root)
        variables = names_in(options.engine, root)
        keys = keys_of(options.engine, root)
    history = DATA / f"{options.engine}.jsonl"
    recorded = spans.read(history)
    is_new = version not in recorded.versions
    renewed = recorded.with_version(version, found)
    told = list(spans.differences({} if is_new else recorded.at(version), renewed.at(version)))
    _tell(options.engine, version, recorded, renewed, told, is_new=is_new)
    objects = DATA / f"{options.engine}_json_keys.jsonl"
    renewed_objects = spans.read(objects).with_rows(version, keys)
    told += _told_of_keys(spans.read(objects), renewed_objects, version)
    if options.write:
        spans.write(history, renewed)
        spans.write(objects, renewed_objects)
        table = DATA / f"{options.engine}_environment.tsv"
        table.write_text(with_version(table.read_text("utf-8"), renewed.versions, version, variables), "utf-8")
        print(f"written: {history}, {objects} and {table}")
    return int(bool(told) and not is_new)


def flags_of(engine: str, root: Path) -> list[Declared]:
    """Every flag that the package declares, those marked that nothing reads."""
    found = READERS[engine](root)
    mark_dead(found, root)
    return found


def version_of(source: Path) -> str:
    """By the wheel's own name: `vllm-0.34.0-cp38-abi3-...whl`."""
    parts = source.name.split("-")
    if source.suffix != ".whl" or len(parts) < 3:
        sys.exit(f"{source} is no wheel: say with --version which version it is")
    return parts[1].partition("+")[0]


@contextmanager
def unpacked(source: Path, engine: str) -> Iterator[Path]:
    """The folder of the package; a wheel's Python files are unpacked for as long as the block runs."""
    if source.is_dir():
        yield source if (source / "__init__.py").exists() else source / engine
        return
    with tempfile.TemporaryDirectory(prefix="assay-wheel-") as scratch, zipfile.ZipFile(source) as wheel:
        wheel.extractall(scratch, [name for name in wheel.namelist() if name.endswith(".py")])
        yield Path(scratch) / engine


def _tell(
    engine: str,
    version: str,
    recorded: spans.Recorded,
    renewed: spans.Recorded,
    told: list[str],
    *,
    is_new: bool,
) -> None:
    print(f"{engine} {version}: {len(renewed.at(version))} flags")
    if is_new:
        before = next((each for each in reversed(renewed.versions[: renewed.versions.index(version)])), None)
        told = list(spans.differences(recorded.at(before), renewed.at(version))) if before else told
        print(f"not recorded yet; against {before}, {len(told)} are otherwise:")
    else:
        print(f"recorded; {len(told)} are read otherwise than they are recorded")
    for line in told[:SHOWN]:
        print(f"  {line[:400]}")
    if len(told) > SHOWN:
        print(f"  and {len(told) - SHOWN} more")


def _told_of_keys(recorded: spans.Recorded, renewed: spans.Recorded, version: str) -> list[str]:
    """Say what is read otherwise of the keys of JSON flags; of a version that is new there, only how many there are."""
    if version not in recorded.versions:
        print(f"keys of JSON flags: {len(renewed.at(version))} rows, not recorded yet")
        return []
    told = list(spans.differences(recorded.at(version), renewed.at(version)))
    print(f"keys of JSON flags: {len(told)} are read otherwise than they are recorded")
    for line in told[:SHOWN]:
        print(f"  {line[:400]}")
    return told


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.flag_histories", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("engine", choices=sorted(READERS))
    parser.add_argument("source", type=Path, help="a wheel, or the folder of an installed package")
    parser.add_argument("--version", help="of the package, where the source is a folder")
    parser.add_argument("--write", action="store_true", help="record it, in place of what was recorded of this version")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
