"""The tables of docs/gpu.md from the files that the scripts here wrote: `python -m benchmarks.gpu.tables FOLDER`.

Every table is preceded by device, versions and date; a file that is not there is said to be missing.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.moe_tables import KERNEL, points, state, table
from benchmarks.gpu.running import lines

from assay.lab import floors
from assay.lab.shapes import ExpertShape
from assay.probes.devices import box
from assay.probes.measured_file import with_measured
from assay.roofline import ceilings

KIB = 1024
SCALES = {"bytes/s": (1e9, "GB/s"), "flop/s": (1e12, "TFLOP/s"), "s": (1e-6, "us")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="results, as examples/gpu/h200")
    folder: Path = parser.parse_args().folder
    facts = folder / "facts.json"
    known = box("h200")
    limits = ceilings.of((with_measured(known, facts) if facts.exists() else known).device)
    measured = folder / "ceilings.json"
    first = ceilings_table(json.loads(measured.read_text())) if measured.exists() else iter([f"(no {measured.name})"])
    for part in (first, *(lab_table(path, limits) for path in sorted(folder.glob("lab-*.jsonl")))):
        print("\n".join(part), end="\n\n")
    runs = {path: json.loads(path.read_text()) for path in sorted(folder.glob("moe_kernel*.json"))}
    for dtype in KERNEL:
        print("\n".join(kernel_table(runs, dtype)), end="\n\n")
    for path in sorted(folder.glob("tune-*.jsonl")):
        if "journal" not in path.name:
            print("\n".join(tuner_table(path)), end="\n\n")
    for path in sorted(folder.glob("whatif-*.jsonl")):
        print("\n".join(stand_ins(path)), end="\n\n")


def ceilings_table(found: dict[str, Any]) -> Iterator[str]:
    """Of what `assay.probes.ceilings.gpu_program` writes."""
    yield f"Ceilings: {found['about']}"
    yield ""
    yield from _row("quantity", "median", "quartiles", "cache", "check")
    yield "|---|---:|---:|---|---|"
    for one in found["readings"]:
        scale, unit = SCALES[one["unit"]]
        low, middle, high = (value / scale for value in quartiles(one["samples"]))
        size = one.get("footprint_bytes", one.get("message_bytes"))
        where = " ".join(
            filter(None, (one["name"], one.get("algorithm", ""), f"{size / KIB:,.0f} KiB" if size else ""))
        )
        good = one["check"] if one["correct"] else f"WRONG: {one['check']}"
        yield from _row(f"{where}, {unit}", f"{middle:,.2f}", f"{low:,.2f}-{high:,.2f}", one["cache"], good)
    for each in found["curves"]:
        words = f"latency {each['latency_s'] * 1e6:.1f} us, bus {each['bus_bytes_per_s'] / 1e9:.0f} GB/s"
        yield f"\n{each['collective']} by {each['algorithm']} over {each['world']} GPUs: {words}"
    for name, problem in found["problems"].items():
        yield f"\nnot measured: {name}: {problem}"


def lab_table(path: Path, limits: ceilings.Ceilings) -> Iterator[str]:
    rows = list(lines(path))
    shapes = {
        row["layout"]: ExpertShape(**row) for row in json.loads(path.with_suffix(".job.json").read_text())["shapes"]
    }
    yield f"{path.stem}: {_about(rows)}"
    points = [row for row in rows if row["kind"] == "point"]
    names = list(dict.fromkeys(row["implementation"] for row in points if "time_s" in row))
    for layout, shape in shapes.items():
        yield f"\n{layout}: {shape.told}\n"
        yield from _row("tokens", "experts hit", "floor us", *names)
        yield "|" + "---:|" * (3 + len(names))
        here = [row for row in points if row["layout"] == layout]
        for tokens in sorted({row["tokens"] for row in here}):
            same = {row["implementation"]: row for row in here if row["tokens"] == tokens}
            any_row = next(iter(same.values()))
            floor = floors.at(shape, tokens, any_row["distinct"], any_row["pairs"], limits)
            cells = [_cell(same.get(name), floor.floor_s) for name in names]
            yield from _row(f"{tokens:,}", f"{any_row['distinct']:.0f}", f"{floor.floor_s * 1e6:,.1f}", *cells)
    for text in sorted({f"{row['implementation']}: {row['problem']}" for row in points if "problem" in row}):
        yield f"\nnot measured: {text}"


def kernel_table(runs: dict[Path, dict[str, Any]], dtype: str) -> Iterator[str]:
    """Our kernel by slice and batch, the median of its runs, beside what an engine's kernel and torch take."""
    said = {path: run for path, run in runs.items() if any(cell["dtype"] == dtype for cell in run["cells"])}
    yield f"The experts kernel, {dtype}; us (share of the floor); vLLM / ours: the median run (least-most of all)"
    for path, run in said.items():
        read, rate = (run["ceilings"][name] for name in ("read_bytes_per_s", "bf16_flop_per_s"))
        earlier = "" if state(run, dtype) == KERNEL[dtype] else "; an earlier kernel, not in the table"
        measured = f"read {read / 1e12:.2f} TB/s, bf16 matmul {rate / 1e12:,.0f} TFLOP/s"
        yield f"\n{path.stem}: {run['about']}; {measured}{earlier}"
    yield ""
    yield from table([point for point in points(runs.values()) if point.dtype == dtype])


def tuner_table(path: Path) -> Iterator[str]:
    rows = list(lines(path))
    yield f"{path.stem}: {_about(rows)}"
    for row in rows:
        if row["kind"] == "search":
            words = f"{row['took_s']:.0f} s, {row['launches']} measurements made, {row['known']} known"
            yield f"\n{row['mode']} search: {words}"
        elif row["kind"] in ("stopped", "note"):
            yield f"\n{row.get('reason') or row.get('text')}"
    compared = [row for row in rows if row["kind"] == "compared"]
    names = list(dict.fromkeys(name for row in compared for name in row["time_s"]))
    tried = {row["tokens"]: row for row in rows if row["kind"] == "winner"}
    yield ""
    yield from _row("tokens", *(f"{name} us" for name in names), "tuned tiles", "tried", "pruned")
    yield "|" + "---:|" * (1 + len(names)) + "---|---:|---:|"
    for row in compared:
        times = [f"{row['time_s'][name] * 1e6:,.1f}" if name in row["time_s"] else "-" for name in names]
        tile = " ".join(map(str, row["configs"]["tuned"].values()))
        winner = tried[row["tokens"]]
        yield from _row(f"{row['tokens']:,}", *times, tile, str(winner["measured"]), str(winner["pruned"]))


def stand_ins(path: Path) -> Iterator[str]:
    rows = list(lines(path))
    yield f"{path.stem}: {_about(rows)}"
    yield ""
    yield from _row("stand-in", "tokens", "us", "quartiles", "what")
    yield "|---|---:|---:|---:|---|"
    for row in rows:
        if row["kind"] == "stand-in" and "time_s" in row:
            spread = f"{row['low_s'] * 1e6:,.1f}-{row['high_s'] * 1e6:,.1f}"
            yield from _row(
                row["name"], str(row["tokens"] or "any"), f"{row['time_s'] * 1e6:,.1f}", spread, row["what"]
            )
        elif row["kind"] == "stand-in":
            yield from _row(row["name"], str(row["tokens"] or "any"), "-", "-", row["problem"])


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """As `assay.kernels.device_timing.quartiles`, which needs torch."""
    if len(samples) < 2:
        return samples[0], samples[0], samples[0]
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, middle, high


def _about(rows: Sequence[dict[str, Any]]) -> str:
    about = next((row for row in rows if row["kind"] == "device"), {})
    keys = ("device", "engine", "version", "torch", "triton", "date")
    return ", ".join(f"{key} {about[key]}" if key != "device" else about[key] for key in keys if about.get(key))


def _cell(row: dict[str, Any] | None, floor_s: float) -> str:
    if row is None or "time_s" not in row:
        return "-"
    told = f"{row['time_s'] * 1e6:,.1f}"
    return f"{told} ({floor_s / row['time_s']:.0%})" if row["correct"] else f"{told} (WRONG)"


def _row(*cells: str) -> Iterator[str]:
    yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
