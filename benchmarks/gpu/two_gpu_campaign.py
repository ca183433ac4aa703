"""A campaign of vLLM on two GPUs, in slices: TP2 against EP2, DP2, and all-reduces by NCCL.

    python benchmarks/gpu/two_gpu_campaign.py --python /opt/vllm/bin/python --tokenizer MODEL_FOLDER \
        --model /opt/models/glm5-two --folder CAMPAIGN --seconds 500

The model is GLM-5's in shape, so that a rank of TP2 holds what one of GLM-5's eight holds under TP8: 256 of an expert's
columns, and 2,048 columns of attention (GLM-5 has 64 heads of 256, here are 32 of 128). Eight layers are 42 GB.

NVLink multicast is off in every process: what a killed program leaves of it can take the switch out of service for
everybody on the host. The server gets the variables from `assay.toml`, whatever the shell holds; vLLM's all-reduce over
PyTorch's symmetric memory, which is on by default and asks for a multicast pointer, is off as well.

All runs of a slice are made by one call of Assay: a virtual machine's memory can grow while it is used, and with it the
fingerprint that a second call would compare.
"""

from __future__ import annotations

import sys
from pathlib import Path

from assay.probes.ceilings.gpu_safety import SAFE_ENVIRONMENT
from assay.records.spec import CampaignSpec, Policy, Target

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.gpu import campaign_slices, vllm_campaign

TRIED = (
    "expert-parallel",
    "attention-on-each",
    "custom-all-reduce-off",
    "nccl-all-reduce-ll",
    "attention-on-each-experts-whole",
)
"""In the order of the first round, which SEED draws."""
SEED = 35
START_TIMEOUT_S = 120.0
ENVIRONMENT = {
    **SAFE_ENVIRONMENT,
    "VLLM_ALLREDUCE_USE_SYMM_MEM": "0",
    "VLLM_ALLREDUCE_USE_FLASHINFER": "0",
    "VLLM_USE_NCCL_SYMM_MEM": "0",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    # Everything on loopback, whatever interfaces the machine has.
    "VLLM_HOST_IP": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_SOCKET_IFNAME": "lo",
}
METHOD = "fork"
"""How the engine and its workers start. A forked one does not import everything again; vLLM itself spawns them where
CUDA was begun before."""


def spec(model: Path, python: str) -> CampaignSpec:
    """The question: decode at 64 and at 16 streams over two GPUs, graphs as on one."""
    budget = {"block": 3, "max_brackets": 3, "composition_brackets": 3, "soak_s": 15.0}
    return CampaignSpec(
        name="vllm-h200x2-glm5-slice",
        target=Target(
            engine="vllm",
            model=str(model),
            executable=python,
            flags={"--tensor-parallel-size": 2, **vllm_campaign.FLAGS},
            env={**ENVIRONMENT, "VLLM_WORKER_MULTIPROC_METHOD": METHOD},
            start_timeout_s=START_TIMEOUT_S,
            random_weights=True,
        ),
        # Longer windows than on one GPU: with windows of 1 s the baseline was within 7.4% of itself only.
        workload=campaign_slices.WORKLOAD.model_copy(update={"seed": SEED, "window_s": 3.0}),
        objective=campaign_slices.OBJECTIVE,
        budget=campaign_slices.BUDGET.model_copy(update=budget),
        gates=campaign_slices.GATES,
        policy=Policy(only=list(TRIED), catalogue=["catalogue"]),
    )


QUESTION = campaign_slices.Question(
    engine="vLLM",
    spec=spec,
    layers=8,
    intermediate=512,
    heads=32,
    workers=4,
    in_one_call=True,
    catalogue=Path(__file__).parent / "two_gpu_catalogue",
)

if __name__ == "__main__":
    sys.exit(campaign_slices.main(__doc__.splitlines()[0], QUESTION))
