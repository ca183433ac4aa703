"""SAMPLE DATA: a made-up campaign with every kind of verdict, for tests and for looking at reports.

Nothing in it was measured. Its name and its machine say so wherever they are shown.
"""

from __future__ import annotations

import random
from typing import Any

from assay.records.machine import EngineBuild, FlagInfo, Machine, ModelFacts
from assay.records.run import Purpose, RunStatus
from assay.records.spec import CampaignSpec
from assay.records.state import CampaignState, ScreenResult
from assay.records.verdict import Calibration, Headline
from assay.testing.sample_cases import CASES, effect_of, hypothesis_of, verdict_on
from assay.testing.sample_runs import BEGAN_NS, FLAGS, Runs, screen
from assay.units import MIB_BYTES, NS_PER_S


def sample_state() -> CampaignState:
    """A finished campaign: two of fourteen hypotheses adopted and confirmed, everything else ended otherwise."""
    runs = Runs()
    runs.series(Purpose.CALIBRATION, "main", "baseline", 4, 0.0, ())
    runs.add(Purpose.SCREEN, "main", None, (), status=RunStatus.INVALID)
    ids = {case.name: screen(runs, case) for case in CASES if case.kind != "cancelled"}
    runs.add(Purpose.SCREEN, "main", None, (), status=RunStatus.ABANDONED)
    for i, name in enumerate(("parallel-slots", "threads-batch")):
        runs.now_ns += 3600 * NS_PER_S
        below = ("parallel-slots",) if i else ()
        ids[name] = runs.series(
            Purpose.COMPOSITION, f"composition:{name}", name, 4, 0.28 + 0.076 * i, below, log_below=0.28 * i
        )
    final = runs.series(Purpose.CONFIRMATION, "confirmation", "stack", 5, 0.34, ())
    verdicts = {case.name: verdict_on(case, ids[case.name]) for case in CASES if case.kind != "cancelled"}
    effect = effect_of((40.2, 31.9, 49.1))
    sentence = "parallel-slots + threads-batch: +40.2% [+31.9, +49.1] in output_tokens_per_s, confirmed on fresh runs."
    first = verdicts["parallel-slots"].effect
    assert first is not None
    return CampaignState(
        created_at_ns=BEGAN_NS, spec=CampaignSpec.model_validate({"name": "sample campaign (made-up data)",
        "target": {"model": "embedded", "flags": FLAGS}}), spec_hash="5a" * 32, machine=sample_machine(),
        build=_build(), model=_model(), assay_version="0.1.0", planned=True,
        hypotheses=[hypothesis_of(i, case) for i, case in enumerate(CASES, start=1)], runs=runs.records,
        calibration=Calibration(bracket_sd=0.031, degrees_of_freedom=3, bias=0.004, min_detectable_effect=0.084,
                                drift_per_hour=-0.42),
        screened={"parallel-slots": ScreenResult(candidate="parallel-slots", effect=first, promising=True)},
        verdicts=verdicts, stack=["parallel-slots", "threads-batch"],
        headline=Headline(stack=["parallel-slots", "threads-batch"], flags={**FLAGS, "--parallel": 8}, effect=effect,
                          baseline_median=86.2, stack_median=120.9, confirmed=True, sentence=sentence, runs=final),
        num_events=3 * len(runs.records) + 20, last_hash="c0ffee" * 10 + "beef",
    )  # fmt: skip


def sample_variants() -> dict[str, CampaignState]:
    """The sample at other moments and with other ends, by name."""
    whole = sample_state()
    nothing: dict[str, Any] = {"verdicts": {}, "stack": [], "headline": None, "screened": {}}
    planned = whole.model_copy(update={**nothing, "runs": [], "calibration": None})
    blocked = [h for h in whole.hypotheses if whole.verdicts.get(h.id, None) and whole.verdicts[h.id].cause == "plan"]
    effect = effect_of((8.0, -2.0, 19.0))
    assert whole.headline is not None
    sentence = "parallel-slots + threads-batch was adopted, but the fresh runs do not confirm it: +8.0% [-2.0, +19.0]."
    doubtful = whole.headline.model_copy(update={"effect": effect, "confirmed": False, "sentence": sentence})
    stands = Headline(
        stack=[], flags=dict(FLAGS), effect=None, baseline_median=86.2, stack_median=None, confirmed=False,
        sentence="Nothing was adopted: the launch command in use today stands.", runs=["r0001", "r0003"],
    )  # fmt: skip
    return {
        "finished": whole,
        "no-hypotheses": planned.model_copy(update={"hypotheses": [], "planned": False}),
        "planned": planned,
        "only-blocked": planned.model_copy(
            update={"hypotheses": blocked, "verdicts": {h.id: whole.verdicts[h.id] for h in blocked}}
        ),
        "first-run-in-flight": planned.model_copy(
            update={"runs": [whole.runs[0].model_copy(update={"outcome": None, "ended_at_ns": None})]}
        ),
        "baseline-only": planned.model_copy(update={"runs": whole.runs[:3]}),
        "calibrated": whole.model_copy(update={**nothing, "runs": whole.runs[:9]}),
        "unfinished": whole.model_copy(update={"headline": None}),
        "nothing-adopted": whole.model_copy(update={"stack": [], "headline": stands}),
        "not-confirmed": whole.model_copy(update={"headline": doubtful}),
    }


def sample_latencies() -> dict[str, dict[str, list[float]]]:
    """Seconds of single requests by arm and metric."""
    rng = random.Random(7)
    return {
        arm: {
            "ttft_s": [scale * rng.lognormvariate(0, 0.35) for _ in range(400)],
            "tpot_s": [each * rng.lognormvariate(0, 0.12) for _ in range(400)],
        }
        for arm, scale, each in (("baseline", 1.5, 0.0097), ("stack", 1.08, 0.007))
    }


def sample_commands() -> dict[str, str]:
    """The launch commands of both arms."""
    common = "llama-server --model /models/sample.gguf --host 127.0.0.1 --port 8080 --ctx-size 4096"
    return {"baseline": f"{common} --parallel 1", "stack": f"{common} --parallel 8 --threads-batch 2"}


def sample_machine() -> Machine:
    """A machine that does not exist."""
    return Machine(
        cpu_model="Sample CPU (made-up)", physical_cores=2, logical_cores=4, usable_cores=2, isa=["avx2", "fma"],
        memory_bytes=16 * 1024 * MIB_BYTES, numa_nodes=1, kernel="Linux 6.1", os="Debian GNU/Linux 12",
        python="3.11.9", hypervisor=True,
    )  # fmt: skip


def _build() -> EngineBuild:
    flags = [FlagInfo(names=["--parallel", "-np"], value="N"), FlagInfo(names=["--ctx-size", "-c"], value="N")]
    return EngineBuild(
        engine="llamacpp", argv=["llama-server"], version="llama.cpp b0000 (made-up)", source="PATH", flags=flags
    )


def _model() -> ModelFacts:
    return ModelFacts(
        path="/models/sample.gguf", sha256="ab" * 32, size_bytes=94 * MIB_BYTES, architecture="llama",
        quantization="Q4_1", num_layers=30, context_length=8192, name="Sample 135M", license="apache-2.0",
    )  # fmt: skip
