"""What is said about an architecture that has no row among the families."""

from __future__ import annotations

from assay.models.config import Config

NOT_OF_SHAPE = (
    "token", "_id", "rope", "rotary", "max_", "version", "ep_size", "pretraining_tp", "group", "architectures",
    "context", "beam", "length", "return", "dropout", "logits", "top_k", "label", "quantization", "freq", "first_k",
    "shared", "auto_map", "initializer", "_name",
)  # fmt: skip
MOST_NAMED = 12


def say_what_is_assumed(config: Config, architecture: str, *, experts: bool) -> None:
    """Write down how a model of unknown architecture was read, and which keys were not."""
    kind = "mixture-of-experts" if experts else "dense"
    config.assume(
        f"the architecture {architecture!r} is not known: read as a {kind} decoder with gated feed-forward "
        "parts, two RMS norms a layer, rotary positions, and biases only where a key says so"
    )
    if config.flag("tie_word_embeddings") is None:
        config.assume("head and embedding are two matrices: tie_word_embeddings is missing")
    unread = [
        key
        for key, value in config.data.items()
        if key not in config.used
        and not key.startswith("_")
        and not any(word in key for word in NOT_OF_SHAPE)
        and (isinstance(value, list | dict) or (isinstance(value, int) and not isinstance(value, bool) and value))
        and value
    ]
    if unread:
        more = f" and {len(unread) - MOST_NAMED} more" if len(unread) > MOST_NAMED else ""
        config.assume(
            f"keys of config.json that may change the shape were not used: {', '.join(unread[:MOST_NAMED])}{more}"
        )
