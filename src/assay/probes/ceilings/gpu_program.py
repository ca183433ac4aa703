"""Measures what GPUs can do at most, in a process of its own: `python -m assay.probes.ceilings.gpu_program [INDEX]`.

Writes one JSON object: `facts` and `curves` (as `assay estimate --measured` reads them), `readings` (every sample, with
its check and whether caches were cold or warm) and `problems` (what could not be measured, and why). Needs PyTorch,
which Assay does not install. Outputs are poisoned before each check and compared with a reference in higher precision;
a reading whose check fails gives no fact. With `--out FILE` the object is written again after every part.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from assay.probes.ceilings import gpu_fit, gpu_launch, gpu_memory, gpu_peers, gpu_products
from assay.probes.ceilings.gpu_links import Worker, measure_links
from assay.probes.ceilings.gpu_readings import Reading

STANDARD_S = 120.0
"""The whole standard set; a part that would begin later is left out, and said."""
ONE_GPU: tuple[Callable[[], list[Reading]], ...] = (
    gpu_memory.memory,
    gpu_products.bf16,
    gpu_products.fp8,
    gpu_launch.launches,
    gpu_memory.cache_curve,
    gpu_products.thin_products,
    gpu_memory.host_link,
    gpu_products.fp4,
    gpu_products.fp32,
)
"""What estimates need most comes first."""
FACTS = frozenset(
    {
        "memory_read_bytes_per_s",
        "memory_copy_bytes_per_s",
        "l2_read_bytes_per_s",
        "bf16_flop_per_s",
        "fp32_flop_per_s",
        "fp8_flop_per_s",
        "fp4_flop_per_s",
        "launch_s",
        "host_link_bytes_per_s",
    }
)
"""Readings that are facts of a device; the rest tell about kernels."""
NOT_REACHED = "the program ended before it"
VOLUMES: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda world: 2 * (world - 1) / world,
    "all_to_all": lambda world: (world - 1) / world,
    "all_gather": lambda world: world - 1.0,
    "reduce_scatter": lambda world: (world - 1) / world,
}
"""As `assay.roofline.communication.volume_factor`, which needs more than this process has."""


def measure(index: int, seconds: float, out: Path | None, worker: Worker | None = None) -> dict[str, Any]:
    """Everything, on one device and between all of them.

    Args:
        index: of the device.
        seconds: no part begins later.
        out: where everything is written after each part.
        worker: what measures the links, in a process for each device; None: Assay's own set.
    """
    begun_s = time.monotonic()
    torch.cuda.set_device(index)
    torch.manual_seed(0)
    properties = torch.cuda.get_device_properties(index)
    count = torch.cuda.device_count()
    parts = [part.__name__ for part in ONE_GPU]
    problems = dict.fromkeys(parts if count == 1 else [*parts, "peers", "links"], NOT_REACHED)
    if count == 1:
        problems["links"] = "1 GPU here: nothing to link"
    found: dict[str, Any] = {
        "device": properties.name,
        "about": f"{properties.name}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}",
        "chip": _chip(properties),
        "facts": {},
        "curves": [],
        "readings": [],
        "problems": problems,
        "took_s": {},
    }

    def left_s() -> float:
        return seconds - (time.monotonic() - begun_s)

    for part in ONE_GPU:
        _run(found, part.__name__, part, left_s(), out)
    if count > 1:
        _run(found, "peers", gpu_peers.peers, left_s(), out)
        with tempfile.TemporaryDirectory() as folder:

            def linked() -> list[Reading]:
                readings, missing = measure_links(count, Path(folder), max(10.0, left_s()), worker)
                found["problems"] |= missing
                return readings

            _run(found, "links", linked, left_s(), out)
    return found


def _run(found: dict[str, Any], name: str, part: Callable[[], list[Reading]], left_s: float, out: Path | None) -> None:
    begun_s = time.monotonic()
    if left_s <= 0:
        found["problems"][name] = "no time was left for it"
    else:
        del found["problems"][name]  # in the file it stands until the part is done
        try:
            found["readings"] += part()
        except (RuntimeError, NotImplementedError, AttributeError, TypeError, ValueError) as error:
            found["problems"][name] = (str(error) or repr(error)).splitlines()[0][:300]
    torch.cuda.empty_cache()
    found["took_s"][name] = time.monotonic() - begun_s
    found["facts"], found["curves"] = (
        facts(found["readings"], found["about"]),
        curves(found["readings"], found["about"]),
    )
    print(f"{name}: {found['took_s'][name]:.1f} s", file=sys.stderr, flush=True)  # noqa: T201 - progress of a program
    if out is not None:
        partial = out.with_suffix(".partial")
        partial.write_text(json.dumps(found, indent=1))
        partial.replace(out)


def facts(readings: list[Reading], about: str) -> dict[str, dict[str, Any]]:
    """Medians of what was right, as facts of a device measured here; the L2's is the best of its curve."""
    rows = [one for one in readings if one["name"] in FACTS and one["correct"]]
    curve = [one for one in readings if one["name"] == "l2_curve_read_bytes_per_s" and one["correct"]]
    if curve:
        best = max(curve, key=lambda one: statistics.median(one["samples"]))
        rows.append({**best, "name": "l2_read_bytes_per_s"})
    return {
        one["name"]: {
            "value": statistics.median(one["samples"]),
            "unit": one["unit"],
            "basis": "measured",
            "source": f"median of {len(one['samples'])} passes; {about}",
        }
        for one in rows
    }


def curves(readings: list[Reading], about: str) -> list[dict[str, Any]]:
    """Link curves by collective and algorithm: medians as points, with latency and bandwidth fitted to them."""
    groups: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    for one in readings:
        collective = one["name"].removesuffix("_s")
        if collective in VOLUMES and one["correct"]:
            key = collective, one["algorithm"], one["world"]
            groups.setdefault(key, []).append((one["message_bytes"], statistics.median(one["samples"])))
    found = []
    for (collective, algorithm, world), points in sorted(groups.items()):
        if len(points) < 2:  # noqa: PLR2004 - a line
            continue
        points.sort()
        alpha, beta = gpu_fit.alpha_beta(
            [size for size, _ in points], [time_s for _, time_s in points], VOLUMES[collective](world)
        )
        found.append(
            {
                "collective": collective,
                "world": world,
                "algorithm": algorithm,
                "latency_s": alpha,
                "bus_bytes_per_s": beta,
                "points": [{"message_bytes": size, "time_s": time_s} for size, time_s in points],
                "max_message_bytes": None if algorithm.startswith("nccl") else points[-1][0],
                "basis": "measured",
                "source": f"medians inside replayed graphs; {about}",
            }
        )
    return found


def _chip(properties: Any) -> dict[str, Any]:
    """What decides which tiles fit."""
    return {
        "compute_capability": f"{properties.major}.{properties.minor}",
        "sms": properties.multi_processor_count,
        "memory_bytes": properties.total_memory,
        "l2_bytes": getattr(properties, "L2_cache_size", None),
        "smem_per_block_bytes": getattr(properties, "shared_memory_per_block_optin", None),
        "registers_per_sm": getattr(properties, "regs_per_multiprocessor", None),
    }


def main() -> None:
    """Measure the device that is named (the first one), and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", nargs="?", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=STANDARD_S)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        found: dict[str, Any] = {"problem": "PyTorch sees no CUDA device here"}
    else:
        found = measure(options.index, options.seconds, options.out)
    json.dump(found, sys.stdout)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
