"""Every fault that the rehearsal server can be given ends in the right verdict, and the campaign finishes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay import api
from assay.records.spec import Budget, CampaignSpec, Gates, Objective, Policy, Quality, Statistics, Target, Workload
from assay.records.state import CampaignState
from assay.render.progress import for_stream

pytestmark = pytest.mark.slow
EXPECTED = {
    "rejects": ("blocked", "bad-value"),
    "fails-load": ("blocked", "incompatible-combination"),
    "fails-kv-allocation": ("blocked", "kv-cache-too-small"),
    "fails-graph-capture": ("blocked", "graph-break"),
    "oom-under-load": ("unstable", "oom-under-load"),
    "crash": ("unstable", "illegal-memory-access"),
    "hang": ("unstable", "hang"),
    "leak": ("unstable", "host-oom"),
    "wrong-answers": ("wrong-output", None),
    "ignored": ("not-applied", None),
    "fallback": ("not-applied", None),
    "in-band-errors": ("undecided", "invalid"),
    "stall": ("worse", None),
}
DETAILS = {
    "oom-under-load": ", running = 3",
    "crash": ", after_requests = 12",
    "hang": ", after_requests = 12",
    "leak": ", leak_bytes = 4194304, leak_limit_bytes = 67108864",
    "stall": ", every_s = 1, duration_s = 1",
}
ENTRY = """
id = "{kind}"
title = "{kind}"
tier = 1
mechanism = "test"
predicted = [-0.05, 0.05]
numerics = "exact"
risk = "none"
[engines.rehearsal]
flags = {{ "--{kind}" = true }}
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CampaignState]:
    folder = tmp_path_factory.mktemp("faults")
    write_world(folder)
    api.init(folder, spec(folder))
    with for_stream(plain=True) as progress:
        yield api.run(folder, progress)


def write_world(folder: Path) -> None:
    (folder / "catalogue").mkdir()
    world = "[launch]\nweights_s = 1\nmemory_s = 1\ncapture_s = 1\n[noise]\nrun_sd = 0.002\nstep_sd = 0.002\n"
    for kind in EXPECTED:
        world += (
            f'[[flags]]\nname = "--{kind}"\n[[flags.truth]]\nfault = {{ kind = "{kind}"{DETAILS.get(kind, "")} }}\n'
        )
        (folder / "catalogue" / f"{kind}.toml").write_text(ENTRY.format(kind=kind), encoding="utf-8")
    (folder / "world.toml").write_text(world, encoding="utf-8")


def spec(folder: Path) -> CampaignSpec:
    flags = {"--world": str(folder / "world.toml"), "--time-scale": 20, "--box": "1xH100-SXM",
             "--watchdog-timeout": 10}  # fmt: skip
    return CampaignSpec(
        name="faults",
        target=Target(engine="rehearsal", model="qwen2.5-7b", flags=flags, start_timeout_s=20),
        workload=Workload(concurrency=4, input_tokens=(60, 70), output_tokens=(200, 260), window_s=0.3, windows=2,
                          warmup_min_s=0.1, warmup_max_s=6.0),
        objective=Objective(min_effect=0.05),
        budget=Budget(total_s=600, calibration_brackets=2, min_brackets=1, max_brackets=1, composition_brackets=1,
                      confirmation_brackets=2),
        statistics=Statistics(screen_alpha=0.1),
        quality=Quality(probes=8),
        gates=Gates(max_foreign_cores=64, max_steal_share=1),
        policy=Policy(builtin_catalogue=False, catalogue=["catalogue"]),
    )  # fmt: skip


def test_the_campaign_finishes(state: CampaignState) -> None:
    assert state.headline is not None
    assert set(state.verdicts) == set(EXPECTED)


@pytest.mark.parametrize("kind", EXPECTED)
def test_every_fault_ends_in_its_verdict(state: CampaignState, kind: str) -> None:
    verdict = state.verdicts[kind]

    assert (str(verdict.kind), verdict.cause) == EXPECTED[kind], verdict.reason


def test_the_report_of_all_that_is_labelled(state: CampaignState) -> None:
    assert "simulated" in state.build.version
