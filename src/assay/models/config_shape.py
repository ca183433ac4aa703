"""A folder with config.json, or the file alone, to a model shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.models import encoder, skeleton
from assay.models.assemble import assemble
from assay.models.config import Config
from assay.models.json_file import read_object
from assay.models.quantization import scheme
from assay.models.reconcile import reconciled
from assay.models.safetensors import read_folder
from assay.models.wrapper import text_model
from assay.records.model_shape import ModelShape

QUANTIZATION_FILE = "hf_quant_config.json"


def read_config(path: Path, *, name: str | None = None) -> ModelShape:
    """The shape of the model that a config.json describes, and the weight files beside it hold.

    Raises:
        UsageError: a file is damaged, or does not say what cannot be assumed.
    """
    outer = Config(read_object(path), str(path))
    config = text_model(outer, encoder=encoder.is_known(outer))
    built = skeleton.build(config)
    encoders = [found] if (found := encoder.vision(outer, built.hidden)) else []
    store = scheme(config, _quantization_beside(path, config.assumed))
    if name is None:
        folder = read_folder(path.parent)
        built, agreed, said = reconciled(built, store, folder, sum(each.weight_bytes for each in encoders))
        return assemble(
            built, agreed, name=path.absolute().parent.name, source=str(path), assumed=[*config.assumed, *said],
            encoders=encoders,
        )  # fmt: skip
    return assemble(built, store, name=name, source=name, assumed=config.assumed, encoders=encoders)


def _quantization_beside(path: Path, assumed: list[str]) -> Config | None:
    """What ModelOpt writes into a file of its own."""
    beside = path.with_name(QUANTIZATION_FILE)
    if not beside.is_file():
        return None
    told: dict[str, Any] = read_object(beside)
    return Config(told, str(beside), assumed=assumed).child("quantization")
