"""Convert a GGUF file's matrices to another type: `python -m assay.engines.requantize SOURCE TARGET TYPE`.

A program of its own, so that its memory is not Assay's. Requantizing an already quantized model loses accuracy twice:
the answer check decides whether the result may be used.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import gguf
import numpy as np

BLOCK = 32
FILE_TYPE = {"Q8_0": "MOSTLY_Q8_0", "Q4_0": "MOSTLY_Q4_0", "F16": "MOSTLY_F16"}
SKIPPED = {"general.architecture", "general.file_type"}


def requantize(source: Path, target: Path, kind: str) -> None:
    """Write `target` with every matrix in the given type; vectors stay in float32."""
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in SKIPPED:
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), field.types[0])
    writer.add_file_type(gguf.LlamaFileType[FILE_TYPE[kind]])
    parent = os.getppid()
    for tensor in reader.tensors:
        if os.getppid() != parent:
            sys.exit("the Assay that asked for this file is gone")
        _add(writer, tensor, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add(writer: gguf.GGUFWriter, tensor: gguf.ReaderTensor, kind: str) -> None:
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    if values.ndim == 1:
        writer.add_tensor(tensor.name, values.astype(np.float32))
    elif kind == "F16" or values.shape[-1] % BLOCK:
        writer.add_tensor(tensor.name, values.astype(np.float16))
    else:
        wanted = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(tensor.name, gguf.quants.quantize(values.astype(np.float32), wanted), raw_dtype=wanted)


if __name__ == "__main__":
    requantize(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
