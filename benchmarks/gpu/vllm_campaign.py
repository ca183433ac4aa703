"""A campaign of vLLM on one GPU, in slices: a model of GLM-5's shape, A/A calibration, hypotheses of tiers 1 to 3.

    python benchmarks/gpu/vllm_campaign.py --python /opt/vllm/bin/python --tokenizer MODEL_FOLDER \
        --model /opt/models/glm5-slice --folder CAMPAIGN --seconds 500

What a slice is, and where the model comes from: `campaign_slices.py`.

A step must take the GPU longer than the host needs to prepare the next one, else a verdict is about the host. Twelve
layers are 32 GB, and by vLLM's times (docs/gpu.md: 271 us a layer with 16 streams, 556 with 64) 3.3 and 6.7 ms of
experts a step, where the host took up to about 3. Steps with prompts need graphs as well: launched kernel by kernel,
they made identical launches scatter by 12 % either way (docs/gpu.md). `--intermediate 2048 --layers 2` are more bytes
and a longer step in a sixth of the launches; but our kernel's tiles were measured for 256 columns, and are chosen by
rule for 2,048.
"""

from __future__ import annotations

import sys
from pathlib import Path

from assay.records.base import Flags
from assay.records.spec import CampaignSpec, Policy, Target

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.gpu import campaign_slices

TRIED = (
    "assay-persistent-moe",
    "weights-fp8",
    "kv-fp8",
    "prefill-chunk-large",
    "async-scheduling-off",
    "compile-and-piecewise",
    "graphs-off",
    "graphs-decode-only",
    "stream-interval",
)
GRAPHS = (
    '{"mode": 0, "cudagraph_mode": "FULL", '
    '"cudagraph_capture_sizes": [1, 2, 4, 8, 16, 32, 64, 128, 272, 320, 576, 832]}'
)
"""One graph a size, for steps with a prompt as well: 15 decodes and a prompt of 256 tokens are 271, 63 and one 319."""

FLAGS: Flags = {
    "--max-model-len": campaign_slices.CONTEXT_TOKENS,
    "--max-num-seqs": campaign_slices.MOST_RUNNING,
    "--gpu-memory-utilization": campaign_slices.MEMORY_FRACTION,
    "--enable-prefix-caching": False,
    "--moe-backend": "triton",
    "--compilation-config": GRAPHS,
}
"""On one GPU, and on each of two."""


def spec(model: Path, python: str) -> CampaignSpec:
    """The question: decode at 64 and at 16 streams; captured graphs, nothing compiled, so that a launch stays short."""
    return CampaignSpec(
        name="vllm-h200-glm5-slice",
        target=Target(
            engine="vllm",
            model=str(model),
            executable=python,
            flags=FLAGS,
            # A forked engine does not import everything again: 16 of a launch's 49 s on one H200 machine.
            env={"VLLM_USE_FLASHINFER_SAMPLER": "0", "VLLM_WORKER_MULTIPROC_METHOD": "fork"},
            start_timeout_s=campaign_slices.FIRST_RUN_S,
            random_weights=True,
        ),
        workload=campaign_slices.WORKLOAD,
        objective=campaign_slices.OBJECTIVE,
        budget=campaign_slices.BUDGET,
        gates=campaign_slices.GATES,
        policy=Policy(only=list(TRIED), catalogue=["catalogue"]),
    )


QUESTION = campaign_slices.Question(
    engine="vLLM", spec=spec, layers=12, intermediate=256, catalogue=Path(__file__).parent / "vllm_catalogue"
)

if __name__ == "__main__":
    sys.exit(campaign_slices.main(__doc__.splitlines()[0], QUESTION))
