"""What a kernel does, by its name: rules for vLLM, SGLang, cuBLAS, CUTLASS, FlashAttention, FlashInfer and PyTorch.

Names checked against vLLM 0.26.0's sources and the symbols of its compiled extensions: `fused_moe_kernel`,
`vllm::moe::topkGating`, `moe_align_block_size_kernel`, `count_and_sort_expert_tokens_kernel`, `moe_sum_kernel`,
`act_and_mul_kernel`, `rms_norm_kernel`, `rotary_embedding_kernel`, `reshape_and_cache_flash_kernel`,
`flash::FlashAttnFwdSm90`, `FlashAttnFwdCombine`, `prepare_varlen_num_blocks_kernel`, `_compute_slot_mapping_kernel`.
cuBLAS calls its products on Hopper `nvjet_...`. A product's place among the others says which one it is
(`assay.formats.step_operations`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Kind = Literal[
    "communication",
    "gate_up",
    "down",
    "experts",
    "sort",
    "router",
    "attention",
    "rope",
    "norm",
    "activation",
    "quantize",
    "inputs",
    "sampling",
    "product",
    "plain",
]
"""gate_up, down: experts' products whose name says which. experts: such a product, either. sort: token-expert pairs put
into order, or their results summed. product: a matmul. plain: a copy or a pass over data, which its place explains."""

_RULES: dict[Kind, tuple[str, ...]] = {
    "communication": (
        r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device|one_?shot|two_?shot|mscclpp",
        r"deep_?ep|nvshmem|symm_?mem|custom_ar|quick_?reduce",
    ),
    "gate_up": (r"gate_up_(scan|sorted|pairs)",),
    "down": (r"down_(scan|sorted|pairs|and_sum)",),
    "inputs": (r"prepare_varlen|slot_mapping|block_tables?_|prepare_(pos|prefill|decode|inputs)|zero_kv_blocks",),
    "sort": (
        r"moe_?align|count_and_sort_expert|moe_sum|mul_sum|sort_pairs|sum_slots|expert_num_tokens|shuffle_?(input)?_?rows",
        r"(un)?permute.*(moe|token|expert|row)|(moe|expert|row).*(un)?permute|expandInputRows|finalizeMoe",
        r"ep_(scatter|gather)|problem_sizes|expert_offsets|arg_sorts|ExpertPrefixSum|ExpertFirstToken|preprocessTopkId",
    ),
    "router": (
        r"topk_?(gating|softmax|sigmoid|softplus)|moe_?(softmax|sigmoid|topk)|grouped_?topk|router_gemm|routing",
    ),
    "experts": (
        r"fused_moe|moe_?gemm|gemm_?moe|moefcgemm|expert_triton|batched_triton|moe_mmk|moe_wna16|marlin_?moe|moe_?marlin",
        r"grouped_?gemm|group_?gemm|grouped_?mm|GroupProblemShape|m_grouped",
    ),
    "attention": (
        r"flash::|flash_?(fwd|attn|infer|mla)|FlashAttn|fmha|paged_?attention|unified_attention|reduce_segments",
        r"merge_?attn|BatchDecode|BatchPrefill|SingleDecode|SinglePrefill|decode_attention|fwd_(grouped_)?kernel",
        r"MergeStates|sparse_attn|mqa_logits|linear_attn|delta_rule|causal_conv1d|selective_scan|topKPerRow",
        r"(persistent|cooperative|filtered)_?topk",
    ),
    "rope": (r"_and_cache|rotary|(^|[^p])rope|set_kv_buffer|store_kv|append_paged|kv_insert",),
    "sampling": (
        r"topk_topp|penalt|gumbel|min_p_|sampl|arg_?max|soft_?max|radixTopK|gatherTopK|sbtopk|mbtopk|multinomial",
        r"exponential|distribution_elementwise|bincount|logit|RadixSort",
    ),
    "norm": (r"rms_?norm|layer_?norm|l2_?norm|rsqrt",),
    "activation": (r"act_and_mul|silu|gelu|swiglu|doActivation",),
    "quantize": (r"quant",),
    "product": (
        r"gemm|gemv|nvjet|cutlass|xmma|cublas|split_?k|matmul|wgmma|s16816|dot_kernel|reduce_1Block|bmm_|wvSplitK|Cijk_",
        r"LLMM1|machete|marlin|addmm",
    ),
}
"""The first that knows a name decides."""
_COMPILED = tuple((kind, re.compile("|".join(patterns), re.IGNORECASE)) for kind, patterns in _RULES.items())


@lru_cache(maxsize=4096)
def kind_of(name: str) -> Kind:
    """The first rule that knows the name decides; `plain` when none does."""
    return next((kind for kind, pattern in _COMPILED if pattern.search(name)), "plain")
