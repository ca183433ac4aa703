"""A proof is held against what the engine's adapter can report, before any campaign rests on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.api.catalogue import checked, log_facts
from assay.catalogue.loader import builtin_folder, load_files
from assay.catalogue.reported import reported
from assay.flags.history import DATA
from assay.plan.fold import fold
from assay.store.reader import read_events
from tests.unit.entry_files import HEAD

EXAMPLES = Path(__file__).parents[2] / "examples"
ENTRY = (
    HEAD
    + """[engines.{engine}]
flags = {{ "{flag}" = 64 }}
verify = "{verify}"
"""
)
FLAG = {"vllm": "--max-num-seqs", "sglang": "--max-running-requests", "llamacpp": "--parallel"}


def told(folder: Path, engine: str, verify: str) -> list[tuple[str, str]]:
    text = ENTRY.format(engine=engine, flag=FLAG.get(engine, "--max_batch_size"), verify=verify)
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return [(one.severity, one.what) for one in checked(folder) if "verify" in one.what]


@pytest.mark.parametrize(
    ("engine", "verify", "severity", "words"),
    [
        ("vllm", "", "error", "verify is empty"),
        ("vllm", "no.such.path = 64", "warning", "no recorded answer of the server holds no.such.path"),
        ("vllm", "scheduler_config.max_num_seq = --max-num-seqs", "warning", "mean scheduler_config.max_num_seqs?"),
        ("vllm", "log.nosuchfact = active", "error", "no log of it is read for log.nosuchfact"),
        ("vllm", "log.moe_backed = triton", "error", "did you mean log.moe_backend?"),
        ("sglang", "max_running_request = 64", "warning", "max_running_request"),
        ("llamacpp", "total_slot = 64", "warning", "did you mean total_slots?"),
        ("trtllm", "max_batch_size = 64", "warning", "holds max_batch_size"),
    ],
)
def test_a_proof_that_no_server_can_give_is_found(
    tmp_path: Path, engine: str, verify: str, severity: str, words: str
) -> None:
    ((found, what),) = told(tmp_path, engine, verify)

    assert found == severity
    assert words in what


@pytest.mark.parametrize(
    ("engine", "verify"),
    [
        ("vllm", "scheduler_config.max_num_seqs = --max-num-seqs; log.assay_moe = active"),
        ("vllm", "args.max_num_seqs = --max-num-seqs"),
        ("sglang", "max_running_requests = 64; cuda_graph_config.decode.backend = full; log.decode_graph = full"),
        ("llamacpp", "total_slots = 64; log.n_slots = 64"),
        ("trtllm", "log.max_num_requests = 64"),
    ],
)
def test_what_servers_report_is_no_finding(tmp_path: Path, engine: str, verify: str) -> None:
    assert told(tmp_path, engine, verify) == []


def test_every_proof_of_our_own_entries_can_be_given() -> None:
    folders = [builtin_folder(), EXAMPLES / "vllm-cpu" / "catalogue"]

    assert [str(one) for one in reported(load_files(folders), log_facts())] == []


@pytest.mark.parametrize(
    ("campaign", "engine"),
    [("demo", "llamacpp"), ("vllm-cpu", "vllm"), ("gpu/h200-vllm", "vllm"), ("gpu/h200-sglang", "sglang")],
)
def test_every_key_that_a_recorded_server_reported_of_itself_is_known(campaign: str, engine: str) -> None:
    state = fold(read_events(EXAMPLES / campaign / "assay.db"))
    told = {key for run in state.runs if run.outcome for key in run.outcome.effective}
    of_others = re.compile(r"\._|\.(draft|target)_(model|parallel)_config\.|^args\.|^status$")

    facts, keys = log_facts()[engine], set((DATA / f"{engine}_reported.txt").read_text().split())
    assert len(told) > 50
    assert {key for key in told if not of_others.search(key)} <= facts | keys
