"""The encoder of images beside a text model, by its `vision_config`: parameters that take memory and no token's time.

Counted where the parts outside of the layers are known. A layer of a vision transformer is attention with four square
projections and a feed-forward part of two, all with biases, and two layer norms. Sources: Hugging Face transformers,
models/llama4/modeling_llama4.py (Llama4VisionModel, Llama4VisionPixelShuffleMLP, Llama4MultiModalProjector) and
models/siglip/modeling_siglip.py with models/gemma3/modeling_gemma3.py (Gemma3MultiModalProjector).
"""

from __future__ import annotations

from collections.abc import Callable

from assay.models.config import MOST_LAYERS, Config
from assay.records.model_shape import Encoder

CHANNELS = 3
BYTES = 2.0
"""Of a parameter: checkpoints keep encoders in 16 bits, quantized ones too."""


def vision(config: Config, text_hidden: int) -> Encoder | None:
    """The encoder with what leads from it to the text model; None where there is none, or its kind is not known."""
    inner = config.child("vision_config")
    if inner is None or not is_known(config):
        return None
    parameters = COUNTS[inner.text("model_type") or ""](inner, text_hidden)
    return Encoder(name="vision", parameters=parameters, weight_bytes=parameters * BYTES)


def is_known(config: Config) -> bool:
    """Whether there is an encoder, and it can be counted."""
    inner = config.child("vision_config")
    return inner is not None and inner.text("model_type") in COUNTS


def _llama4(config: Config, text_hidden: int) -> int:
    """Patches without a bias, a class token, learned positions, norms before and after, an adapter, a projection."""
    hidden, shuffled = config.need("hidden_size"), config.need("projector_input_dim")
    told = config.need("projector_output_dim")
    patches = _patches(config)
    outer = _patch_values(config) * hidden + hidden + (patches + 1) * hidden + 2 * 2 * hidden
    adapter = config.need("intermediate_size") * shuffled + shuffled * told
    return outer + _layers(config, hidden) + adapter + config.need("vision_output_dim") * text_hidden


def _siglip(config: Config, text_hidden: int) -> int:
    """Patches with a bias, learned positions, a norm after; a norm and a projection without a bias lead on."""
    hidden = config.need("hidden_size")
    outer = _patch_values(config) * hidden + hidden + _patches(config) * hidden + 2 * hidden
    return outer + _layers(config, hidden) + hidden + hidden * text_hidden


COUNTS: dict[str, Callable[[Config, int], int]] = {"llama4_vision_model": _llama4, "siglip_vision_model": _siglip}


def _layers(config: Config, hidden: int) -> int:
    inner, layers = config.need("intermediate_size"), config.need("num_hidden_layers", most=MOST_LAYERS)
    attention = 4 * (hidden * hidden + hidden)
    feed_forward = 2 * hidden * inner + inner + hidden
    return layers * (attention + feed_forward + 2 * 2 * hidden)


def _patches(config: Config) -> int:
    """Of a square image."""
    return (config.need("image_size") // config.need("patch_size")) ** 2


def _patch_values(config: Config) -> int:
    channels = config.whole("num_channels") or CHANNELS
    return int(channels * config.need("patch_size") ** 2)
