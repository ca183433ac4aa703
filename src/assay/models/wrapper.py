"""The text model inside the config.json of a model for several modalities."""

from __future__ import annotations

from assay.models.config import Config

TEXT_KEYS = ("text_config", "llm_config", "language_config", "language_model_config", "thinker_config")
OF_BOTH = ("tie_word_embeddings", "torch_dtype", "dtype", "quantization_config")
"""Keys that a wrapper may hold for the text model inside it."""


def text_model(config: Config, *, encoder: bool = False) -> Config:
    """The text model inside a wrapper for several modalities, or the config itself.

    Args:
        config: of the wrapper, or of the model.
        encoder: that of images is counted, which the sentence about what is left out then says.
    """
    for key in TEXT_KEYS:
        inner = config.child(key)
        if inner is None or not inner.data:
            continue
        left_out = "its encoder of images counts in memory alone" if encoder else "no encoder of images or sound"
        config.assume(f"only the text model ({config.prefix}{key}) is counted, {left_out}")
        for shared in OF_BOTH:
            if shared not in inner and shared in config:
                inner.data = {**inner.data, shared: config.data[shared]}
        if "model_type" not in inner and (outer_type := config.text("model_type")):
            inner.data = {**inner.data, "model_type": f"{outer_type}_text"}
        return text_model(inner, encoder=encoder)
    return config
