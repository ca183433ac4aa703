"""The whole loop on the embedded engine and model: the first thing a new user runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.ports import Progress
    from assay.records.spec import CampaignSpec
    from assay.records.state import CampaignState

CANDIDATES = [
    "parallel-slots",
    "requantize-q8-0",
    "requantize-q4-0",
    "flash-attention-off",
    "one-thread",
    "kv-q8-0-without-flash-attention",
    "numa-distribute",
    "gpu-layers",
    "draft-length",
    "speculation-without-draft",
    "poll-busy",
]
"""What the demo tries: gains, losses, a fast wrong answer, a crash, flags that do nothing, one that this build lost."""

QUICK_DEMO = "demo-quick"
"""The quick demo's name: what it cannot claim is said whenever its record is concluded."""
QUICK_CANDIDATES = ["parallel-slots", "one-thread", "kv-q8-0-without-flash-attention", "draft-length"]

QUICK_NULL = ["null-batch", "null-cache-type", "null-poll", "null-ubatch"]
"""As many as two brackets each fit into three minutes. The budget is larger than that: it holds back time for a
confirmation, which only a wrongly adopted flag would use."""


def demo_spec(*, quick: bool, null: bool) -> CampaignSpec:
    """The demo's question: a launch line as guides print it (one slot), eight clients.

    Args:
        quick: fewer candidates and brackets, under three minutes.
        null: the candidates are the null catalogue (flags set to their defaults).
    """
    from assay.records.spec import Budget, CampaignSpec, Objective, Policy, Target, Workload

    target = Target(model="embedded", executable="embedded", flags={"--ctx-size": 4096, "--parallel": 1})
    only = (QUICK_NULL if null else QUICK_CANDIDATES) if quick else ([] if null else CANDIDATES)
    budget = (
        Budget(
            total_s=240,  # brackets bound the runs: this keeps time to soak both arms, and to confirm
            calibration_brackets=2,
            max_brackets=2,
            composition_brackets=3,
            confirmation_brackets=3,
            soak_s=4,
        )
        if quick
        else Budget(
            total_s=520,
            calibration_brackets=4,
            max_brackets=4,
            composition_brackets=5,
            confirmation_brackets=5,
            soak_s=10,
        )
    )
    return CampaignSpec(
        name=QUICK_DEMO if quick else "demo",
        target=target,
        workload=Workload(
            concurrency=8, input_tokens=(8, 32), output_tokens=(8, 24), window_s=1.2, windows=3, warmup_max_s=12.0
        ),
        objective=Objective(min_effect=0.10),
        budget=budget,
        policy=Policy(only=only),
    )


def demo(folder: Path, progress: Progress, *, quick: bool = False, null: bool = False) -> CampaignState:
    """Run a whole campaign on the embedded engine and model; resumes when the folder holds one.

    Args:
        folder: where the campaign goes; made when absent.
        progress: where to say what is being done.
        quick: under three minutes, with fewer claims.
        null: try only flags set to their defaults: a sound judge adopts none of them.

    Raises:
        AssayError: see `assay.errors`.
    """
    from assay.api.init import SPEC, init
    from assay.api.run import run
    from assay.catalogue.loader import null_folder

    if not (folder / SPEC).exists():
        init(folder, demo_spec(quick=quick, null=null))
    return run(folder, progress, catalogue=null_folder() if null else None)
