"""Print what Assay sees of this machine, as the JSON that `assay assess --machine FILE` reads.

    PYTHONPATH=src:FOLDER python benchmarks/gpu/probe.py > box.json

Needs pydantic and psutil, and `pynvml` (nvidia-ml-py, one file) somewhere on the path; FOLDER is where it lies when it
cannot be installed. On stderr: how long each part took, what the driver would not say, and the findings.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from assay.probes.files import Files
from assay.probes.findings import findings
from assay.probes.gpus import read_gpus
from assay.probes.machine import MachineProbe
from assay.store.redact import redact


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    started_s = time.perf_counter()
    reading = read_gpus(Files())
    say(f"GPUs: {len(reading.gpus)} in {time.perf_counter() - started_s:.3f} s {reading.problem or ''}")
    started_s = time.perf_counter()
    seen = MachineProbe().stock()
    say(f"everything: {time.perf_counter() - started_s:.3f} s, fingerprint {seen.machine.fingerprint}")
    for gpu in reading.gpus:
        for field, reason in gpu.missing.items():
            say(f"GPU {gpu.index} does not say {field}: {reason}")
    for finding in findings(seen):
        say(f"{finding.severity}: {finding.title} ({finding.evidence})")
    print(json.dumps(redact(seen.model_dump(mode="json")), indent=2))


def say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
