"""What comes before, after and around a line, and what states nothing although it has the words."""

from __future__ import annotations

from assay.failures import Log, explain
from assay.records.failure import Cause, Explanation


def told(text: str) -> Explanation:
    return explain([Log("server.log", text.strip("\n").splitlines())])


def test_a_server_that_listens_before_it_loads_its_model_is_not_ready() -> None:
    found = told(
        "main: HTTP server is listening, hostname: 127.0.0.1, port: 8080\n"
        "main: loading model\n"
        "load_tensors: loading model tensors, this can take a while...\n"
        "alloc_buffer: allocating 9000.00 MiB on device 0: cudaMalloc failed: out of memory\n"
    )

    assert (found.stage, found.cause) == ("weights", Cause.OOM_AT_LOAD)


def test_a_poll_that_is_answered_503_is_no_milestone() -> None:
    found = told(
        "load_tensors: loading model tensors\n"
        "srv  log_server_r: request: GET /health 127.0.0.1 503\n"
        "alloc_buffer: allocating 9000.00 MiB on device 0: cudaMalloc failed: out of memory\n"
    )

    assert (found.stage, found.cause) == ("weights", Cause.OOM_AT_LOAD)


def test_what_callers_add_after_a_native_complaint_tells_its_stage() -> None:
    found = told(
        "load_tensors: offloaded 33/33 layers to GPU\n"
        "alloc_buffer: allocating 4480.00 MiB on device 0: cudaMalloc failed: out of memory\n"
        "alloc_tensor_range: failed to allocate CUDA0 buffer of size 4697620480\n"
        "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache\n"
    )

    assert found.stage == "kv-cache"


def test_the_stack_of_a_signal_places_it_and_other_threads_do_not() -> None:
    found = told(
        "Fatal Python error: Segmentation fault\n"
        "\n"
        "Thread 0x00007f0000000001 (most recent call first):\n"
        '  File "/site/vllm/v1/engine/core.py", line 10 in process_input_queue\n'
        "\n"
        "Current thread 0x00007f0000000002 (most recent call first):\n"
        '  File "/site/vllm/distributed/pynccl.py", line 126 in all_reduce\n'
        '  File "/site/vllm/v1/worker/gpu_model_runner.py", line 1900 in capture_model\n'
    )

    assert (found.stage, found.cause) == ("graph-capture", Cause.CRASHED)


def test_the_traceback_after_a_message_places_it() -> None:
    found = told(
        "Loading weights took 3 seconds\n"
        "WARNING 01-01 10:00:00 [runner.py:1] inputs lost: CUDA error: an illegal memory access was encountered\n"
        "ERROR 01-01 10:00:01 [engine.py:1] Traceback (most recent call last):\n"
        'ERROR 01-01 10:00:01 [engine.py:1]   File "/site/vllm/v1/worker/gpu_worker.py", line 1, in profile_run\n'
        "ERROR 01-01 10:00:01 [engine.py:1] RuntimeError: otters\n"
    )

    assert (found.stage, found.cause) == ("warm-up", Cause.ILLEGAL_ACCESS)


def test_a_parents_traceback_does_not_place_what_became_of_its_child() -> None:
    found = told(
        "[01-01 10:00:00] Exit code: -9\n"
        "Traceback (most recent call last):\n"
        '  File "/bin/sglang", line 10, in <module>\n'
        "EOFError\n"
    )

    assert found.stage != "arguments"


def test_a_process_that_is_killed_after_an_exception_was_ended_for_it() -> None:
    found = told("ValueError: too many values to unpack (expected 12)\nINFO: shutting down\nKilled\n")

    assert found.cause == Cause.ENGINE_ASSERTION
    assert told("INFO: loading\nKilled\n").cause == Cause.HOST_OOM


def test_the_names_of_functions_on_a_native_stack_state_nothing() -> None:
    found = told(
        "#1  0x0000754c8ea3b5e2 in ggml_abort () from /opt/libggml.so: GGML_ABORT\n"
        "3  /opt/nixl.libs/libucs.so.0.0.0(nixl_failed_error+0x2ac) [0x7f32f5fad000]\n"
    )

    assert found.cause == Cause.UNKNOWN


def test_a_configuration_that_a_terminal_broke_into_lines_is_no_evidence() -> None:
    found = told(
        "ot/otter', tokenizer_mode='auto', tokenizer_missing=False, load_format='tokenizer error', device='cuda',\n"
    )

    assert found.cause == Cause.UNKNOWN


def test_an_import_that_is_skipped_was_survived() -> None:
    found = told("Skipping import of cpp extensions: /site/torchao/_C.abi3.so: undefined symbol: _ZN3c10\n")

    assert found.cause == Cause.UNKNOWN


def test_who_relays_a_line_does_not_judge_it() -> None:
    relayed = "2026-01-01 10:00:00,000 - INFO - vLLM: ERROR 01-01 10:00:00 engine.py:1] Engine iteration timed out.\n"

    assert told(relayed).cause == Cause.HANG


def test_an_exception_logged_by_its_representation_is_an_exception() -> None:
    found = told("ERROR 01-01 10:00:00 engine.py:1] IndexError('tuple index out of range')\n")

    assert found.cause == Cause.ENGINE_ASSERTION


def test_the_listing_of_a_notebook_around_a_call_is_no_evidence() -> None:
    found = told(
        "ValueError                                Traceback (most recent call last)\n"
        "File /site/vllm/entrypoints/llm.py:230, in LLM.__init__(self, model, tokenizer, skip_tokenizer_init)\n"
        "    229 raise OSError('No space left on device')\n"
        "--> 230 self.engine = start()\n"
        "File /site/vllm/model_executor/models/otter.py:7, in Otter.load_weights(self, weights)\n"
        "ValueError: otters\n"
    )

    assert (found.stage, found.cause) == ("weights", Cause.UNKNOWN)
    assert found.quote == "ValueError: otters"


def test_an_exception_that_is_raised_again_is_placed_by_its_callers() -> None:
    raised = (
        "Traceback (most recent call last):\n"
        '  File "/site/vllm/worker/model_runner.py", line 7, in execute_model\n'
        "    swim()\n"
        "IndexError: list index out of range\n"
    )
    again = (
        "\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/site/vllm/worker/worker.py", line 7, in determine_num_available_blocks\n'
        "    self.model_runner.profile_run()\n"
        "IndexError: list index out of range\n"
    )

    assert told(raised).stage == "under-load"
    assert told(raised + again).stage == "warm-up"


def test_what_a_terminal_drew_around_a_message_is_no_part_of_it() -> None:
    found = told("│ ModuleNotFoundError: No module named 'otterattention'      │\n")

    assert found.cause == Cause.MISSING_DEPENDENCY


def test_an_exception_that_python_ignored_counts_only_where_a_kernel_had_failed_before() -> None:
    def left(message: str) -> Explanation:
        return told(
            "Exception ignored in: <function Otter.__del__ at 0x7f00>\n"
            "Traceback (most recent call last):\n"
            '  File "/site/vllm/otter.py", line 7, in __del__\n'
            f"RuntimeError: {message}\n"
        )

    assert left("CUDA error: an illegal memory access was encountered").cause is Cause.ILLEGAL_ACCESS
    assert left("CUDA error: invalid argument").cause is Cause.UNKNOWN


def test_what_a_worker_said_is_weighed_as_its_own_words() -> None:
    relayed = "RuntimeError: Worker failed with error '{}', please check the stack trace above for the root cause"

    assert told(relayed.format("IndexError: otter out of its pond")).cause is Cause.ENGINE_ASSERTION
    assert told(relayed.format("otter")).cause is Cause.UNKNOWN
