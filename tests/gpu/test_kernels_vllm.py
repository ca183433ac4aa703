"""The vLLM plugin inside a real vLLM of the machine, where there is one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed")
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)

PROGRAM = '''
import logging, sys
from vllm.logger import init_logger
lines = []
init_logger("vllm.assay_moe")
logging.getLogger("vllm.assay_moe").setLevel(logging.INFO)
class Keep(logging.Handler):
    def emit(self, record): lines.append(record.getMessage())
logging.getLogger("vllm.assay_moe").addHandler(Keep())
from assay.kernels import vllm_plugin
vllm_plugin.register()
vllm_plugin.register()
from vllm.model_executor.custom_op import op_registry_oot
from vllm.model_executor.layers.quantization import get_quantization_config
print(sorted(op_registry_oot), get_quantization_config("fp8").__name__)
if op_registry_oot:
    import torch
    from vllm.model_executor.layers.fused_moe.activation import MoEActivation
    from vllm.model_executor.layers.fused_moe.config import FusedMoEQuantConfig
    from vllm.model_executor.layers.fused_moe.experts.triton_moe import TritonExperts
    from assay.kernels.vllm_experts import AssayExperts, replaced
    from tests.gpu.layers import error, layer, reference
    assert replaced(TritonExperts) is AssayExperts and replaced(AssayExperts) is AssayExperts
    assert replaced(int) is int
    from assay.kernels.vllm_experts import told
    print(told([1, 2, 4, 8, 12], [2, 4, 12]))
    print(told([1, 2], []))
    class Plain:
        """A layer's configuration in which nothing is set."""
        def __getattr__(self, name): return None
    one = layer(5)
    experts = AssayExperts(Plain(), FusedMoEQuantConfig.make())
    out = torch.full_like(one.x, float("nan"))
    work = [torch.empty(10 * 128, dtype=torch.float16) for _ in range(2)]
    experts.apply(out, *one.arguments(), MoEActivation.SILU, 8, None, None, None, *work, None, False)
    print("error", error(out, reference(one)))
    print(experts._problem(one.w13, MoEActivation.GELU, on_input=False))
    print(experts._problem(one.w13.float(), MoEActivation.SILU, on_input=False))
print(lines)
'''


def inside(plugins: str | None) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if name != "VLLM_PLUGINS"}
    environment |= {"TRITON_INTERPRET": "1"} | ({"VLLM_PLUGINS": plugins} if plugins else {})
    argv = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, check=True, timeout=250, text=True)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_plugin_that_is_named_replaces_the_experts_and_says_so() -> None:
    said = inside("assay_moe")
    assert "['UnquantizedFusedMoEMethod'] AssayFp8Config" in said
    assert float(next(line for line in said if line.startswith("error")).split()[1]) < 2e-3
    assert any(line.endswith("as fast or faster there: 2-4, 12") for line in said)
    assert "every batch runs this kernel" in said
    assert any("gelu is not silu" in line for line in said)
    assert any("weights are torch.float32" in line for line in said)
    assert "assay_moe: active for E=8 N=64 K=128 float16, tiles from the shipped table, or by rule" in said[-1]
    assert "assay_moe: not in force: vLLM chose int" in said[-1]


@pytest.mark.slow
def test_a_plugin_that_is_only_installed_changes_nothing() -> None:
    assert inside(None) == ["[] Fp8Config", "[]"]
