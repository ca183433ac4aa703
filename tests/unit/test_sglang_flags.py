"""SGLang's own help and log, read: helps printed by the argument parsers of two wheels, their prose masked.

How they were made: the wheel's `ServerArgs.add_cli_args` filled a parser, what it imports and does not need for that
replaced by empty modules; letters of explanations were then replaced by x, flags, choices, defaults and layout kept.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from assay.engines import declared_flags
from assay.engines.sglang_in_force import contradiction
from assay.engines.sglang_log import facts, fallbacks
from assay.engines.sglang_state import reported
from assay.flags import from_help, history
from assay.flags.help_text import joined, parse_argparse
from assay.flags.spec import FlagSpec
from assay.records.machine import EngineBuild

HELP = Path(__file__).parent / "engine_help"
VERSIONS = ("0.4.6", "0.5.23")
NOT_SHOWN = {"--forward-pass-metrics-ipc-name", "--forward-pass-metrics-worker-id"}
"""Declared without a help: argparse leaves them out."""
LOG = """\
INFO:     Started server process [11]
[2026-02-03 10:00:00] server_args=ServerArgs(model_path='/m', disable_radix_cache=False, attention_backend=None)
[2026-02-03 10:00:01] Attention backend not set. Use flashinfer backend by default.
[2026-02-03 10:00:02 TP0] Load weight begin. avail mem=93.10 GB
[2026-02-03 10:00:09 DP1 TP3] Load weight end. type=GlmMoeDsaForCausalLM, mem usage=51.25 GB.
[2026-02-03 10:00:10] Cuda graph is disabled because deepep_mode=`normal`
[2026-02-03 10:00:11 TP0] DeepEP MoE is enabled. The expert parallel size is adjusted to the tensor one[8].
[2026-02-03 10:00:11 TP1] DeepEP MoE is enabled. The expert parallel size is adjusted to the tensor one[8].
[2026-02-03 10:00:12] Ignore import error when loading sglang.srt.models.x
[2026-02-03 10:00:13 TP0] max_total_num_tokens=314304, chunked_prefill_size=2048, max_running_requests=2048
[2026-02-03 10:00:14] The server is fired up and ready to roll!
[2026-02-03 10:00:15 TP0] Decode batch. #running-req: 12, token usage: 0.03, falling back: never
"""


def specs(version: str) -> list[FlagSpec]:
    text = gzip.decompress((HELP / f"sglang-{version}.txt.gz").read_bytes()).decode()
    return joined(parse_argparse(text))


def build(version: str) -> EngineBuild:
    known = from_help("sglang", version, specs(version), "").specs
    infos = [declared_flags.to_info(spec) for spec in known]
    return EngineBuild(engine="sglang", argv=["python"], version=f"SGLang {version}", source="", flags=infos)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_flag_that_the_wheel_declares_is_read_from_its_help(version: str) -> None:
    read = {name for spec in specs(version) for name in spec.names} - {"-h", "--help"}
    declared = {name for spec in history("sglang").at(version) for name in spec.names}

    assert declared - read <= NOT_SHOWN
    assert read <= declared
    assert len(read) > 120


@pytest.mark.parametrize("version", VERSIONS)
def test_choices_and_switches_are_read_as_the_wheel_declares_them(version: str) -> None:
    read = {name: spec for spec in specs(version) for name in spec.names}
    for declared in history("sglang").at(version):
        if declared.name not in NOT_SHOWN:
            spec = read[declared.name]
            assert spec.is_switch == declared.is_switch, declared.name
            assert set(spec.choices) == set(declared.choices) or not declared.choices, declared.name


@pytest.mark.parametrize(
    ("version", "flags", "words"),
    [
        ("0.4.6", {"--moe-runner-backend": "triton"}, "0.5.1 is the first"),
        ("0.4.6", {"--enable-ep-moe": True}, None),
        ("0.5.23", {"--enable-ep-moe": True}, "--enable-ep-moe"),
        ("0.5.23", {"--cuda-graph-bs": "1 2"}, "--cuda-graph-bs-decode"),
        ("0.5.23", {"--cuda-graph-bs-decode": "1 2 64"}, None),
        ("0.5.23", {"--cuda-graph-bs-decode": "1 two"}, "takes a whole number"),
        ("0.5.23", {"--moe-a2a-backend": "carrier-pigeon"}, "takes one of"),
        ("0.5.23", {"--disable-radix-cache": 1}, "takes no value"),
        ("0.5.23", {"--num-continuous-decode-steps": 16}, None),
        ("0.5.23", {"--mem-fraction-static": True}, "needs a value"),
    ],
)
def test_a_build_takes_what_its_version_takes(version: str, flags: dict[str, object], words: str | None) -> None:
    reason = declared_flags.problem(build(version), flags)  # type: ignore[arg-type]

    assert (reason is None) if words is None else (words in str(reason))


def test_one_flag_has_the_spelling_that_its_version_lists_first() -> None:
    assert declared_flags.canonical(build("0.4.6"), {"--tp-size": 8}) == {"--tensor-parallel-size": 8}
    assert declared_flags.canonical(build("0.5.23"), {"--tensor-parallel-size": 8}) == {"--tp-size": 8}


def test_a_log_tells_facts_and_each_second_thought_once() -> None:
    assert facts(LOG) == {
        "log.attention_backend": "flashinfer",
        "log.model_class": "GlmMoeDsaForCausalLM",
        "log.weights_gb": 51.25,
        "log.max_total_num_tokens": 314304,
        "log.max_running_requests": 2048,
    }
    assert fallbacks(LOG) == [
        "Cuda graph is disabled because deepep_mode=`normal`",
        "DeepEP MoE is enabled. The expert parallel size is adjusted to the tensor one[8].",
    ]


NOW = {"version": "0.5.17"}
GOING = "'--disable-cuda-graph' is deprecated and will be removed in a future release. Use '--cuda-graph-x' instead."
DP8 = {"enable_dp_attention": True, "dp_size": 8}


@pytest.mark.parametrize(
    ("flags", "effective", "lines", "words"),
    [
        ({"--tp-size": 8}, {"tp_size": 8}, [], None),
        ({"--tensor-parallel-size": 8}, {"tp_size": 4}, [], "tp_size = 4"),
        ({"--attention-backend": "auto"}, {"attention_backend": "fa3"}, [], None),
        ({"--kv-cache-dtype": "fp8_e4m3"}, {"kv_cache_dtype": "auto"}, [], "kv_cache_dtype = auto"),
        ({"--dtype": "bfloat16"}, {"dtype": "torch.bfloat16"}, [], None),
        ({"--cuda-graph-bs": "1 2 4"}, {"cuda_graph_bs": [1, 2, 4]}, [], None),
        ({"--cuda-graph-bs": "1 2 4"}, {"cuda_graph_bs": [1, 2]}, [], "cuda_graph_bs = [1, 2]"),
        ({"--chunked-prefill-size": "8k"}, {"chunked_prefill_size": 8000}, [], None),
        ({"--chunked-prefill-size": "8Ki"}, {"chunked_prefill_size": 8192}, [], None),
        ({"--speculative-algorithm": "NEXTN"}, {"speculative_algorithm": "EAGLE"}, [], None),
        (
            {"--cuda-graph-config": '{"decode": {"max_bs": 8}}'},
            {"cuda_graph_config.decode.max_bs": 4},
            [],
            "max_bs = 4",
        ),
        ({"--enable-mscclpp": True}, {"enable_mscclpp": True}, ["MSCCL++ is disabled: the op is missing"], "MSCCL++"),
        ({"--disable-radix-cache": True}, {}, ["Disabling radix cache since x is not supported"], None),
        ({"--enable-two-batch-overlap": True}, {}, ["X is disabled when two-batch overlap is on"], None),
        (
            {"--enable-dp-attention": True},
            {"enable_dp_attention": True},
            ["DP attention is enabled. chunked prefill size is adjusted from 8192 to 1024."],
            None,
        ),
        (
            {"--enable-eplb": True},
            {"enable_eplb": True},
            ["EPLB is enabled. The expert_distribution_recorder_mode is automatically set."],
            None,
        ),
        ({"--enable-eplb": True}, {}, ["EPLB is enabled, but this model has no experts: EPLB is ignored"], "ignored"),
        (
            {"--enable-hierarchical-cache": True},
            {},
            ["Disable hybrid SWA memory for Step3p5ForCausalLM model with hierarchical cache"],
            None,
        ),
        ({"--chunked-prefill-size": 16384}, DP8 | {"chunked_prefill_size": 2048}, [], None),
        ({"--chunked-prefill-size": 16384}, DP8 | {"chunked_prefill_size": 8192}, [], "= 8192"),
        ({"--chunked-prefill-size": 16384}, {"dp_size": 8, "chunked_prefill_size": 2048}, [], "= 2048"),
        ({"--schedule-conservativeness": 0.3}, DP8 | {"schedule_conservativeness": 0.09}, [], None),
        ({"--schedule-conservativeness": 0.3}, DP8 | {"schedule_conservativeness": 1.0}, [], "= 1.0"),
        ({"--model-path": "/a"}, {"model_path": "/b"}, [], None),
        ({"--unknown": 1}, {}, [], None),
        ({"--num-continuous-decode-steps": 4}, {"version": "0.5.23"}, [], "no code outside argument handling"),
        ({"--num-continuous-decode-steps": 4}, {"version": "0.3.4"}, [], None),
        ({"--num-continuous-decode-steps": 4}, {}, [], None),
        # Deprecated flags, which their version turns into others.
        ({"--cuda-graph-max-bs": 64}, NOW | {"cuda_graph_config.decode.max_bs": 64}, [], None),
        ({"--cuda-graph-max-bs": 64}, NOW | {"cuda_graph_config.decode.max_bs": 32}, [], "decode.max_bs = 32"),
        ({"--cuda-graph-bs": "1 2"}, NOW | {"cuda_graph_bs_decode": [1, 2]}, [], None),
        ({"--disable-cuda-graph": True}, NOW | {"cuda_graph_config.decode.backend": "disabled"}, [GOING], None),
        ({"--disable-cuda-graph": True}, NOW | {"cuda_graph_config.decode.backend": "full"}, [GOING], "= full"),
        ({"--enable-flashinfer-allreduce-fusion": True}, NOW | {"enable_flashinfer_allreduce_fusion": False}, [], None),
        ({"--enable-flashinfer-trtllm-moe": True}, {"version": "0.5.4", "moe_runner_backend": "triton"}, [], "triton"),
        ({"--enable-dp-attention": True}, {"version": "0.5.23", "enable_dp_attention": False}, [], None),
        ({"--disable-cuda-graph": True}, {}, [GOING], None),
        ({"--enable-mscclpp": True}, {}, ["--enable-mscclpp is deprecated and has no effect"], "has no effect"),
    ],
)
def test_a_flag_is_accused_only_where_the_servers_own_word_contradicts_it(
    flags: dict[str, object], effective: dict[str, object], lines: list[str], words: str | None
) -> None:
    said = contradiction(flags, effective, lines)  # type: ignore[arg-type]

    assert (said is None) if words is None else (words in str(said)), said


def test_the_scheduler_s_word_counts_more_than_the_launcher_s() -> None:
    info = {
        "attention_backend": None,
        "disable_overlap_schedule": False,
        "api_key": "secret",
        "internal_states": [
            {
                "attention_backend": "fa3",
                "disable_overlap_schedule": True,
                "api_key": "secret",
                "env_vars": {"HF_TOKEN": "secret"},
                "memory_usage": {"weight": 51.25, "graph": {"decode": 1.5, "prefill": 0.25}, "token_capacity": 4096},
            }
        ],
        "version": "0.5.17",
    }

    assert reported(info) == {
        "attention_backend": "fa3",
        "disable_overlap_schedule": True,
        "version": "0.5.17",
        "state.weight": 51.25,
        "state.graph": 1.75,
        "state.token_capacity": 4096,
    }
    assert reported({**info, "internal_states": []})["disable_overlap_schedule"] is False


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("Capture cuda graph bs [1, 2, 4, 160]", "log.largest_graph", 160),
        (
            "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2, 256], avail=9 GB",
            "log.largest_graph",
            256,
        ),
        ("Using KV cache dtype: torch.float8_e4m3fn", "log.kv_dtype", "float8_e4m3fn"),
        ("KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 4096, KV size: 1.00 GB", "log.kv_dtype", "bfloat16"),
        (
            "Tree cache initialized: source=default impl=UnifiedRadixCache hybrid_swa=False hybrid_ssm=False "
            "hicache_attached=True",
            "log.hierarchical",
            True,
        ),
        (
            "Using hybrid attention backend for decode and prefill: decode_backend=flashinfer, prefill_backend=fa3.",
            "log.prefill_attention",
            "fa3",
        ),
        (
            "Try DeepGEMM JIT Compiling for <GROUPED_GEMM_NT_F8F8BF16_MASKED> N=4096, K=7168, num_groups=32 with",
            "log.deep_gemm",
            "GROUPED_GEMM_NT_F8F8BF16_MASKED",
        ),
    ],
)
def test_a_log_tells_what_runs_in_the_wording_of_each_version(line: str, key: str, value: object) -> None:
    assert facts(f"[2026-02-03 10:00:00 TP0] {line}")[key] == value
