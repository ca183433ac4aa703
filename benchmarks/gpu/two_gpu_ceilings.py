"""Ceilings of two GPUs and the links between them: `python -m benchmarks.gpu.two_gpu_ceilings --out FOLDER`.

Beside Assay's own set (`assay.probes.ceilings.gpu_program`) NCCL's algorithms and protocols, and vLLM's all-reduce
where vLLM can be imported. FOLDER gets ceilings.json (every sample and check), facts.json (for `assay estimate
--measured`), and what NCCL said of its settings. Copies, all-reduces and products are checked; what is wrong gives no
figure.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.gpu.moe_tables import write
from benchmarks.gpu.tables import ceilings_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    import torch  # noqa: PLC0415 - --help answers without it
    from benchmarks.gpu import two_gpu_links  # noqa: PLC0415

    from assay.probes.ceilings import gpu_program  # noqa: PLC0415

    asked.out.mkdir(parents=True, exist_ok=True)
    if torch.cuda.device_count() < 2:
        sys.exit(f"{torch.cuda.device_count()} GPU here: links need two")
    os.environ["ASSAY_NCCL_LOG"] = str(asked.out.resolve())
    found = gpu_program.measure(0, asked.seconds, asked.out / "ceilings.json", two_gpu_links.worker)
    found["nccl_settings_read"] = two_gpu_links.settings_read(asked.out)
    write(asked.out / "ceilings.json", found)
    write(asked.out / "facts.json", {"facts": found["facts"], "curves": found["curves"]})
    print("\n".join(ceilings_table(found)))


if __name__ == "__main__":
    main()
