"""What the compiler makes of the kernels for a chip that need not be there."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed: kernels cannot be compiled")
pytest.importorskip("triton", reason="triton is not installed: kernels cannot be compiled")

PROGRAM = """
import json, sys
from assay.kernels.candidates import families
from assay.kernels.choose import Shape
from assay.kernels.compiling import compile_layer, without_device
without_device(90)
shape = Shape(experts=256, intermediate=256, hidden=6144, dtype=sys.argv[1])
sizes = {"row_bytes": 2, "weight_bytes": 2} if shape.dtype == "bf16" else {"row_bytes": 1, "weight_bytes": 1}
found = []
for tokens in (1, 64, 1024):
    groups = families(shape, tokens=tokens, slots=8, global_experts=256)
    firsts = {(one[0].path, one[0].swapped): one[0] for one in reversed(list(groups))}
    for config in firsts.values():
        made = compile_layer(shape, config, tokens=tokens, slots=8)
        kinds = "wgmma.mma_async", "mma.sync"
        told = [[one.name, one.shared_bytes, *(one.ptx.count(kind) for kind in kinds)] for one in made]
        found.append([config.path, config.swapped, config.gate_up.rows, config.shared_bytes(**sizes), told])
print(json.dumps(found))
"""
OTHERS = """
import json, torch
from assay.kernels.candidates import families
from assay.kernels.choose import Shape
from assay.kernels.compiling import compile_layer, only_compiling, without_device
from assay.lab.on_gpu import plain_grouped
from assay.probes.ceilings import gpu_memory
without_device(90)
def empty(*size, dtype=torch.bfloat16):
    return torch.empty(size, dtype=dtype, device="meta")
whole, wide = empty(64, dtype=torch.int32), empty(64, dtype=torch.int64)
scale = empty(64, dtype=torch.float32)
with only_compiling() as found:
    gpu_memory._read_blocks[(1,)](whole, wide, 8, 2, 4, block=1024)
    for kind, scaled in ((torch.bfloat16, False), (torch.float8_e4m3fn, True)):
        plain_grouped._kernel[(1,)](
            empty(8, 256, dtype=kind), empty(4, 128, 256, dtype=kind), empty(8, 128), scale, scale, whole, whole,
            8, 128, 256, 1, ROWS=64, COLUMNS=64, DEPTH=128, SCALED=scaled, GROUP=128,
        )
names = [one.name for one in found]
shape = Shape(experts=8, intermediate=256, hidden=512, dtype="fp8")
config = next(one[0] for one in families(shape, tokens=512, slots=2, global_experts=8) if one[0].path == "sorted")
names += [one.name for one in compile_layer(shape, config, tokens=512, slots=2)]
print(json.dumps(names))
"""


def in_a_process(program: str, *arguments: str) -> list:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    argv = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, check=True, timeout=250)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_kernels_compile_for_hopper_and_take_no_more_shared_memory_than_their_tiles_say(dtype: str) -> None:
    layers = in_a_process(PROGRAM, dtype)
    assert {path for path, *_ in layers} == {"pairs", "scan", "sorted"}
    for path, _, _, estimate, kernels in layers:
        assert len(kernels) >= 2
        for name, shared, *_ in kernels:
            assert shared <= estimate, (path, name)
        assert max(shared for _, shared, *_ in kernels) > 0.4 * estimate, path


@pytest.mark.slow
def test_weights_on_the_left_let_a_tile_of_few_tokens_use_the_instructions_of_a_hopper() -> None:
    products = {
        (swapped, name): (wgmma, older)
        for path, swapped, rows, _, kernels in in_a_process(PROGRAM, "fp8")
        for name, _, wgmma, older in kernels
        if path == "scan" and rows == 16 and name in {"gate_up_scan", "down_scan"}
    }
    assert len(products) == 4
    for (swapped, name), (wgmma, older) in products.items():
        assert (wgmma > 0, older > 0) == (swapped, not swapped), name


@pytest.mark.slow
def test_kernels_of_the_lab_and_of_the_ceilings_compile_for_hopper() -> None:
    names = in_a_process(OTHERS)
    assert names[:3] == ["_read_blocks", "_kernel", "_kernel"]
    assert {"sort_pairs", "quantize_rows", "gate_up_sorted", "down_sorted", "sum_slots"} <= set(names)
