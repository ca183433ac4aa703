"""What follows the attention in a layer: a dense feed-forward part, or a router with experts."""

from __future__ import annotations

from assay.errors import UsageError
from assay.models.config import Config
from assay.models.families import Family
from assay.models.laws import EXPERT_KEYS
from assay.models.pieces import Piece, linear, vector
from assay.records.model_shape import Part

TOP_K_KEYS = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k", "top_k_experts")
EXPERT_SIZE_KEYS = ("moe_intermediate_size", "moe_ffn_hidden_size", "expert_hidden_dim")
DENSE_SIZE_KEYS = (
    "intermediate_size_mlp",
    "dense_intermediate_size",
    "intermediate_size",
    "ffn_hidden_size",
    "n_inner",
)
SHARED_COUNT_KEYS = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
SHARED_SIZE_KEYS = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
)


def dense(config: Config, family: Family, hidden: int) -> list[Piece]:
    """Gate, up and down (or up and down)."""
    size = config.whole(*DENSE_SIZE_KEYS)
    if size is None:
        size = family.inner_factor * hidden if family.inner_factor else config.need("intermediate_size")
    found = _matrices(family, "mlp" if family.ffn_module == "block_sparse_moe" else family.ffn_module, size, hidden)
    if config.flag("mlp_bias") if family.mlp_bias is None else family.mlp_bias:
        found.append(vector("mlp_bias", (2 if family.gated_ffn else 1) * size + hidden))
    return found


def experts(config: Config, family: Family, hidden: int, *, known: bool) -> list[Piece]:
    """The router, the routed experts, and the shared ones."""
    count, chosen = config.need(*EXPERT_KEYS), config.need(*TOP_K_KEYS)
    if chosen > count:
        raise config.wrong(config.first(*TOP_K_KEYS) or "", f"at most the {count} experts")
    size = config.whole(*EXPERT_SIZE_KEYS)
    if size is None:
        size = config.need("intermediate_size", *EXPERT_SIZE_KEYS)
        if not known:
            config.assume(f"an expert is intermediate_size = {size} wide: moe_intermediate_size is missing")
    module = f"{family.ffn_module}.experts.0"
    found = [linear(f"{family.ffn_module}.{family.router_module}", "router", count, hidden)]
    found += _matrices(family, module, size, hidden, "routed_experts", count, chosen)
    if family.expert_bias:
        found.append(linear(f"{module}.gate_up_bias", "routed_experts", 2 * size, 1, copies=count, active=chosen))
        found.append(linear(f"{module}.down_bias", "routed_experts", hidden, 1, copies=count, active=chosen))
    if family.router_bias if config.flag("use_routing_bias") is None else config.flag("use_routing_bias"):
        found.append(vector("router_bias", count))
    return [*found, *_shared(config, family, hidden, size)]


def _shared(config: Config, family: Family, hidden: int, expert_size: int) -> list[Piece]:
    """Shared experts are one feed-forward part, as wide as all of them together."""
    size = config.whole(*SHARED_SIZE_KEYS, least=0)
    if not size:
        count = config.whole(*SHARED_COUNT_KEYS, least=0)
        size = expert_size * (family.shared_default if count is None else count)
    if size == 0:
        return []
    module = f"{family.ffn_module}.{family.shared_module}"
    found = _matrices(family, module, size, hidden, "shared_experts")
    if family.shared_gate:
        found.append(linear(f"{family.ffn_module}.shared_expert_gate", "router", 1, hidden))
    return found


def _matrices(
    family: Family, module: str, size: int, hidden: int, part: Part = "dense_ffn", copies: int = 1, active: int = 1
) -> list[Piece]:
    sizes = {"up_proj": (size, hidden), "down_proj": (hidden, size)}
    if family.gated_ffn and family.fused and part == "dense_ffn":
        sizes = {"gate_up_proj": (2 * size, hidden), "down_proj": (hidden, size)}
    elif family.gated_ffn:
        sizes = {"gate_proj": (size, hidden), **sizes}
    return [
        linear(f"{module}.{name}", part, rows, cols, copies=copies, active=active)
        for name, (rows, cols) in sizes.items()
    ]


def counts(config: Config) -> tuple[int, int]:
    """Routed experts, and how many of them one token goes through; zeros for a dense model.

    Raises:
        UsageError: there are experts and no top-k.
    """
    count = config.whole(*EXPERT_KEYS, least=0) or 0
    if count == 0:
        return 0, 0
    chosen = config.whole(*TOP_K_KEYS)
    if chosen is None:
        raise UsageError(
            f"{config.file} has {count} experts and no {config.prefix}{TOP_K_KEYS[0]}: it cannot be assumed",
            hint="add the number of experts that a token goes through, from the model's card",
        )
    return count, chosen
