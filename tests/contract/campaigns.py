"""Small real campaigns for the contract tests: the embedded engine, very short windows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil

from assay import api
from assay.records.spec import Budget, CampaignSpec, Gates, Objective, Policy, Quality, Statistics, Target, Workload
from assay.store.verify import verify

ENTRY = """
id = "{id}"
title = "{title}"
tier = 1
mechanism = "test"
predicted = [-0.05, 0.05]
numerics = "{numerics}"
applies_when = "True"
risk = "none"
[engines.llamacpp]
flags = {flags}
"""


def tiny_spec(**changes: object) -> CampaignSpec:
    """Runs of about two seconds whose trials end by their budget of brackets, never by what was measured."""
    fields: dict[str, object] = {
        "name": "tiny",
        "target": Target(
            model="embedded", executable="embedded", flags={"--ctx-size": 1024, "--parallel": 2, "--threads": 1}
        ),
        "workload": Workload(
            concurrency=2,
            input_tokens=(4, 6),
            output_tokens=(4, 6),
            window_s=0.3,
            windows=2,
            warmup_min_s=0.2,
            warmup_max_s=5.0,
        ),
        "objective": Objective(min_effect=0.0001),
        "budget": Budget(
            total_s=600,
            calibration_brackets=2,
            min_brackets=1,
            max_brackets=1,
            composition_brackets=1,
            confirmation_brackets=2,
        ),
        "statistics": Statistics(screen_alpha=1e-9, adopt_alpha=1e-9),
        "quality": Quality(probes=12),
        "gates": Gates(max_foreign_cores=64, max_steal_share=1),  # what is tested here needs no quiet machine
        "policy": Policy(builtin_catalogue=False, catalogue=["catalogue"]),
    }
    return CampaignSpec.model_validate({**fields, **changes})


def write_entry(folder: Path, name: str, flags: str, numerics: str = "reordered") -> None:
    """A catalogue entry of the campaign's own."""
    target = folder / "catalogue"
    target.mkdir(parents=True, exist_ok=True)
    text = ENTRY.format(id=name, title=name.replace("-", " "), flags=flags, numerics=numerics)
    (target / f"{name}.toml").write_text(text, encoding="utf-8")


def make_campaign(folder: Path, spec: CampaignSpec, entries: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, flags in entries.items():
        write_entry(folder, name, flags)
    api.init(folder, spec)
    return folder


def make_whole_campaign(folder: Path) -> Path:
    """With every kind of outcome that needs no statistics; the same runs whenever it is carried out."""
    entries = {
        "no-such-flag": '{ "--flag-that-never-was" = 3 }',
        "cannot-start": '{ "--cache-type-v" = "q8_0", "--flash-attn" = "off" }',
        "null-poll": '{ "--poll" = 50 }',
    }
    make_campaign(folder, tiny_spec(), entries)
    write_entry(folder, "wrong", '{ "--override-kv" = "llama.rope.freq_base=float:10" }', numerics="exact")
    return folder


def start_assay(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """`assay run` as a user starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "assay", *words, "--folder", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def completed(folder: Path) -> list[tuple[str, str | None, int, str]]:
    """The runs that count, in order: series, candidate, seed, arm."""
    return [
        (run.intent.series, run.intent.candidate, run.intent.seed, run.intent.arm.label)
        for run in api.status(folder).runs
        if run.outcome is not None and run.outcome.status == "ok"
    ]


def servers_of(folder: Path) -> list[int]:
    """Pids of live servers that carry this campaign's marker, or that its record names."""
    created = str(api.status(folder).created_at_ns)
    found = []
    for process in psutil.process_iter():
        try:
            marker = process.environ().get("ASSAY_RUN_TOKEN", "")
            alive = process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if alive and marker.startswith(created):
            found.append(process.pid)
    return found


def assert_verified(folder: Path) -> None:
    verification = verify(folder)
    assert verification.ok, json.dumps(verification.problems, indent=1)


def kills_wanted(default: int) -> int:
    """How many kills the kill test makes; ASSAY_KILLS=50 for the long form."""
    return int(os.environ.get("ASSAY_KILLS", default))
