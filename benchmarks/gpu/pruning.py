"""How many of an engine's published tunings the tuner's rules would leave out: `... -m benchmarks.gpu.pruning FOLDER`.

FOLDER holds `E=..,N=..,device_name=..json` files, as vLLM's model_executor/layers/fused_moe/configs. The names say
neither hidden size nor top-k: 6144 and 8 are taken for many experts, 4096 and 2 for few. No GPU is needed.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

from assay.lab.tuning import config_files
from assay.lab.tuning.space import Problem, why_not

NAME = re.compile(r"E=(\d+),N=(\d+),device_name=(NVIDIA_[^,.]*)(.*)\.json")
DEVICES = ("H100", "H200", "H20", "B200")
SMEM_BYTES = 232_448


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of the engine's files")
    folder: Path = parser.parse_args().folder
    total, reasons, elsewhere = 0, Counter[str](), 0
    for path in sorted(folder.glob("E=*.json")):
        found = NAME.fullmatch(path.name)
        if found is None or "int" in found[4] or not any(name in found[3] for name in DEVICES):
            continue
        for tokens, config in config_files.read(path.read_text()).items():
            total += 1
            reason = why_not(config, problem(int(found[1]), int(found[2]), tokens, "fp8" in found[4]))
            if reason is not None:
                elsewhere += "fp8" in found[4] and "block_shape" not in found[4]
                reasons[re.sub(r"[\d.]+", "#", reason)] += 1
                print(f"{path.name} at {tokens}: {config.told}: {reason}")
    print(f"{total} configurations, {reasons.total()} would be left out: {dict(reasons)}")
    print(f"{elsewhere} of these are for fp8 without blocks, which the tuner does not tune")


def problem(experts: int, width: int, tokens: int, narrow: bool) -> Problem:
    top_k = min(experts, 8 if experts >= 32 else 2)
    return Problem(
        tokens=tokens,
        distinct=experts * (1 - (1 - top_k / experts) ** tokens),
        pairs=tokens * top_k,
        hidden=6144 if experts >= 128 else 4096,
        width=width,
        element_bytes=1 if narrow else 2,
        read_bytes_per_s=3.5e12,
        flop_per_s=1.28e15 if narrow else 7.5e14,
        smem_per_block_bytes=SMEM_BYTES,
        sms=132,
    )


if __name__ == "__main__":
    main()
