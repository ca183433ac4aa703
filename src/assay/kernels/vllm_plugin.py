"""Entry point `assay_moe` of vLLM's general plugins: puts the MoE kernel in the place of vLLM's Triton experts.

It acts only where `VLLM_PLUGINS` names it: vLLM loads every plugin that is installed when that variable is not set, and
a baseline must not change because Assay is installed beside the engine. What it does and what it does not take over
is written to vLLM's log, in lines that begin with `assay_moe:`.

Seams (vLLM 0.26 to 0.32): `CustomOp.register_oot` for models without quantization, `register_quantization_config` for
fp8 checkpoints. Both keep all of vLLM's own method and change the class of its experts alone, from `TritonExperts` to
a subclass of it; whatever that cannot do goes to its parent.
"""

from __future__ import annotations

import os

NAME = "assay_moe"
_registered: list[str] = []


def register() -> None:
    """Called by vLLM in each of its processes; the second time does nothing."""
    asked = os.environ.get("VLLM_PLUGINS")
    if asked is None or NAME not in [name.strip() for name in asked.split(",")] or _registered:
        return
    _registered.append(NAME)
    from assay.kernels import vllm_experts  # noqa: PLC0415 - imports torch and vLLM: only where it is wanted

    vllm_experts.install()
