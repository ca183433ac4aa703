"""An entry's own proof is held against what the server reports, and against nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.catalogue.loader import builtin_folder, load_files
from assay.engines import sglang_log, vllm_log
from assay.errors import UsageError
from assay.plan.expression import evaluate
from assay.plan.proof import proofs, proved, refuted, unproved
from assay.records.hypothesis import Optimization
from assay.records.run import Arm, Purpose, RunIntent, RunOutcome, RunStatus
from assay.records.state import CampaignState, RunRecord
from assay.render.report import report_markdown
from tests.unit.simulated_world import hypothesis, start

EXAMPLES = Path(__file__).parents[2] / "examples"
VLLM_H200 = """\
(EngineCore pid=771) INFO 11-30 02:09:06 [cuda.py:422] Using AttentionBackendEnum.FLASHINFER backend.
(EngineCore pid=771) INFO 11-30 02:09:06 [nvfp4.py:208] Using 'FLASHINFER_B12X' NvFp4 MoE backend out of potential backends: ['FLASHINFER_B12X', 'MARLIN'].
(EngineCore pid=771) INFO 11-30 02:09:07 [unquantized.py:302] Using FlashInfer CUTLASS Unquantized MoE backend out of potential backends: ['TRITON', 'FlashInfer CUTLASS'].
(EngineCore pid=771) INFO 11-30 02:09:08 [cuda_communicator.py:265] Using ['CUSTOM', 'PYNCCL'] all-reduce backends (in dispatch order) for group 'tp:0' out of potential backends: ['CUSTOM', 'PYNCCL'].
(EngineCore pid=771) INFO 11-30 02:09:08 [cuda_communicator.py:201] Using DeepEPLLAll2AllManager all2all manager.
(EngineCore pid=771) INFO 11-30 02:09:08 [topk_topp_sampler.py:39] FlashInfer top-p/top-k sampling disabled via VLLM_USE_FLASHINFER_SAMPLER=0.
(EngineCore pid=771) WARNING 11-30 02:09:23 [fused_moe.py:1107] Using default MoE config. Performance might be sub-optimal! Config file not found at /opt/eng/vllm/E=64,N=768.json
(EngineCore pid=771) INFO 11-30 02:09:23 [fused_moe.py:1090] Using configuration from /tuned/E=64,N=1536.json for MoE layer.
(APIServer pid=507) INFO 11-30 02:08:47 [vllm.py:1109] Asynchronous scheduling is enabled.
"""  # noqa: E501 - lines of a log
SGLANG_H200 = """\
[2026-11-30 02:26:13] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 6954887, K size: 39.80 GB, V size: 39.80 GB
[2026-11-30 02:26:14] Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[4, 8], avail mem=55.08 GB
Capturing num tokens (num_tokens=8192 avail_mem=55.08 GB):   0%|          | 0/58 [00:00<?, ?it/s][2026-11-30 02:27:19] Using default MoE kernel config. Performance might be sub-optimal! Config file not found at /opt/E=64.json
[2026-11-30 02:27:39] Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 4]
[2026-11-30 02:27:47] Capture target decode CUDA graph end. elapsed=7.45 s, mem usage=0.12 GB, avail mem=53.73 GB.
[2026-11-30 02:27:47] Tree cache initialized: source=default impl=RadixCache hybrid_swa=False hierarchical=False streaming_wrapped=False
"""  # noqa: E501 - lines of a log


def entry(name: str, engine: str, number: int = 0) -> Optimization:
    files = {one.id: one for one in load_files([builtin_folder()])}
    return files[name].engines[engine][number]


def said(name: str, engine: str, effective: dict[str, Any], number: int = 0) -> str | None:
    """Against an entry's proof, by what the engine reported when the entry's own flags were given."""
    one = entry(name, engine, number)
    return refuted(one.verify, one.flags, one.env, effective)


@pytest.mark.parametrize(
    ("text", "effective", "words"),
    [
        ("a.b = 8", {"a.b": 8.0}, None),
        ("a.b = 8", {"a.b": "16"}, "the server reports a.b = 16, not 8"),
        ("a.b = true", {"a.b": True}, None),
        ("a.b = Triton | *cutlass*", {"a.b": "FLASHINFER_CUTLASS"}, None),
        ("a.b = Triton | *cutlass*", {"a.b": "marlin"}, "not Triton or *cutlass*"),
        ("a.b = --tp", {"a.b": 4}, "a.b = 4, not 8"),
        ("a.b = $DIR*", {"a.b": "/tuned/x.json"}, None),
        ("a.b = $DIR*", {"a.b": "/builtin/x.json"}, "not /tuned*"),
        ("a.b = --absent", {"a.b": 4}, None),
        ("a.b = *--tp*", {"a.b": "tp8_fused"}, None),
        ("a.b = --tp*", {"a.b": "4_fused"}, "a.b = 4_fused, not 8*"),
        ("a.b = 8", {}, None),
        ("a.b = 8", {"engine.a.b": 4}, "a.b = 4"),
        ("log.a = x", {"log.a": ["y", "x"]}, None),
        ("log.a = x", {"log.a": ["y", "z"]}, "log.a"),
        ("a.b = none | 0", {"a.b": [2, 0]}, "a.b = [2, 0]"),
        ("a = 1; b = 2", {"a": 1, "b": 3}, "b = 3"),
    ],
)
def test_what_is_reported_otherwise_refutes_and_what_is_not_reported_does_not(
    text: str, effective: dict[str, Any], words: str | None
) -> None:
    found = refuted(text, {"--tp": 8}, {"DIR": "/tuned"}, effective)

    assert (found is None) if words is None else (words in str(found))


def test_a_proof_is_told_in_the_servers_own_words_and_not_where_it_reports_nothing() -> None:
    assert proved("a = --tp; b = 2", {"--tp": 8}, {}, {"a": 8}) == "a = 8"
    assert proved("a = --tp", {"--tp": 8}, {}, {}) is None
    assert proved("a = --tp", {"--tp": "auto"}, {}, {"a": 8}) is None
    assert proved("", {}, {}, {"a": 8}) is None
    assert proved("look at the log", {}, {}, {"look": 8}) is None


@pytest.mark.parametrize("text", ["a", "= 8", "a =", "a b = 8", "a = 1;", "a = 1 || 2"])
def test_a_proof_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not `path = value`"):
        proofs(text)


@pytest.mark.parametrize(
    ("verify", "words"),
    [
        ("nonsense", "is not `path = value`"),
        ("a = --other", "does not set --other"),
        ("a = *--other*", "does not set --other"),
        ("a = $NAME*", "does not set \\$NAME"),
    ],
)
def test_an_entry_with_a_proof_that_proves_nothing_is_refused_with_its_file(
    tmp_path: Path, verify: str, words: str
) -> None:
    text = 'id = "x"\ntitle = "x"\ntier = 1\nnumerics = "exact"\npredicted = [0, 0.1]\nmechanism = "m"\nrisk = "r"\n'
    table = f'[engines.vllm]\nflags = {{ "--max-num-seqs" = 8 }}\nverify = "{verify}"\n'
    (tmp_path / "x.toml").write_text(text + table, encoding="utf-8")

    with pytest.raises(UsageError, match=words):
        load_files([tmp_path])


def test_what_a_vllm_log_tells_of_kernels_proves_and_refutes_the_entries_that_choose_them() -> None:
    told = vllm_log.facts(VLLM_H200)

    assert told["log.moe_backend"] == ["FLASHINFER_B12X", "FlashInfer CUTLASS"]
    assert told["log.moe_config"] == ["default", "/tuned/E=64,N=1536.json"]
    for name, number in (("attention-flashinfer", 0), ("attention-flashinfer", 1), ("moe-runner-b12x", 0)):
        assert said(name, "vllm", told, number) is None
    assert "log.attention_backend = FLASHINFER" in str(said("attention-triton", "vllm", told))
    assert said("moe-runner-cutlass", "vllm", told) is None
    assert "log.moe_backend" in str(said("moe-runner-marlin", "vllm", told))
    assert "log.all_reduce = 'CUSTOM', 'PYNCCL'" in str(said("symm-mem-all-reduce", "vllm", told))
    assert "log.sampler = disabled" in str(said("flashinfer-sampler", "vllm", told))
    assert said("deepep-all-to-all", "vllm", told) is None
    tuned = entry("moe-tuned-config", "vllm")
    assert refuted(tuned.verify, {}, {"VLLM_TUNED_CONFIG_FOLDER": "/tuned"}, told) is None
    assert refuted(tuned.verify, {}, {"VLLM_TUNED_CONFIG_FOLDER": "/elsewhere"}, told) is not None


def test_what_an_sglang_log_tells_of_graphs_and_caches_proves_and_refutes_the_entries_that_choose_them() -> None:
    told = sglang_log.facts(SGLANG_H200)

    assert (told["log.decode_graph"], told["log.prefill_graph"], told["log.cuda_graph_s"]) == (
        "full",
        "breakable",
        7.45,
    )
    assert told["log.moe_config"] == "default"
    assert said("piecewise-cuda-graph", "sglang", told) is None
    assert "log.prefill_graph = breakable" in str(said("piecewise-cuda-graph", "sglang", told, 1))
    assert "log.decode_graph = full" in str(said("graphs-off", "sglang", told))
    assert "log.kv_dtype = bfloat16" in str(said("kv-fp8", "sglang", told))
    assert "log.tree_cache = RadixCache" in str(said("prefix-cache-off", "sglang", told, 1))
    assert "log.hierarchical = false" in str(said("hierarchical-cache", "sglang", told))


def test_a_cache_that_keeps_its_class_without_reuse_does_not_refute_that_reuse_is_off() -> None:
    told = {"disable_radix_cache": True, "log.tree_cache": "UnifiedRadixCache"}

    assert said("prefix-cache-off", "sglang", told) is None
    assert "disable_radix_cache = false" in str(said("prefix-cache-off", "sglang", {"disable_radix_cache": False}))
    assert "UnifiedRadixCache" in str(said("prefix-cache-off", "sglang", told, 1))


def test_a_flag_that_sglang_keeps_in_a_field_of_another_name_is_held_against_that_field() -> None:
    assert said("fp8-gemm-cutlass", "sglang", {"fp8_gemm_runner_backend": "cutlass"}) is None
    assert "fp8_gemm_runner_backend = auto" in str(
        said("fp8-gemm-cutlass", "sglang", {"fp8_gemm_runner_backend": "auto"})
    )


def test_what_is_fused_by_the_compiler_is_not_proved_where_nothing_is_compiled() -> None:
    """vLLM 0.26 on an H200 reported the fusion of a norm while it compiled nothing, and said so in a warning."""
    fused = {"compilation_config.pass_config.fuse_norm_quant": True}

    assert said("fuse-norm-quant", "vllm", fused | {"compilation_config.mode": 3}) is None
    assert said("fuse-norm-quant", "vllm", fused | {"engine.compilation_config.mode": "VLLM_COMPILE"}) is None
    assert "mode = 0" in str(said("fuse-norm-quant", "vllm", fused | {"compilation_config.mode": 0}))


def test_fp8_in_the_layout_of_sparse_attention_is_fp8() -> None:
    assert said("kv-fp8", "vllm", {"cache_config.cache_dtype": "fp8_ds_mla"}) is None
    assert said("kv-fp8", "vllm", {"cache_config.cache_dtype": "auto"}) is not None


@pytest.mark.parametrize("concurrency", [1, 2, 7, 8, 60, 100, 255, 256, 300])
def test_the_batch_that_graphs_are_asked_for_is_one_that_vllm_captures_and_none_of_the_load_lies_above_it(
    concurrency: int,
) -> None:
    asked = entry("cuda-graph-batch-sizes", "vllm").flags["--max-cudagraph-capture-size"]
    largest = evaluate(str(asked).removeprefix("="), {"workload": {"concurrency": concurrency}})

    assert largest in {1, 2, 4, *range(8, 256, 8), *range(256, 1024, 16)}
    assert concurrency <= largest < concurrency + 16


def runs(campaign: str) -> list[tuple[RunIntent, RunOutcome]]:
    """What was changed in each run of a real engine, and how it ended."""
    from assay.plan.fold import fold
    from assay.store.reader import read_events

    state = fold(read_events(EXAMPLES / campaign / "assay.db"))
    return [(run.intent, run.outcome) for run in state.runs if run.outcome is not None]


@pytest.mark.parametrize(
    ("campaign", "engine", "proved_there"),
    [
        ("vllm-cpu", "vllm", {"prefix-cache-off", "stream-interval"}),
        (
            "gpu/h200-vllm",
            "vllm",
            {"assay-persistent-moe", "kv-fp8", "prefill-chunk-large", "stream-interval", "weights-fp8"},
        ),
        ("gpu/h200-sglang", "sglang", {"overlap-schedule-off", "stream-interval"}),
    ],
)
def test_no_run_of_a_recorded_campaign_that_counted_is_refuted_by_its_entries_proof(
    campaign: str, engine: str, proved_there: set[str]
) -> None:
    served = {one.id: one.engines[engine][0] for one in load_files([builtin_folder()]) if engine in one.engines}
    told: set[str] = set()
    for intent, outcome in runs(campaign):
        for name in (each for each in intent.arm.deltas if each in served):
            said_of = (served[name].verify, intent.arm.flags, intent.arm.env, outcome.effective)
            assert refuted(*said_of) is None or outcome.status not in {"ok", "wrong-output"}, name
            told |= {name} if proved(*said_of) else set()
    assert told >= proved_there


def test_every_entry_that_can_be_launched_names_its_proof_but_those_that_no_engine_tells_of() -> None:
    """What changes NCCL's or OpenMP's variables, statistics of the log, or what is only logged for debugging.

    And what SGLang's data-parallel attention divides: the adapter knows by how much, a proof does not.
    """
    files = load_files([builtin_folder()])
    without = {
        engine: {
            file.id for file in files for one in file.engines.get(engine, []) if not (one.needs_work or one.verify)
        }
        for engine in ("vllm", "sglang")
    }

    assert without["vllm"] == {
        "continuous-decode-steps", "cpu-backend-all-cores", "logging-off", "nccl-protocol-ll",
        "pcie-one-shot-all-reduce", "shared-expert-apart", "tokenizer-workers",
    }  # fmt: skip
    assert without["sglang"] == {
        "continuous-decode-steps", "fuse-allreduce-rmsnorm", "logging-off", "nccl-protocol-ll", "omp-one-thread",
        "prefill-chunk-large", "prefill-chunk-small", "schedule-less-conservative",
    }  # fmt: skip


def after(*outcomes: tuple[RunStatus, dict[str, Any]], verify: str) -> str | None:
    """What is not proved in a campaign whose runs with a change ended so, the server having reported that."""
    state = state_after(*outcomes, verify=verify)
    return unproved(state.hypotheses[0], state)


def state_after(*outcomes: tuple[RunStatus, dict[str, Any]], verify: str) -> CampaignState:
    wanted = hypothesis("change", verify=verify)
    arm = Arm(label="change", flags={"--max-num-seqs": 64}, deltas=["change"])
    runs = [
        RunRecord(
            intent=RunIntent(
                run_id=f"r{number}", purpose=Purpose.SCREEN, series="main", candidate="change", arm=arm, seed=1, why=""
            ),
            outcome=RunOutcome(run_id=f"r{number}", status=status, reason="", duration_s=1, effective=effective),
            intended_at_ns=number,
        )
        for number, (status, effective) in enumerate(outcomes)
    ]
    return start([wanted]).state.model_copy(update={"runs": runs})


def test_a_path_that_no_run_found_is_told() -> None:
    misspelt = "scheduler_config.max_num_seq = --max-num-seqs"
    told = {"scheduler_config.max_num_seqs": 64}
    invalid, stopped = RunStatus.INVALID, RunStatus.NOT_APPLIED

    assert after((invalid, told), (invalid, told), verify=misspelt) == (
        "Whether it was in force could not be proved: the server does not report `scheduler_config.max_num_seq`."
    )
    assert after((invalid, told), verify=f"scheduler_config.max_num_seqs = 64; {misspelt}") == (
        "A part of its proof is missing: the server does not report `scheduler_config.max_num_seq`."
    )
    assert after((invalid, {}), (invalid, told), verify="scheduler_config.max_num_seqs = 64") is None
    assert after((stopped, told), verify=misspelt) is None
    assert after((invalid, told), verify="") is None


def test_a_log_that_is_silent_as_it_should_be_misses_no_part_of_a_proof() -> None:
    verify = "disable_cuda_graph = true; log.decode_graph = none"
    invalid = RunStatus.INVALID

    assert after((invalid, {"disable_cuda_graph": True}), verify=verify) is None
    assert "could not be proved" in str(after((invalid, {}), verify=verify))


def test_the_report_names_what_could_not_be_proved() -> None:
    state = state_after((RunStatus.INVALID, {"total_slots": 64}), verify="total_slot = 64")

    assert "- change: Whether it was in force could not be proved: the server does not report `total_slot`." in (
        report_markdown(state, launch_commands={})
    )


@pytest.mark.parametrize(
    ("engine", "asked", "reported", "holds"),
    [
        ("vllm", "16k", 16_000, True),
        ("vllm", "16K", 16_384, True),
        ("vllm", "16k", 16_384, False),
        ("sglang", "1M", 1_000_000, True),
        ("sglang", "1Mi", 1_048_576, True),
        ("vllm", "auto", 131_072, True),
    ],
)
def test_a_size_is_proved_by_the_number_that_its_engine_makes_of_it(
    engine: str, asked: str, reported: int, *, holds: bool
) -> None:
    said = refuted("context_length = --length", {"--length": asked}, {}, {"context_length": reported}, engine=engine)

    assert (said is None) is holds
