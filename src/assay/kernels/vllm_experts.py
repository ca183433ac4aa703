"""vLLM's Triton experts with our kernel inside; imports vLLM, so only `assay.kernels.vllm_plugin` imports it."""

# mypy: disable-error-code="misc, no-untyped-call, no-any-return, untyped-decorator"
from __future__ import annotations

import logging
import os
from typing import Any

import torch
from vllm import envs
from vllm.logger import init_logger
from vllm.model_executor.layers.fused_moe.experts.triton_moe import TritonExperts
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import UnquantizedFusedMoEMethod
from vllm.model_executor.layers.quantization import register_quantization_config
from vllm.model_executor.layers.quantization.fp8 import Fp8Config

from assay.kernels.choose import VARIABLE, engine_is_faster
from assay.kernels.moe import UnsupportedError, fused_moe
from assay.kernels.operands import describe, device_of

logger = init_logger("vllm.assay_moe")
"""A name below "vllm": its lines go where vLLM's go."""

_said: set[str] = set()
_ready: dict[tuple[Any, ...], str | None] = {}
"""By shape and type: None where the kernel has compiled and run for all batches, else what went wrong."""
WARM_BATCHES = tuple(sorted({size for power in range(18) for size in (1 << power, 3 << power)}))


def say(line: str, *, warn: bool = False) -> None:
    """To vLLM's log, once in this process."""
    if line not in _said:
        _said.add(line)
        logger.log(logging.WARNING if warn else logging.INFO, "assay_moe: %s", line)


class AssayExperts(TritonExperts):
    """Triton experts that run `fused_moe`, and their parent for what that cannot do or was measured to do no faster.

    Workspaces are the parent's: it asks for at least what `fused_moe` takes as scratch.
    """

    def apply(  # noqa: PLR0917 - vLLM's signature
        self,
        output: torch.Tensor,
        hidden_states: torch.Tensor,
        w1: torch.Tensor,
        w2: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        activation: Any,
        global_num_experts: int,
        expert_map: torch.Tensor | None,
        a1q_scale: torch.Tensor | None,
        a2_scale: torch.Tensor | None,
        workspace13: torch.Tensor,
        workspace2: torch.Tensor,
        expert_tokens_meta: Any,
        apply_router_weight_on_input: bool,
        **more: Any,
    ) -> None:
        """The experts' weighted sum, into `output`."""
        problem = self._problem(w1, activation, on_input=apply_router_weight_on_input)
        arguments = (hidden_states, w1, w2, topk_weights, topk_ids)
        options = {
            "w13_scale": self.w1_scale if w1.element_size() == 1 else None,
            "w2_scale": self.w2_scale if w1.element_size() == 1 else None,
            "expert_map": expert_map,
        }
        x_scale = a1q_scale if a1q_scale is not None else self.a1_scale
        x_scale = x_scale if hidden_states.element_size() == 1 else None
        problem = problem or _prepared(arguments, options, x_scale)
        if problem is not None:
            say(f"falling back to vLLM's {TritonExperts.__name__}: {problem}", warn=True)
        elif not _left_to_engine(arguments, options, hidden_states.shape[0]):
            fused_moe(*arguments, **options, x_scale=x_scale, out=output, scratch=(workspace13, workspace2))
            return
        super().apply(
            output=output,
            hidden_states=hidden_states,
            w1=w1,
            w2=w2,
            topk_weights=topk_weights,
            topk_ids=topk_ids,
            activation=activation,
            global_num_experts=global_num_experts,
            expert_map=expert_map,
            a1q_scale=a1q_scale,
            a2_scale=a2_scale,
            workspace13=workspace13,
            workspace2=workspace2,
            expert_tokens_meta=expert_tokens_meta,
            apply_router_weight_on_input=apply_router_weight_on_input,
            **more,
        )

    def _problem(self, w1: torch.Tensor, activation: Any, *, on_input: bool) -> str | None:
        """Why this layer is not for the kernel, or None."""
        quant = self.quant_config
        fp8 = w1.element_size() == 1
        reasons = {
            f"activation {getattr(activation, 'value', activation)} is not silu": getattr(
                activation, "value", activation
            )
            != "silu",
            "router weights are applied to the input": on_input,
            "the experts have biases": quant.w1_bias is not None or quant.w2_bias is not None,
            "the activation is clamped or scaled": quant.gemm1_clamp_limit is not None,
            "LoRA is active": getattr(self, "_lora_context", None) is not None,
            f"weights are {w1.dtype}": w1.dtype not in {torch.bfloat16, torch.float16, torch.float8_e4m3fn},
            f"scales come in blocks of {quant.block_shape}": fp8 and quant.block_shape not in (None, [128, 128]),
            f"scales are {getattr(self.w1_scale, 'dtype', None)}": fp8
            and (self.w1_scale is None or self.w1_scale.dtype != torch.float32),
            "batch-invariant results are asked for": bool(getattr(envs, "VLLM_BATCH_INVARIANT", False)),
        }
        return next((reason for reason, holds in reasons.items() if holds), None)


def _left_to_engine(arguments: tuple[torch.Tensor, ...], options: dict[str, Any], tokens: int) -> bool:
    """Whether the measured table leaves a batch of this size to vLLM's own kernel: known when a graph is captured."""
    x, w13, w2, _, ids = arguments
    shape = describe(x, w13, w2, ids, options["w13_scale"], options["expert_map"]).shape
    return engine_is_faster(shape, tokens=tokens, device=device_of(x.device))


def _prepared(arguments: tuple[torch.Tensor, ...], options: dict[str, Any], x_scale: torch.Tensor | None) -> str | None:
    """Compile for every batch the first time a shape is seen (vLLM's profiling run has the largest one)."""
    x, w13, w2, _, ids = arguments
    key = (w13.shape, w2.shape, w13.dtype, x.dtype, ids.shape[1], options["expert_map"] is None)
    if key not in _ready:
        if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
            return f"E={w13.shape[0]} N={w2.shape[2]} was first seen during a graph capture"
        most = x.shape[0]
        sizes = [*[size for size in WARM_BATCHES if size < most], most]
        left = [size for size in sizes if _left_to_engine(arguments, options, size)]
        _ready[key] = _compiled(arguments, options, x_scale, [size for size in sizes if size not in left])
        if _ready[key] is None:
            source = os.environ.get(VARIABLE, "the shipped table, or by rule on another device")
            shape = f"E={w13.shape[0]} N={w2.shape[2]} K={w13.shape[2]} {str(w13.dtype).removeprefix('torch.')}"
            if len(left) < len(sizes):
                say(f"active for {shape}, tiles from {source}; {told(sizes, left)}")
            else:
                say(f"not in force for {shape}: vLLM's own kernel was measured faster at every batch", warn=True)
    return _ready[key]


def told(sizes: list[int], left: list[int]) -> str:
    """Which of the probed batch sizes run what, as ranges."""
    ranges: list[list[int]] = []
    for before, size in zip([None, *sizes], sizes, strict=False):
        if size in left:
            if before in left and ranges:
                ranges[-1][1] = size
            else:
                ranges.append([size, size])
    if not ranges:
        return "every batch runs this kernel"
    names = ", ".join(f"{low}-{high}" if low != high else str(low) for low, high in ranges)
    return f"batches left to vLLM's own kernel, which was measured as fast or faster there: {names}"


def _compiled(
    arguments: tuple[torch.Tensor, ...], options: dict[str, Any], x_scale: torch.Tensor | None, sizes: list[int]
) -> str | None:
    for tokens in sizes:
        x, w13, w2, weights, ids = arguments
        scale = x_scale[:tokens] if x_scale is not None and x_scale.shape[:1] == x.shape[:1] else x_scale
        try:
            fused_moe(x[:tokens], w13, w2, weights[:tokens], ids[:tokens], x_scale=scale, **options)
        except UnsupportedError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - a compiler's error has no common class; vLLM's own path still works
            return f"{type(error).__name__} at {tokens} tokens: {(str(error).splitlines() or ['?'])[0][:200]}"
    return None


def replaced(experts: type | None) -> type | None:
    """Our class for vLLM's Triton experts; any other is left alone, loudly."""
    if experts is TritonExperts or experts is AssayExperts:
        return AssayExperts
    name = experts.__name__ if experts is not None else "no experts class"
    say(f"not in force: vLLM chose {name}; `--moe-backend triton` lets it choose what this replaces", warn=True)
    return experts


def install() -> None:
    """Register both seams with vLLM."""

    @UnquantizedFusedMoEMethod.register_oot
    class AssayUnquantizedFusedMoEMethod(UnquantizedFusedMoEMethod):
        """vLLM's method with our experts."""

        def __init__(self, moe: Any) -> None:
            super().__init__(moe)
            self.experts_cls: type | None = replaced(self.experts_cls)

    @register_quantization_config("fp8")
    class AssayFp8Config(Fp8Config):
        """vLLM's fp8 with our experts."""

        def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> Any:
            method = super().get_quant_method(layer, prefix)
            if hasattr(method, "experts_cls"):
                method.experts_cls = replaced(method.experts_cls)
            return method

    say("registered")
