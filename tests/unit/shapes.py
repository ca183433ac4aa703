"""Model shapes written by hand from published numbers: what the roofline's tests calculate with."""

from __future__ import annotations

from assay.records.device import Box, Device, Fact, LinkCurve
from assay.records.model_shape import Attention, Indexer, LayerGroup, Matrix, ModelShape, Part, Storage

BF16 = Storage(name="bf16", bits_per_weight=16)
FP8 = Storage(name="fp8-block128", bits_per_weight=8, compute="fp8")
NVFP4 = Storage(name="nvfp4", bits_per_weight=4.5, compute="fp4")


def matrix(name: str, part: Part, rows: int, cols: int, storage: Storage = BF16) -> Matrix:
    return Matrix(name=name, part=part, rows=rows, cols=cols, storage=storage)


def gated(part: Part, hidden: int, inner: int, storage: Storage = BF16) -> list[Matrix]:
    return [
        matrix("gate_proj", part, inner, hidden, storage),
        matrix("up_proj", part, inner, hidden, storage),
        matrix("down_proj", part, hidden, inner, storage),
    ]


def routed(hidden: int, inner: int, experts: int, top_k: int, storage: Storage) -> list[Matrix]:
    return [
        one.model_copy(update={"copies": experts, "active_copies": float(top_k)})
        for one in gated("routed_experts", hidden, inner, storage)
    ] + [matrix("gate", "router", experts, hidden)]


def heads_of(attention: Attention, hidden: int, storage: Storage = BF16) -> list[Matrix]:
    return [
        matrix("q_proj", "attention", attention.heads * attention.qk_head_dim, hidden, storage),
        matrix("k_proj", "attention", attention.kv_heads * attention.qk_head_dim, hidden, storage),
        matrix("v_proj", "attention", attention.kv_heads * attention.v_head_dim, hidden, storage),
        matrix("o_proj", "attention", hidden, attention.heads * attention.v_head_dim, storage),
    ]


def latents_of(attention: Attention, hidden: int, q_rank: int) -> list[Matrix]:
    latent, rope = attention.latent_rank or 0, attention.rope_dim or 0
    nope = attention.qk_head_dim - rope
    return [
        matrix("q_a_proj", "attention", q_rank, hidden),
        matrix("q_b_proj", "attention", attention.heads * attention.qk_head_dim, q_rank),
        matrix("kv_a_proj_with_mqa", "attention", latent + rope, hidden),
        matrix("kv_b_proj", "attention", attention.heads * (nope + attention.v_head_dim), latent),
        matrix("o_proj", "attention", hidden, attention.heads * attention.v_head_dim),
    ]


def ends(hidden: int, vocab: int) -> list[Matrix]:
    return [matrix("embed_tokens", "embedding", vocab, hidden), matrix("lm_head", "head", vocab, hidden)]


def llama_8b(storage: Storage = BF16) -> ModelShape:
    """Llama 3.1 8B: 32 layers, hidden 4096, 32/8 heads of 128, inner 14336, vocabulary 128256."""
    mixer = Attention(kind="full", heads=32, kv_heads=8, qk_head_dim=128, v_head_dim=128)
    layer = heads_of(mixer, 4096, storage) + gated("dense_ffn", 4096, 14336, storage)
    return ModelShape(
        name="llama-3.1-8b",
        architecture="LlamaForCausalLM",
        source="test",
        hidden=4096,
        vocab=128256,
        outer=ends(4096, 128256),
        layers=[LayerGroup(name="dense", count=32, attention=mixer, matrices=layer)],
    )


def glm5(storage: Storage = NVFP4, *, sparse: bool = True) -> ModelShape:
    """GLM-5: 78 layers (3 dense), hidden 6144, MLA 512+64 with 64 heads, 256 experts of 2048, top-8, one shared."""
    indexer = Indexer(heads=32, head_dim=128, top_k=2048, cache_bytes_per_token=132)
    mixer = Attention(
        kind="mla",
        heads=64,
        kv_heads=64,
        qk_head_dim=256,
        v_head_dim=256,
        latent_rank=512,
        rope_dim=64,
        indexer=indexer if sparse else None,
    )
    attention = latents_of(mixer, 6144, 2048)
    if sparse:
        attention += [
            matrix("wq_b", "indexer", 32 * 128, 2048),
            matrix("wk", "indexer", 128, 6144),
            matrix("weights_proj", "indexer", 32, 6144),
        ]
    experts = routed(6144, 2048, 256, 8, storage) + gated("shared_experts", 6144, 2048)
    return ModelShape(
        name="glm-5",
        architecture="GlmMoeDsaForCausalLM",
        source="test",
        hidden=6144,
        vocab=154880,
        num_experts=256,
        top_k=8,
        outer=ends(6144, 154880),
        layers=[
            LayerGroup(name="dense", count=3, attention=mixer, matrices=attention + gated("dense_ffn", 6144, 12288)),
            LayerGroup(name="moe", count=75, attention=mixer, matrices=attention + experts),
        ],
    )


def gpt_oss_like() -> ModelShape:
    """Half of the layers see 128 tokens: 36 layers, hidden 2880, 64/8 heads of 64, 128 experts of 2880, top-4."""
    mxfp4 = Storage(name="mxfp4", bits_per_weight=4.25, compute="fp4")
    full = Attention(kind="full", heads=64, kv_heads=8, qk_head_dim=64, v_head_dim=64)
    window = full.model_copy(update={"window": 128})
    layer = heads_of(full, 2880) + routed(2880, 2880, 128, 4, mxfp4)
    return ModelShape(
        name="gpt-oss-120b",
        architecture="GptOssForCausalLM",
        source="test",
        hidden=2880,
        vocab=201088,
        num_experts=128,
        top_k=4,
        outer=ends(2880, 201088),
        layers=[
            LayerGroup(name="full", count=18, attention=full, matrices=layer),
            LayerGroup(name="sliding", count=18, attention=window, matrices=layer),
        ],
    )


def hybrid_like() -> ModelShape:
    """Three of four layers have a state instead of a cache: hidden 2048, 32 value heads of 128 x 128."""
    full = Attention(kind="full", heads=16, kv_heads=2, qk_head_dim=256, v_head_dim=256)
    linear = Attention(
        kind="linear", heads=32, kv_heads=16, qk_head_dim=128, v_head_dim=128, state_elements=32 * 128 * 128
    )
    ffn = gated("dense_ffn", 2048, 5632)
    mixing = [
        matrix("in_proj_qkvz", "linear_attention", 12288, 2048),
        matrix("out_proj", "linear_attention", 2048, 4096),
    ]
    return ModelShape(
        name="hybrid",
        architecture="HybridForCausalLM",
        source="test",
        hidden=2048,
        vocab=151936,
        outer=ends(2048, 151936),
        layers=[
            LayerGroup(name="linear", count=36, attention=linear, matrices=mixing + ffn),
            LayerGroup(name="full", count=12, attention=full, matrices=heads_of(full, 2048) + ffn),
        ],
    )


def device(**facts: float) -> Device:
    """A made-up GPU whose data sheet says round numbers: 1 TB/s, 100 TFLOP/s in BF16, 80 GB."""
    given = {
        "memory_bytes": 80e9,
        "memory_read_bytes_per_s": 1e12,
        "bf16_flop_per_s": 100e12,
        "link_bytes_per_s": 50e9,
        **facts,
    }
    return Device(
        id="round",
        name="Round Numbers",
        kind="gpu",
        link="PCIe 5.0 x16",
        facts={
            name: [Fact(value=value, unit="SI", basis="spec", source="test")] for name, value in given.items() if value
        },
    )


def box_of(count: int = 1, curves: list[LinkCurve] | None = None, link: str | None = None, **facts: float) -> Box:
    """Some of them."""
    one = device(**facts)
    if link is not None:
        one = one.model_copy(update={"link": link})
    return Box(device=one, count=count, curves=curves or [])


def curve(**values: object) -> LinkCurve:
    """An all-reduce of eight at 40 GB/s and 20 us."""
    usual: dict[str, object] = {
        "collective": "all_reduce",
        "world": 8,
        "algorithm": "nccl",
        "latency_s": 20e-6,
        "bus_bytes_per_s": 40e9,
        "basis": "elsewhere",
        "source": "test",
    }
    return LinkCurve.model_validate({**usual, **values})
