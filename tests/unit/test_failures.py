"""Failures understood: each look-alike log gives its stage, its cause and the line that a good engineer would quote."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.failures import Log, explain
from assay.failures.around import NUM_AROUND
from assay.failures.reader import MOST_OF_A_RULE
from assay.failures.scan import Scan
from assay.records.failure import Cause, Explanation

LOGS = Path(__file__).parent / "failure_logs"
EXPECTED = {
    "vllm_worker_oom_then_api_server": ("weights", "oom-at-load", "Tried to allocate 1.10 GiB"),
    "vllm_kv_too_small": ("kv-cache", "kv-cache-too-small", "max seq len (40960)"),
    "vllm_chained_config": ("load", "unsupported-model-architecture", "model type `otter9`"),
    "vllm_hang_then_nccl_noise": ("under-load", "hang", "RPC call to sample_tokens timed out"),
    "vllm_bind_after_startup": ("load", "port-in-use", "('0.0.0.0', 8000): address already in use"),
    "vllm_jit_no_nvcc": ("compile", "jit-compile-failure", "ninja: build stopped"),
    "vllm_cut_in_a_traceback": ("compile", "jit-compile-failure", "build_and_load()"),
    "vllm_assertion_without_words": ("under-load", "incompatible-combination", "assert mask.dim() == 3"),
    "sglang_capture_oom": ("graph-capture", "oom-at-capture", "Tried to allocate 640.00 MiB. GPU 2"),
    "sglang_graph_break": ("graph-capture", "graph-break", "torch._dynamo.exc.Unsupported"),
    "sglang_ep_crash_under_load": ("under-load", "illegal-memory-access", "illegal memory access"),
    "sglang_advice_is_no_cause": ("load", "unknown", "exit code: -3"),
    "sglang_scheduler_sigkill": ("weights", "host-oom", "exit code: -9"),
    "triton_shared_memory": ("warm-up", "unsupported-architecture", "Hardware limit: 101376"),
    "trtllm_kv_blocks": ("under-load", "kv-cache-too-small", "freeBlockIterator.has_value()"),
    "trtllm_insufficient_memory": ("weights", "oom-at-load", "insufficient GPU memory"),
    "llamacpp_truncated": ("weights", "model-corrupt", "not within the file bounds"),
    "llamacpp_compute_buffer": ("kv-cache", "oom-at-load", "allocating 800.00 MiB on device 1"),
    "llamacpp_mlock_warning": ("load", "memory-lock-limit", "failed to mlock"),
    "import_of_a_kernel_library": ("arguments", "missing-dependency", "undefined symbol"),
    "kernel_oom_killer": ("load", "host-oom", "Killed process 7001"),
    "crash_loop": ("load", "communication", "NCCL error: unhandled system error"),
    "xid_79": ("under-load", "driver-mismatch", "fallen off the bus"),
    "slurm_time_limit": ("under-load", "killed", "DUE TO TIME LIMIT"),
}


def of(*lines: str, exit_code: int | None = None) -> Explanation:
    return explain([Log("server.log", [f"{line}\n" for line in lines])], exit_code)


def of_file(name: str, exit_code: int | None = None) -> Explanation:
    return explain([Log(name, (LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines(keepends=True))], exit_code)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_look_alike_log_gives_its_stage_cause_and_quote(name: str) -> None:
    stage, cause, quote = EXPECTED[name]

    found = of_file(name)

    assert (found.stage, found.cause) == (stage, cause)
    assert quote in (found.quote or "")


def test_every_log_beside_the_tests_is_expected_to_say_something() -> None:
    assert {path.stem for path in LOGS.glob("*.log")} == {*EXPECTED, "healthy_then_stopped"}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_quoted_line_stands_where_it_is_said_to_stand_among_the_lines_around_it(name: str) -> None:
    lines = (LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines()

    found = of_file(name)

    assert found.line is not None
    assert lines[found.line - 1].strip() == found.quote
    first, last = max(1, found.line - 3), min(len(lines), found.line + 3)
    assert [(each.number, each.text) for each in found.around] == [
        (number, lines[number - 1].rstrip()) for number in range(first, last + 1)
    ]


def test_a_server_that_became_ready_and_was_stopped_has_not_failed() -> None:
    found = of_file("healthy_then_stopped")

    assert (found.cause, found.stage, found.is_failure) == (Cause.NONE, "shutdown", False)
    assert found.quote == "(APIServer pid=11) INFO:     Shutting down"
    assert found.meaning == "no failure in this log: it started, served 1 request and was stopped"


SERVED = ["INFO:     Application startup complete.", 'INFO:     127.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK']
STOPPED = [
    "[2026-11-30 21:06:56] INFO:     Shutting down",
    "[2026-11-30 21:06:57] INFO:     Application shutdown complete.",
]
KILLED = (
    "[2026-11-30 21:06:57] Subprocess detokenizer (pid=37) crashed with exit code -9. Triggering SIGQUIT for cleanup..."
)


@pytest.mark.parametrize("ends", [[], ["KeyboardInterrupt"]])
def test_a_process_that_is_said_to_have_crashed_after_an_orderly_shutdown_began_is_no_failure(ends: list[str]) -> None:
    found = of(*SERVED, *ends, *STOPPED, KILLED)

    assert (found.cause, found.quote) == (Cause.NONE, STOPPED[0])
    assert "served 1 request and was stopped" in found.meaning


@pytest.mark.parametrize(
    "cause",
    ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", KILLED, "ERROR something broke"],
)
def test_what_went_wrong_before_a_shutdown_began_is_why_it_began(cause: str) -> None:
    found = of(*SERVED, cause, *STOPPED)

    assert found.cause is not Cause.NONE
    assert found.quote == cause


def test_a_server_that_was_asked_to_end_and_ended_badly_has_failed() -> None:
    log = Log("server.log", [*SERVED, *STOPPED])

    assert explain([log], 143).cause is Cause.NONE
    assert explain([log], 139).cause is Cause.CRASHED


def test_a_log_that_ends_while_the_server_serves_does_not_tell() -> None:
    found = of(*SERVED)

    assert found.cause is Cause.UNKNOWN
    assert "it served 1 request, and ends with neither an error nor a shutdown" in found.meaning


def test_a_start_after_a_shutdown_is_another_life() -> None:
    assert of(*SERVED, *STOPPED, *SERVED, KILLED).cause is not Cause.NONE


def test_the_remedy_and_what_it_implies_carry_the_values_of_the_line() -> None:
    found = of_file("vllm_kv_too_small")

    assert "40960 tokens needs 5.00 GiB and 2.25 GiB is free" in found.remedy
    (implied,) = found.implies
    assert (implied.knob, implied.direction, implied.value) == ("max_model_len", "above", "40960")


def test_an_unknown_flag_implies_every_arm_with_the_flag() -> None:
    (implied,) = of("launch_server.py: error: unrecognized arguments: --enable-warp-drive 4").implies

    assert (implied.scope, implied.knob) == ("flag", "--enable-warp-drive")


def test_an_unsupported_architecture_implies_the_whole_family() -> None:
    (implied,) = of("llama_model_load: error loading model: unknown model architecture: 'otter9'").implies

    assert implied.scope == "family"


def test_a_missing_dependency_implies_the_backend() -> None:
    (implied,) = of("ModuleNotFoundError: No module named 'deep_ep'").implies

    assert implied.scope == "backend"


def test_a_cause_in_the_second_file_outranks_symptoms_in_the_first() -> None:
    symptom = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above)."
    cause = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    out = Log("server.out", ['INFO:     1.2.3.4:5 - "POST /v1/completions HTTP/1.1" 200 OK\n', f"{symptom}\n"])

    found = explain([out, Log("server.err", [f"{cause}\n"])])

    assert (found.cause, found.stage, found.file) == (Cause.OOM_UNDER_LOAD, "under-load", "server.err")


def test_a_symptom_that_comes_first_does_not_hide_a_cause_that_comes_later() -> None:
    found = of(
        "[rank1]:[E1 x.cpp:6] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=90, OpType=X)",
        "[rank0]: RuntimeError: CUDA error: an illegal memory access was encountered",
    )

    assert found.cause is Cause.ILLEGAL_ACCESS


def test_a_warning_is_no_cause_even_where_it_has_the_words_of_one() -> None:
    found = of("WARNING 01-01 00:00:00 [x.py:1] FlashInfer is not installed, please install it. Falling back.")

    assert found.cause is Cause.UNKNOWN


def test_a_message_in_the_source_line_of_a_cut_traceback_is_inferred() -> None:
    found = of(
        '  File "/site/vllm/v1/core/kv_cache_utils.py", line 9, in check_enough_kv_cache_memory',
        '    raise ValueError("No available memory for the cache blocks. "',
    )

    assert (found.cause, found.certainty) == (Cause.KV_CACHE_TOO_SMALL, "inferred")


@pytest.mark.parametrize(
    ("exit_code", "cause"),
    [
        (137, "killed"),
        (-9, "killed"),
        (143, "killed"),
        (139, "crashed"),
        (-11, "crashed"),
        (132, "illegal-instruction"),
    ],
)
def test_the_exit_status_decides_where_the_log_is_silent(exit_code: int, cause: str) -> None:
    found = of("INFO:     Application startup complete.", exit_code=exit_code)

    assert (found.cause, found.certainty) == (cause, "inferred")


@pytest.mark.parametrize("exit_code", [None, 0, 1, 2, 255, 193])
def test_other_exit_codes_explain_nothing_by_themselves(exit_code: int | None) -> None:
    found = of("hello", exit_code=exit_code)

    assert found.cause in {Cause.UNKNOWN, Cause.CRASHED}
    assert found.is_explained == (exit_code in {255, 193})


def test_a_stated_cause_outranks_the_exit_status() -> None:
    assert of("OSError: [Errno 98] Address already in use", exit_code=137).cause is Cause.PORT_IN_USE


def test_an_exception_that_no_rule_knows_is_quoted_and_not_explained() -> None:
    found = of(
        "Traceback (most recent call last):", '  File "a.py", line 1, in f', "    g()", "OtterError: it went away"
    )

    assert (found.cause, found.quote) == (Cause.UNKNOWN, "OtterError: it went away")


def test_comments_in_a_log_are_not_the_engines_words() -> None:
    assert of("# CUDA out of memory, says my colleague", "# root-cause: port in use").cause is Cause.UNKNOWN


def test_an_empty_log_is_unknown() -> None:
    found = explain([Log("empty", [])])

    assert (found.cause, found.stage, found.quote, found.num_lines) == (Cause.UNKNOWN, "unknown", None, 0)


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[31mRuntimeError: CUDA error: an illegal memory access was encountered\x1b[0m",
        "#033[1;31mRuntimeError: CUDA error: #033[0man illegal memory access was encountered#015",
        "^[[31mRuntimeError: CUDA error: an illegal memory access was encountered^[[0m",
    ],
)
def test_colours_do_not_reach_the_quote(line: str) -> None:
    assert of(line).quote == "RuntimeError: CUDA error: an illegal memory access was encountered"


def test_what_follows_a_progress_bar_on_its_line_is_read() -> None:
    found = of("Loading:  10%|#  | 1/9\rLoading:  20%|## | 2/9\rOSError: [Errno 28] No space left on device")

    assert found.cause is Cause.DISK_FULL


def test_the_first_collective_that_times_out_is_the_warm_up() -> None:
    line = (
        "[rank0]:[E1001 1.cpp:6] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType=A)"
    )

    assert (of(line.format(1)).stage, of(line.format(5730)).stage) == ("warm-up", "under-load")


def test_what_is_kept_does_not_grow_with_the_log() -> None:
    scan = Scan()
    frame, source = '  File "a.py", line {}, in otter', "    otter()"
    lines = (
        text for n in range(5000) for text in (frame.format(n), source, f"RuntimeError: CUDA error: out of memory {n}")
    )

    scan.read(0, "server.log", lines)

    assert scan.num_lines == 15_000
    assert len(scan.found) <= MOST_OF_A_RULE
    assert all(len(each.around) <= 2 * NUM_AROUND + 1 for each in scan.found)


def test_the_functions_of_a_coloured_traceback_tell_the_stage() -> None:
    found = of(
        "Traceback (most recent call last):",
        '  File \x1b[35m"/site/sglang/cuda_graph_runner.py"\x1b[0m, line \x1b[35m7\x1b[0m, in \x1b[35mcapture\x1b[0m',
        "    run()",
        "\x1b[1;35mtorch.AcceleratorError\x1b[0m: \x1b[35mCUDA error: out of memory\x1b[0m",
    )

    assert (found.stage, found.cause) == ("graph-capture", Cause.OOM_AT_CAPTURE)


def test_an_assertion_without_words_means_what_its_source_line_asserts() -> None:
    frame = '  File "/site/vllm/layers/linear.py", line 7, in {}'

    of_an_operand = of(frame.format("forward"), "    assert a.shape == b.shape", "AssertionError")
    of_a_weight = of(
        frame.format("weight_loader"), "    assert param_data.shape == loaded_weight.shape", "AssertionError"
    )

    assert (of_an_operand.cause, of_a_weight.cause) == (Cause.INCOMPATIBLE, Cause.WEIGHT_SHAPE)


@pytest.mark.parametrize(
    ("file", "cause"),
    [
        ("vllm/config/otter.py", Cause.INCOMPATIBLE),
        ("vllm/v1/core/otter_pool.py", Cause.ENGINE_ASSERTION),
        ("otterlib/ponds.py", Cause.UNKNOWN),
    ],
)
def test_who_raises_an_exception_tells_where_its_words_do_not(file: str, cause: Cause) -> None:
    found = of(
        f'  File "/site/{file}", line 7, in check', "    raise ValueError(", "ValueError: otters and badgers met"
    )

    assert (found.cause, found.certainty) == (cause, "none" if cause is Cause.UNKNOWN else "inferred")


def test_a_request_id_that_is_no_key_any_more_is_no_cause() -> None:
    assert of("(EngineCore pid=7) ERROR 07-16 19:47:26 [core.py:7] KeyError: 'cmpl-7f-0-0'").cause is Cause.UNKNOWN


def test_a_core_process_that_a_signal_ended_tells_how() -> None:
    line = "RuntimeError: Engine core initialization failed. Failed core proc(s): {{'EngineCore_0': -{}}}"

    assert (of(line.format(9)).cause, of(line.format(11)).cause) == (Cause.HOST_OOM, Cause.CRASHED)
    assert of(line.format(3)).cause is Cause.UNKNOWN


@pytest.mark.parametrize(
    "line",
    [
        "[2026-01-01 10:00:00] server_args=ServerArgs(model_path='/m/otter', skip_tokenizer_init=False, port=30000)",
        "[2026-01-01 10:00:00] Ignore import error when loading otter.py: No module named 'otterlib'",
        "[2026-01-01 10:00:00 TP0] Otter prefill needs SM100; falling back to Triton.",
        "[2026-01-01 10:00:00 TP0] Pipeline parallelism is incompatible with overlap schedule.",
    ],
)
def test_what_a_server_gave_up_and_went_on_without_is_no_cause(line: str) -> None:
    died = (
        "[2026-01-01 10:00:09 TP0] Health check failed. Server couldn't get a response from detokenizer for 20 seconds."
    )

    assert of(line).cause is Cause.UNKNOWN
    assert of(line, died).cause is Cause.HANG


def test_an_option_that_the_engine_ignored_is_a_note_and_no_cause() -> None:
    found = of("warning: no usable GPU found, --gpu-layers option will be ignored", *SERVED, *STOPPED)

    assert found.cause is Cause.NONE
    assert found.notes == [
        "asked for, and not in force: warning: no usable GPU found, --gpu-layers option will be ignored"
    ]
