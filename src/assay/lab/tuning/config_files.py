"""The files in which vLLM and SGLang look for tuned tiles: names, places and contents.

>>> file_name("vllm", experts=256, width=256, device="NVIDIA H200", dtype="fp8")
'E=256,N=256,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json'
>>> file_name("sglang", experts=64, width=768, device="NVIDIA H200", dtype="bf16")
'E=64,N=768,device_name=NVIDIA_H200.json'
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Literal

from assay.lab.tuning.space import FIELDS, FP8_BLOCK, Config

Engine = Literal["vllm", "sglang"]
FOLDER_VARIABLE: dict[Engine, str] = {"vllm": "VLLM_TUNED_CONFIG_FOLDER", "sglang": "SGLANG_MOE_CONFIG_DIR"}
"""Environment variable that names the folder. Source: vLLM 0.26.0, model_executor/layers/fused_moe/fused_moe.py;
SGLang 0.5.17, srt/layers/moe/moe_runner/triton_utils/fused_moe_triton_config.py."""
TRITON = "triton_version"


def file_name(engine: Engine, *, experts: int, width: int, device: str, dtype: str) -> str:
    """The name that the engine asks for.

    The engines differ in what they make of a device's name and of a block's shape: vLLM replaces runs of spaces and
    slashes and calls every H200 the same; SGLang replaces spaces alone and writes the shape with one.

    Args:
        engine: whose.
        experts: on the rank, as the kernel sees them.
        width: of the intermediate layer on the rank.
        device: as CUDA names it.
        dtype: bf16 or fp8 (in blocks of 128x128).
    """
    if engine == "vllm":
        name = re.sub(r"[\s/]+", "_", device)
        name = "NVIDIA_H200" if "H200" in name.split("_") else name
    else:
        name = device.replace(" ", "_")
    shape = [FP8_BLOCK, FP8_BLOCK]
    told = str(shape) if engine == "sglang" else str(shape).replace(" ", "")
    selector = f",dtype=fp8_w8a8,block_shape={told}" if dtype == "fp8" else ""
    return f"E={experts},N={width},device_name={name}{selector}.json"


def subfolder(engine: Engine, triton_version: str) -> str:
    """Where in the folder of `FOLDER_VARIABLE` the file has to lie; empty: in the folder itself."""
    return "" if engine == "vllm" else f"configs/triton_{triton_version.replace('.', '_')}"


def write(engine: Engine, winners: Mapping[int, Config], triton_version: str) -> str:
    """Contents of a file. vLLM's carries Triton's version; SGLang reads every key as a number of tokens."""
    rows: dict[str, object] = {str(tokens): winners[tokens].as_engine() for tokens in sorted(winners)}
    if engine == "vllm":
        rows = {TRITON: triton_version, **rows}
    return json.dumps(rows, indent=4) + "\n"


def read(text: str) -> dict[int, Config]:
    """Configurations of a file by number of tokens.

    Raises:
        ValueError: it is no such file.
    """
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("no object of configurations by number of tokens")  # noqa: TRY004 - the text is wrong, not a type
    found = {}
    for key, row in content.items():
        if key == TRITON:
            continue
        if not re.fullmatch(r"\d+", key) or not isinstance(row, dict) or any(name not in row for name in FIELDS[:4]):
            raise ValueError(f"{key!r} is no number of tokens with a configuration")
        found[int(key)] = Config.of(row)
    return found


def chosen(configs: Mapping[int, Config], tokens: int) -> Config:
    """Which of a file's configurations an engine takes for a number of tokens: the nearest one's."""
    return configs[min(configs, key=lambda known: abs(known - tokens))]
