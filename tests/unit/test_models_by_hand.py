"""Parameters, cache and operations of a token, by independent arithmetic from published sizes.

Nothing here asks the reader of configurations: every number is multiplied out from the model's card.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from assay.models import load
from assay.probes.devices import box
from assay.records.estimate import Layout, OperatingPoint
from assay.roofline import step

CONTEXT = 1000


@dataclass(frozen=True, kw_only=True)
class ByHand:
    """What one token costs; `core` are the operations of attention over CONTEXT tokens and itself."""

    parameters: int
    cache_bytes: int
    multiplied: int
    """Weights that a token is multiplied with, the head included."""
    core: int | None
    parts_bytes: dict[str, float]


def llama_8b() -> ByHand:
    hidden, ffn, layers, vocab = 4096, 14336, 32, 128256
    attention, dense = 2 * hidden * hidden + 2 * hidden * 1024, 3 * hidden * ffn
    return ByHand(
        parameters=2 * vocab * hidden + layers * (attention + dense + 2 * hidden) + hidden,
        cache_bytes=layers * 2 * 8 * 128 * 2,
        multiplied=layers * (attention + dense) + vocab * hidden,
        core=layers * 4 * 32 * 128 * (CONTEXT + 1),
        parts_bytes={"attention": 2 * layers * attention, "dense_ffn": 2 * layers * dense},
    )


def mixtral_8x7b() -> ByHand:
    hidden, layers, vocab = 4096, 32, 32000
    attention, expert, router = 2 * hidden * hidden + 2 * hidden * 1024, 3 * hidden * 14336, 8 * hidden
    return ByHand(
        parameters=2 * vocab * hidden + layers * (attention + 8 * expert + router + 2 * hidden) + hidden,
        cache_bytes=layers * 2 * 8 * 128 * 2,
        multiplied=layers * (attention + 2 * expert + router) + vocab * hidden,
        core=layers * 4 * 32 * 128 * (CONTEXT + 1),
        parts_bytes={"routed_experts": 2 * layers * 8 * expert, "router": 2 * layers * router},
    )


def qwen3_30b() -> ByHand:
    hidden, layers, vocab = 2048, 48, 151936
    attention, expert, router = 2 * hidden * 4096 + 2 * hidden * 512, 3 * hidden * 768, 128 * hidden
    return ByHand(
        parameters=2 * vocab * hidden + layers * (attention + 128 * expert + router + 2 * hidden + 2 * 128) + hidden,
        cache_bytes=layers * 2 * 4 * 128 * 2,
        multiplied=layers * (attention + 8 * expert + router) + vocab * hidden,
        core=layers * 4 * 32 * 128 * (CONTEXT + 1),
        parts_bytes={"routed_experts": 2 * layers * 128 * expert, "attention": 2 * layers * attention},
    )


def deepseek_v3() -> ByHand:
    """MLA, absorbed: a head multiplies with the latent of 512 twice and with the rotary part of 64 once."""
    hidden, layers, vocab, fp8 = 7168, 61, 129280, 1 + 4 / 128**2
    queries, latent = hidden * 1536 + 1536 * 128 * 192, hidden * 576 + 512 * 128 * 256
    attention = queries + latent + 128 * 128 * hidden
    expert, dense, router = 3 * hidden * 2048, 3 * hidden * 18432, 256 * hidden
    norms = 2 * hidden + 1536 + 512
    return ByHand(
        parameters=2 * vocab * hidden
        + layers * (attention + norms)
        + 3 * dense
        + 58 * (257 * expert + router + 256)
        + hidden,
        cache_bytes=layers * 576 * 2,
        multiplied=layers * attention + 3 * dense + 58 * (9 * expert + router) + vocab * hidden,
        core=layers * 2 * 128 * (2 * 512 + 64) * (CONTEXT + 1),
        parts_bytes={"routed_experts": 58 * 256 * expert * fp8, "attention": layers * attention * fp8},
    )


def gemma_2_9b() -> ByHand:
    hidden, ffn, layers, vocab = 3584, 14336, 42, 256000
    attention, dense = 2 * hidden * 4096 + 2 * hidden * 2048, 3 * hidden * ffn
    return ByHand(
        parameters=vocab * hidden + layers * (attention + dense + 4 * hidden) + hidden,
        cache_bytes=layers * 2 * 8 * 256 * 2,
        multiplied=layers * (attention + dense) + vocab * hidden,
        core=layers * 4 * 16 * 256 * (CONTEXT + 1),
        parts_bytes={"dense_ffn": 2 * layers * dense, "head": 2 * vocab * hidden},
    )


def qwen3_next_80b() -> ByHand:
    """Three of four layers are gated delta nets: 16 key and 32 value heads of 128, convolved over four tokens."""
    hidden, layers, vocab = 2048, 48, 151936
    full = hidden * 2 * 16 * 256 + 2 * hidden * 512 + 16 * 256 * hidden
    linear = hidden * (2 * 16 * 128 + 2 * 32 * 128) + 2 * 32 * hidden + 32 * 128 * hidden
    others = 4 * (2 * 16 * 128 + 32 * 128) + 2 * 32 + 128
    expert, router = 3 * hidden * 512, 512 * hidden + hidden
    return ByHand(
        parameters=2 * vocab * hidden
        + 12 * (full + 2 * 256)
        + 36 * (linear + others)
        + layers * (513 * expert + router + 2 * hidden)
        + hidden,
        cache_bytes=12 * 2 * 2 * 256 * 2,
        multiplied=12 * full + 36 * linear + layers * (11 * expert + router) + vocab * hidden,
        core=None,
        parts_bytes={"routed_experts": 2 * layers * 512 * expert},
    )


CASES = {
    "llama-3.1-8b": llama_8b(),
    "mixtral-8x7b": mixtral_8x7b(),
    "qwen3-30b-a3b": qwen3_30b(),
    "deepseek-v3": deepseek_v3(),
    "gemma-2-9b": gemma_2_9b(),
    "qwen3-next-80b-a3b": qwen3_next_80b(),
}


@pytest.mark.parametrize("name", CASES)
def test_a_model_has_the_parameters_bytes_and_cache_that_its_card_multiplies_out_to(name: str) -> None:
    shape, wanted = load(name), CASES[name]
    assert shape.parameters == wanted.parameters
    assert shape.cache_bytes_per_token(with_indexer=False) == wanted.cache_bytes
    bytes_by_part = shape.weight_bytes_by_part()
    assert {part: bytes_by_part[part] for part in wanted.parts_bytes} == pytest.approx(wanted.parts_bytes)


@pytest.mark.parametrize("name", CASES)
def test_a_token_takes_two_operations_for_each_weight_it_meets_and_its_attention(name: str) -> None:
    wanted = CASES[name]
    point = OperatingPoint(phase="decode", sequences=1, context_tokens=CONTEXT)
    ops = step.estimate(load(name), box("8xH200").model_copy(update={"count": 1}), Layout(), point).ops
    core = sum(op.flops for op in ops if op.part == "attention_core")
    assert sum(op.flops for op in ops) - core == pytest.approx(2 * wanted.multiplied)
    if wanted.core is not None:
        assert core == pytest.approx(wanted.core)
