"""The text model inside the config.json of a model for several modalities."""

from __future__ import annotations

from assay.models.config import Config

TEXT_KEYS = ("text_config", "llm_config", "language_config", "language_model_config", "thinker_config")
OF_BOTH = ("tie_word_embeddings", "torch_dtype", "dtype", "quantization_config")
"""Keys that a wrapper may hold for the text model inside it."""


def text_model(config: Config) -> Config:
    """The text model inside a wrapper for several modalities, or the config itself."""
    for key in TEXT_KEYS:
        inner = config.child(key)
        if inner is None or not inner.data:
            continue
        config.assume(f"only the text model ({config.prefix}{key}) is counted, no encoder of images or sound")
        for shared in OF_BOTH:
            if shared not in inner and shared in config:
                inner.data = {**inner.data, shared: config.data[shared]}
        if "model_type" not in inner and (outer_type := config.text("model_type")):
            inner.data = {**inner.data, "model_type": f"{outer_type}_text"}
        return text_model(inner)
    return config
