"""What a GGUF file says of itself, read from its header alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.engines.embedded_model import sha256_of
from assay.models.gguf_header import read_header
from assay.records.machine import ModelFacts

FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 25: "IQ4_NL",
    30: "IQ4_XS", 32: "BF16", 38: "MXFP4",
}  # fmt: skip


def read_facts(path: Path) -> ModelFacts:
    """Read a model file's header.

    Raises:
        UsageError: it is not there, not a GGUF file, or cut short.
    """
    header = read_header(path)
    arch = str(header.metadata.get("general.architecture", "unknown"))
    file_type = _whole(header.metadata.get("general.file_type"))
    return ModelFacts(
        path=str(path.resolve()),
        sha256=sha256_of(path),
        size_bytes=header.size_bytes,
        architecture=arch,
        quantization="unknown" if file_type is None else FILE_TYPES.get(file_type, "unknown"),
        num_layers=_whole(header.metadata.get(f"{arch}.block_count")),
        context_length=_whole(header.metadata.get(f"{arch}.context_length")),
        num_experts=_whole(header.metadata.get(f"{arch}.expert_count")),
        name=str(header.metadata.get("general.name") or path.stem),
        license=str(header.metadata.get("general.license") or ""),
    )


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
