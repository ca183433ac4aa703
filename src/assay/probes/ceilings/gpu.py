"""Ceilings of this machine's GPUs: measured in a process of its own, kept under the machine's fingerprint."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.errors import EngineError, UsageError
from assay.probes.ceilings import cache
from assay.probes.ceilings.port import NotMeasurable
from assay.probes.devices import box as known_box
from assay.probes.measured_file import parsed, with_measured
from assay.process import run_quiet
from assay.records.ceilings import GpuCeilings
from assay.records.device import Box, Device, Fact
from assay.records.machine import Machine

MODULE = "assay.probes.ceilings.gpu_program"
STANDARD_S = 120.0
"""What the program is given; a part that would begin later is left out, and said."""
PATIENCE_S = 180.0
"""Beyond it: loading PyTorch, and a part under way."""
KEPT_AS = "gpu-"


def gpu_ceilings(
    machine: Machine, *, again: bool = False, program: Sequence[str] = (sys.executable, "-m", MODULE)
) -> GpuCeilings:
    """What was measured of this machine's GPUs before, else measured now (one to two minutes) and kept.

    A record that time cut short is measured once more with the next call, and both are joined.

    Args:
        machine: this one, with GPUs.
        again: measure anew.
        program: what measures; takes `--out FILE`.

    Raises:
        NotMeasurable: there is no GPU, no PyTorch that sees one, or the program died; says which.
    """
    if not machine.gpus:
        raise NotMeasurable("this machine has no GPU that its driver tells of")
    if any(gpu.mig for gpu in machine.gpus):
        raise NotMeasurable("MIG is on: a slice of a GPU has other ceilings than the GPU")
    kept = cache.path(KEPT_AS + machine.fingerprint)
    known = None if again else _known(kept, machine.fingerprint)
    if known is not None and not cache.cut_parts(known):
        return read(kept, machine.fingerprint)
    with tempfile.TemporaryDirectory(prefix="assay-gpu-") as folder:
        out = Path(folder) / "gpu.json"
        try:
            _measure(program, out)
            found = read(out, machine.fingerprint)
        except (NotMeasurable, UsageError):
            if known is None:
                raise
            cache.keep(kept, json.dumps(cache.joined(known, None)))  # what there was before goes on counting
            return read(kept, machine.fingerprint)
        if not found.facts and known is None:
            raise NotMeasurable(f"nothing that was measured was right: {'; '.join(found.problems.values())[:300]}")
        if known is not None:
            out.write_text(json.dumps(cache.joined(known, json.loads(out.read_bytes()))), encoding="utf-8")
            found = read(out, machine.fingerprint)
        cache.keep(kept, out.read_text(encoding="utf-8"))
    return found


def _known(kept: Path, fingerprint: str) -> dict[str, Any] | None:
    """A record of an earlier call as it was written; None: there is none that can be read."""
    try:
        read(kept, fingerprint)
        known: dict[str, Any] = json.loads(kept.read_bytes())
    except (UsageError, OSError, ValueError):
        return None
    return known


def read(path: Path, fingerprint: str = "") -> GpuCeilings:
    """A record of ceilings: what the program writes, or its facts and curves alone.

    Raises:
        UsageError: the file is missing or malformed.
    """
    content = parsed(path)
    return GpuCeilings(
        fingerprint=fingerprint,
        about=str(content.rest.get("about") or path),
        facts=content.facts,
        curves=content.curves,
        problems={str(key): str(value) for key, value in (content.rest.get("problems") or {}).items()},
    )


def local_box(machine: Machine, ceilings: GpuCeilings | None) -> Box:
    """The GPUs of this machine as a box: the known device, and what was measured here before what is known of its kind.

    A device that no data tells of is made of what was measured and of what its driver says.

    Raises:
        UsageError: nothing is known of it and nothing was measured.
    """
    name, count = machine.gpus[0].name, len(machine.gpus)
    try:
        box = known_box(f"{count}x{name}")
    except UsageError:
        if ceilings is None:
            raise
        box = Box(device=_made(machine), count=count, curves=[])
    return box if ceilings is None else with_measured(box, ceilings)


def _made(machine: Machine) -> Device:
    first = machine.gpus[0]
    told = {"memory_bytes": (first.memory_bytes, "bytes"), "compute_capability": (first.compute_capability, "1")}
    facts = {
        name: [Fact(value=float(value), unit=unit, basis="spec", source="its driver")]
        for name, (value, unit) in told.items()
        if value
    }
    plain = re.sub(r"[^a-z0-9]+", "-", first.name.lower()).strip("-") or "gpu"
    link = f"PCIe {first.pcie_generation}.0 x{first.pcie_width}" if first.pcie_generation and first.pcie_width else ""
    return Device(id=plain, name=first.name, kind="gpu", link=f"NVLink, {link}" if first.nvlinks else link, facts=facts)


def _measure(program: Sequence[str], out: Path) -> None:
    argv = [*program, "--seconds", f"{STANDARD_S:g}", "--out", str(out)]
    try:
        ended = run_quiet(argv, timeout_s=STANDARD_S + PATIENCE_S)
    except EngineError as error:
        if out.exists():
            return  # what was measured until then is there
        raise NotMeasurable(error.message) from error
    if out.exists():
        return
    raise NotMeasurable(_why(ended.output, ended.exit_code))


def _why(output: str, exit_code: int) -> str:
    lines = output.strip().splitlines()
    try:
        return str(json.loads(lines[-1])["problem"])
    except (IndexError, ValueError, KeyError, TypeError):
        pass
    if "No module named 'torch'" in output:
        return "PyTorch, which measures them, is not installed beside Assay: install Assay where the engine is"
    return (
        f"the program that measures them ended with exit code {exit_code}: {lines[-1][:300] if lines else 'no output'}"
    )


__all__ = ["gpu_ceilings", "local_box", "read"]
