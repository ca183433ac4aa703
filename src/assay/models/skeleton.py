"""A config.json to layers and pieces, before storage: families, laws and builders put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from assay.errors import UsageError
from assay.models import feed_forward, full_attention, latent_attention, laws, linear_attention
from assay.models.config import MOST_LAYERS, Config
from assay.models.families import BEYOND_US, LLAMA, Family, named
from assay.models.laws import IndexerUse
from assay.models.pieces import Layer, Piece, linear, vector
from assay.models.unknown import say_what_is_assumed
from assay.records.model_shape import Attention

HIDDEN_KEYS = ("hidden_size", "n_embd", "d_model", "dim")
LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
POSITION_KEYS = ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "n_ctx")
MOST_DRAFT_LAYERS = 64
DRAFT_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skeleton:
    """What a config.json says of a model, but for how weights are stored."""

    architecture: str
    hidden: int
    vocab: int
    max_positions: int | None
    num_experts: int
    top_k: int
    tied: bool
    outer: tuple[Piece, ...]
    layers: tuple[Layer, ...]
    draft_layers: tuple[Layer, ...] = field(default=())


def build(config: Config) -> Skeleton:
    """Every layer of the model.

    Raises:
        UsageError: a key is missing that cannot be assumed, a value is wrong, or the architecture is beyond the reader.
    """
    for key, what in BEYOND_US.items():
        if config.data.get(key):
            raise UsageError(
                f"{config.file}: {config.prefix}{key} tells of {what}: more than is read from a config.json",
                hint="give a GGUF of the model: its tensors are read exactly, whatever the architecture",
            )
    count = config.need(*LAYER_KEYS, most=MOST_LAYERS)
    hidden, vocab = config.need(*HIDDEN_KEYS), config.need("vocab_size")
    family, known = _family(config)
    num_experts, top_k = feed_forward.counts(config)
    layers = _layers(config, family, hidden, count, known=known)
    tied = config.flag("tie_word_embeddings")
    skeleton = Skeleton(
        architecture=config.text("model_type") or (config.words("architectures") or ["unknown"])[0],
        hidden=hidden,
        vocab=vocab,
        max_positions=config.whole(*POSITION_KEYS),
        num_experts=num_experts if any(layer.ffn == "moe" for layer in layers) else 0,
        top_k=top_k,
        tied=family.tied if tied is None else tied,
        outer=(),
        layers=layers,
        draft_layers=_draft_layers(config, layers, hidden),
    )
    skeleton = replace(skeleton, outer=_outer(config, family, skeleton))
    if not known:
        say_what_is_assumed(config, skeleton.architecture, experts=skeleton.num_experts > 0)
    return skeleton


def _family(config: Config) -> tuple[Family, bool]:
    architectures = config.words("architectures")
    found = named(config.text("model_type"), architectures[0] if architectures else None)
    if found is None:
        return (replace(LLAMA, qk_norm="head") if config.flag("use_qk_norm") else LLAMA), False
    return found, True


def _layers(config: Config, family: Family, hidden: int, count: int, *, known: bool) -> tuple[Layer, ...]:
    build_mixer = _mixer_builder(config, family, hidden, known=known)
    norms = family.norms * (2 if family.norm_bias else 1)
    outer_norms = [vector("norms", hidden, copies=norms)] if norms else []

    @cache
    def build_ffn(moe: bool) -> tuple[Piece, ...]:
        if moe:
            return tuple(feed_forward.experts(config, family, hidden, known=known))
        return tuple(feed_forward.dense(config, family, hidden))

    found = []
    rows = zip(
        laws.mixers(config, family, count, known=known),
        laws.expert_layers(config, count),
        laws.indexers(config, count),
        strict=True,
    )
    for index, (mixer, moe, use) in enumerate(rows):
        attention, pieces = build_mixer(mixer, use)
        found.append(
            Layer(
                index=index,
                mixer=mixer,
                ffn="moe" if moe else "dense",
                attention=attention,
                pieces=(*pieces, *build_ffn(moe), *outer_norms),
            )
        )
    return tuple(found)


Builder = Callable[[str, IndexerUse], tuple[Attention, tuple[Piece, ...]]]


def _mixer_builder(config: Config, family: Family, hidden: int, *, known: bool) -> Builder:
    @cache
    def build_mixer(mixer: str, use: IndexerUse) -> tuple[Attention, tuple[Piece, ...]]:
        if mixer == "linear":
            attention = linear_attention.attention(config, family, hidden)
            return attention, tuple(linear_attention.pieces(config, family, attention, hidden))
        if "kv_lora_rank" in config:
            attention = latent_attention.attention(config, use)
            return attention, tuple(latent_attention.pieces(config, attention, hidden))
        window = laws.window_tokens(config) if mixer == "sliding" else None
        attention = full_attention.attention(config, hidden, window, known=known)
        return attention, tuple(full_attention.pieces(config, family, attention, hidden))

    return build_mixer


def _draft_layers(config: Config, layers: tuple[Layer, ...], hidden: int) -> tuple[Layer, ...]:
    """Layers of multi-token prediction: as the last layer that takes nothing from others, and a projection before it.

    Their copies of embedding and head are those of the model and are not counted again.
    """
    count = 0 if config.flag("use_mtp") is False else config.whole(*DRAFT_KEYS, least=0, most=MOST_DRAFT_LAYERS) or 0
    model = next((layer for layer in reversed(layers) if _stands_alone(layer)), layers[-1])
    joined = (linear("eh_proj", "dense_ffn", hidden, 2 * hidden), vector("draft_norms", hidden, copies=3))
    return tuple(
        Layer(
            index=len(layers) + place,
            mixer=model.mixer,
            ffn=model.ffn,
            attention=model.attention,
            pieces=(*model.pieces, *joined),
        )
        for place in range(count)
    )


def _stands_alone(layer: Layer) -> bool:
    """Whether it has a cache, and an indexer of its own when it has one."""
    indexer = layer.attention.indexer if layer.attention else None
    return layer.mixer != "linear" and not (indexer and indexer.shared)


def _outer(config: Config, family: Family, skeleton: Skeleton) -> tuple[Piece, ...]:
    found = [] if skeleton.tied else [linear("embed_tokens", "embedding", skeleton.vocab, skeleton.hidden)]
    found.append(linear("lm_head", "head", skeleton.vocab, skeleton.hidden))
    found.append(vector("final_norm", skeleton.hidden, copies=2 if family.norm_bias else 1))
    if family.learned_positions:
        positions = skeleton.max_positions or config.need(*POSITION_KEYS)
        found.append(linear("positions", "embedding", positions, skeleton.hidden))
    if config.flag("lm_head_bias") if "lm_head_bias" in config else family.head_bias:
        found.append(vector("head_bias", skeleton.vocab))
    return tuple(found)
