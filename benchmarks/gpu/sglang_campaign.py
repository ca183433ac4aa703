"""A campaign of SGLang on one GPU, in slices: the model and load of `vllm_campaign.py`, flags of SGLang's own.

    python benchmarks/gpu/sglang_campaign.py --python /opt/sglang/bin/python --tokenizer MODEL_FOLDER \
        --model /opt/models/glm5-slice --folder CAMPAIGN --seconds 500

What a slice is, and where the model comes from: `campaign_slices.py`.

`--num-continuous-decode-steps` is inert: no code of this version reads it. A plan leaves such a flag out, with the
evidence, unless `policy.only` names it, as here. Who names it wants to see it: one launch shows that the server takes
it and reports it as asked, and it ends as not applied, without a load.

Graphs are captured for the sizes that this load has: of the 58 sizes for prompts that 0.5.17 captures by default, and
the 36 for decode, each costs a launch a part of a second.
"""

from __future__ import annotations

import sys
from pathlib import Path

from assay.records.spec import CampaignSpec, Policy, Target

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.gpu import campaign_slices

TRIED = (
    "graphs-off",
    "overlap-schedule-off",
    "mixed-chunk",
    "stream-interval",
    "weights-fp8",
    "continuous-decode-steps",
)
PROMPT_GRAPHS = "256 320 512 576 768 832 1024 2048"
"""Tokens of steps with prompts: one to four prompts of 256, alone or (mixed chunks) beside up to 64 decodes."""


def spec(model: Path, python: str) -> CampaignSpec:
    """The question: decode at 64 and at 16 streams, few sizes of graphs, no prefix cache."""
    return CampaignSpec(
        name="sglang-h200-glm5-slice",
        target=Target(
            engine="sglang",
            model=str(model),
            executable=python,
            flags={
                "--context-length": campaign_slices.CONTEXT_TOKENS,
                "--max-running-requests": campaign_slices.MOST_RUNNING,
                "--mem-fraction-static": campaign_slices.MEMORY_FRACTION,
                "--disable-radix-cache": True,
                "--attention-backend": "triton",
                "--sampling-backend": "pytorch",
                "--moe-runner-backend": "triton",
                "--cuda-graph-bs-decode": "1 2 4 8 16 32 48 64",
                "--cuda-graph-bs-prefill": PROMPT_GRAPHS,
                "--skip-server-warmup": True,
            },
            start_timeout_s=campaign_slices.FIRST_RUN_S,
            random_weights=True,
        ),
        workload=campaign_slices.WORKLOAD,
        objective=campaign_slices.OBJECTIVE,
        budget=campaign_slices.BUDGET.model_copy(update={"block": 2, "max_brackets": 3, "composition_brackets": 3}),
        gates=campaign_slices.GATES,
        policy=Policy(only=list(TRIED)),
    )


QUESTION = campaign_slices.Question(engine="SGLang", spec=spec, layers=12, intermediate=256)

if __name__ == "__main__":
    sys.exit(campaign_slices.main(__doc__.splitlines()[0], QUESTION))
