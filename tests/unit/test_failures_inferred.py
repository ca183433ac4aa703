"""What an exception means that no rule knows: class, place and words weighed; unknown where they do not tell."""

from __future__ import annotations

import pytest

from assay.failures import Log, explain
from assay.failures.infer import ELSEWHERE, load_inference
from assay.records.failure import Cause, Explanation

VLLM = "/site/vllm/"
PLACES = {
    "compiler": ("/site/torch/_inductor/graph.py", "compile"),
    "tracer": ("/site/torch/_dynamo/variables/otter.py", "call_function"),
    "packages": ("/site/transformers/utils/import_utils.py", "__init__"),
    "tokenizer": ("/site/sentencepiece/__init__.py", "LoadFromFile"),
    "request": (f"{VLLM}sampling_params.py", "_verify_args"),
    "multimodal": (f"{VLLM}model_executor/models/otter.py", "_split_pixel_values"),
    "hand-over": ("/usr/lib/python3.12/multiprocessing/connection.py", "_recv"),
    "processor": ("/site/transformers/models/otter/image_processing_otter.py", "__init__"),
    "registry": ("/site/transformers/models/auto/configuration_auto.py", "__getitem__"),
    "grammar": ("/site/xgrammar/compiler.py", "compile"),
    "model-config": ("/site/transformers/models/otter/configuration_otter.py", "__init__"),
    "driver": ("/site/pynvml.py", "nvmlDeviceGetOtter"),
    "response": ("/site/starlette/responses.py", "render"),
    "foreign-model": (f"{VLLM}model_executor/models/transformers.py", "init_otters"),
    "hub": ("/site/huggingface_hub/file_download.py", "hf_hub_download"),
    "files-of-weights": ("/site/safetensors/torch.py", "load"),
    "weights": (f"{VLLM}model_executor/models/otter.py", "load_weights"),
    "adapter": (f"{VLLM}lora/lora_model.py", "check"),
    "quantization": (f"{VLLM}model_executor/layers/quantization/otter.py", "create"),
    "collectives": (f"{VLLM}distributed/device_communicators/otter.py", "reduce"),
    "cache-transfer": (f"{VLLM}distributed/kv_transfer/otter.py", "send"),
    "ray": ("/site/ray/_private/worker.py", "get"),
    "kernel": ("/site/sgl_kernel/gemm.py", "run"),
    "operation": (f"{VLLM}v1/attention/backends/otter.py", "forward"),
    "engine-core": (f"{VLLM}v1/core/otter_pool.py", "take"),
    "configuration": (f"{VLLM}config/otter.py", "check"),
    "speculation": (f"{VLLM}v1/spec_decode/otter.py", "propose"),
    "model": (f"{VLLM}model_executor/models/otter.py", "__init__"),
    "layer": (f"{VLLM}model_executor/layers/otter.py", "forward"),
    "passes": (f"{VLLM}compilation/passes/otter_pass.py", "match"),
    "platform": (f"{VLLM}platforms/interface.py", "get_device_capability"),
    "graphs": (f"{VLLM}compilation/cuda_graph.py", "replay"),
    "worker": (f"{VLLM}v1/worker/otter.py", "step"),
    "serving": (f"{VLLM}entrypoints/openai/serving_otter.py", "create"),
}


def of(*lines: str) -> Explanation:
    return explain([Log("server.log", lines)])


def raised(place: str, message: str) -> Explanation:
    path, function = PLACES[place]
    return of(
        "Traceback (most recent call last):", f'  File "{path}", line 7, in {function}', "    raise otter", message
    )


def test_every_place_is_told_by_a_function_of_its_own() -> None:
    inference = load_inference()

    def named(path: str, function: str) -> str:
        return next(each.name for each in inference.places if each.pattern.search(f'{path}", in {function}'))

    assert {name: named(*where) for name, where in PLACES.items()} == {name: name for name in PLACES}
    assert {each.name for each in inference.places} == set(PLACES)


def test_evidence_asks_only_for_places_that_there_are() -> None:
    inference = load_inference()

    asked = {name for each in inference.evidence for name in each.at}

    untraced = ""
    assert asked <= {each.name for each in inference.places} | {ELSEWHERE, untraced}
    assert all(each.votes for each in inference.evidence)


@pytest.mark.parametrize(
    ("place", "message", "cause"),
    [
        ("compiler", "RuntimeError: 7 otters for one pond", Cause.JIT_COMPILE),
        ("packages", "ValueError: Offending backend: otterlib", Cause.MISSING_DEPENDENCY),
        ("tokenizer", "TypeError: not a string", Cause.TOKENIZER),
        ("registry", "KeyError: 'otter9'", Cause.UNSUPPORTED_MODEL),
        ("weights", "ValueError: no corresponding otters of layer 7", Cause.MISSING_WEIGHTS),
        ("weights", "ValueError: otters of size 7 for a dim of 9", Cause.WEIGHT_SHAPE),
        ("quantization", "ValueError: otters of 3 bits", Cause.INCOMPATIBLE),
        ("collectives", "RuntimeError: otters cannot swim", Cause.COMMUNICATION),
        ("cache-transfer", "RuntimeError: BAD_STATUS", Cause.COMMUNICATION),
        ("kernel", "RuntimeError: otters", Cause.KERNEL_ASSERTION),
        ("operation", "RuntimeError: otters have the wrong dtype", Cause.KERNEL_ASSERTION),
        ("engine-core", "RuntimeError: the list of otters ends", Cause.ENGINE_ASSERTION),
        ("configuration", "ValueError: otters and badgers were asked for", Cause.INCOMPATIBLE),
        ("configuration", "ValueError: Invalid otter: 7", Cause.BAD_VALUE),
        ("configuration", "ValueError: 9 otters are fewer than 12", Cause.BAD_VALUE),
        ("request", "ValueError: otters in the prompt", Cause.REQUESTS_REFUSED),
        ("processor", "ValueError: size must contain fur", Cause.INCOMPATIBLE),
        ("hub", "HfHubHTTPError: 504 for the otters", Cause.MODEL_NOT_FOUND),
        ("files-of-weights", "UnicodeDecodeError: otters", Cause.MODEL_CORRUPT),
        ("model-config", "json.decoder.JSONDecodeError: otters", Cause.MODEL_CORRUPT),
        ("configuration", "json.decoder.JSONDecodeError: otters", Cause.BAD_VALUE),
        ("worker", "RuntimeError: the otters have not been initialized", Cause.ENGINE_ASSERTION),
        ("worker", "RuntimeError: out of blocks for 7 otters", Cause.KV_CACHE_TOO_SMALL),
        ("worker", "RuntimeError: please rebuild the otters with ponds", Cause.MISSING_DEPENDENCY),
        ("adapter", "ValueError: otters do not contain tensors", Cause.MISSING_WEIGHTS),
        ("speculation", "ValueError: otters drafted", Cause.INCOMPATIBLE),
        ("serving", "RuntimeError: otters were never counted", Cause.ENGINE_ASSERTION),
        ("multimodal", "ValueError: otters expected of shape 7", Cause.ENGINE_ASSERTION),
        ("passes", "AssertionError: otters were not removed", Cause.JIT_COMPILE),
        ("tracer", "AssertionError: expected an otter", Cause.GRAPH_BREAK),
        ("platform", "NotImplementedError", Cause.DRIVER_MISMATCH),
        ("request", "ValueError: otters should be a list", Cause.REQUESTS_REFUSED),
        ("worker", "TypeError: cannot pickle 'otter' object", Cause.ENGINE_ASSERTION),
        ("worker", "ValueError: Audio of the otter is too short", Cause.REQUESTS_REFUSED),
        ("driver", "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xf8: invalid otter", Cause.DRIVER_MISMATCH),
        ("response", "ValueError: Out of range float values are not JSON compliant", Cause.ENGINE_ASSERTION),
        ("foreign-model", "TypeError: Otter.__init__() missing 1 required argument: 'fur'", Cause.UNSUPPORTED_MODEL),
        ("serving", "AssertionError: res=<Response [502]>, res.text='otters'", Cause.COMMUNICATION),
        (
            "worker",
            "RuntimeError: Otters are too many. Please increase --mem-fraction-static",
            Cause.KV_CACHE_TOO_SMALL,
        ),
    ],
)
def test_class_place_and_words_together_name_the_cause(place: str, message: str, cause: Cause) -> None:
    found = raised(place, message)

    assert (found.cause, found.certainty) == (cause, "inferred")
    assert found.quote == message


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("worker", "RuntimeError: otters and badgers met"),
        ("graphs", "ValueError: otters"),
        ("grammar", "RuntimeError: otters"),
        ("ray", "ValueError: otters"),
        ("hand-over", "EOFError"),
        ("serving", "zmq.error.ZMQError: Operation not supported"),
        ("configuration", "EOFError"),
    ],
)
def test_evidence_that_is_thin_names_nothing(place: str, message: str) -> None:
    found = raised(place, message)

    assert (found.cause, found.certainty) == (Cause.UNKNOWN, "none")
    assert found.quote == message


def test_evidence_that_contradicts_itself_names_nothing() -> None:
    of_both = raised("layer", "ValueError: the otters have not been initialized, install ponds")

    assert of_both.cause is Cause.UNKNOWN


def test_of_causes_with_as_many_votes_the_words_name_one() -> None:
    words_of_a_value = raised("configuration", "AssertionError: the pond must be a string")

    assert words_of_a_value.cause is Cause.BAD_VALUE
    assert raised("configuration", "AssertionError: the pond").cause is Cause.INCOMPATIBLE


def test_the_place_nearest_to_the_raise_decides_and_libraries_that_tell_nothing_are_passed_over() -> None:
    found = of(
        "Traceback (most recent call last):",
        '  File "/site/vllm/v1/core/otter_pool.py", line 7, in step',
        '  File "/site/vllm/distributed/device_communicators/otter.py", line 7, in send',
        '  File "/usr/lib/python3.12/contextlib.py", line 7, in __exit__',
        "RuntimeError: otters cannot swim",
    )

    assert found.cause is Cause.COMMUNICATION


def test_what_only_says_that_something_failed_is_not_taken_for_who_raises_it() -> None:
    found = raised("engine-core", "RuntimeError: Engine core initialization failed. See root cause above.")

    assert found.cause is Cause.UNKNOWN


def test_what_is_inferred_says_on_what_and_implies_nothing_for_other_arms() -> None:
    found = raised("engine-core", "RuntimeError: the list of otters ends")

    assert "the list of otters ends" in found.remedy
    assert found.implies == []


def test_a_warning_with_an_exception_is_no_cause() -> None:
    assert of("WARNING 01-01 10:00:00 [otter.py:7] AssertionError: otters").cause is Cause.UNKNOWN


def test_an_exception_that_python_ignored_is_no_cause_and_the_next_one_is() -> None:
    path, function = PLACES["engine-core"]
    ignored = (
        "Exception ignored in: <function Otter.__del__ at 0x7f00>",
        "Traceback (most recent call last):",
        f'  File "{path}", line 7, in {function}',
        "TypeError: 'NoneType' object is not callable",
    )

    assert of(*ignored).cause is Cause.UNKNOWN
    assert of(*ignored, *ignored[1:3], "RuntimeError: the list of otters ends").cause is Cause.ENGINE_ASSERTION


def test_a_peer_that_went_away_counts_less_than_what_ended_it() -> None:
    lost = "ConnectionResetError: Connection lost"
    cause = '  File "/site/vllm/v1/core/otter_pool.py", line 7, in take', "RuntimeError: the list of otters ends"

    assert of(lost).cause is Cause.COMMUNICATION
    assert of(lost, "Traceback (most recent call last):", *cause).cause is Cause.ENGINE_ASSERTION


def test_code_outside_of_the_engine_that_misses_a_name_was_written_for_another_version() -> None:
    message = "AttributeError: 'OtterPool' object has no attribute 'swim'"

    from_outside = of('  File "/app/otters/serve.py", line 7, in start', "    otter.swim()", message)

    assert from_outside.cause is Cause.MISSING_DEPENDENCY
    assert of(message).cause is Cause.INCOMPATIBLE


@pytest.mark.parametrize(
    ("place", "cause"),
    [("compiler", Cause.JIT_COMPILE), ("collectives", Cause.COMMUNICATION), ("layer", Cause.UNKNOWN)],
)
def test_a_log_that_ends_in_a_call_is_told_by_what_was_called(place: str, cause: Cause) -> None:
    path, function = PLACES[place]
    cut = ("Traceback (most recent call last):", f'  File "{path}", line 7, in {function}', "    otter.swim(pond)")

    assert of(*cut).cause is cause
    assert of(*cut, "    ^^^^^^^^^^^^^^^^").cause is cause
    assert of(*cut, "INFO 01-01 10:00:00 [otter.py:7] swims on").cause is Cause.UNKNOWN


def test_the_words_of_a_raise_tell_where_the_log_ends_before_the_exception() -> None:
    path, function = PLACES["configuration"]

    found = of(
        "Traceback (most recent call last):",
        f'  File "{path}", line 7, in {function}',
        '    raise ValueError("otters must be less than ponds, got "',
    )

    assert (found.cause, found.certainty) == (Cause.BAD_VALUE, "inferred")


def test_while_a_models_class_is_built_the_stage_is_load_and_memory_runs_out_for_the_weights() -> None:
    building = (
        "Traceback (most recent call last):",
        '  File "/site/vllm/model_executor/model_loader/base_loader.py", line 7, in load_model',
        '  File "/site/vllm/model_executor/model_loader/utils.py", line 7, in initialize_model',
        '  File "/site/vllm/model_executor/models/otter.py", line 7, in __init__',
    )

    refused = of(*building, "ValueError: otters of 7 heads are not supported with tensor parallelism")
    full = of(*building, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.00 GiB.")

    assert (refused.stage, full.stage) == ("load", "weights")
    assert full.cause is Cause.OOM_AT_LOAD


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("ValueError: no VRAM left for the kv_cache", Cause.KV_CACHE_TOO_SMALL),
        ("RuntimeError: the KV cache has too little memory at this length", Cause.KV_CACHE_TOO_SMALL),
        ("RuntimeError: no GPUs were found", Cause.DRIVER_MISMATCH),
        ("ValueError: kv_cache_memory_bytes and gpu_memory_utilization cannot both be set", Cause.UNKNOWN),
    ],
)
def test_what_is_left_for_the_cache_outranks_the_words_around_it(message: str, cause: Cause) -> None:
    assert of(message).cause == cause


@pytest.mark.parametrize("stop", ["KeyboardInterrupt: ", "OtterError: gone"])
def test_a_traceback_that_python_passes_over_replaces_none(stop: str) -> None:
    found = of(
        "^CTraceback (most recent call last):",
        f'  File "{VLLM}engine/llm_engine.py", line 7, in from_engine_args',
        "    return cls(otter)",
        "KeyboardInterrupt: ",
        "^CException ignored in atexit callback: <function otter>",
        "Traceback (most recent call last):",
        f'  File "{VLLM}v1/worker/gpu_worker.py", line 7, in execute_model',
        "    p.join()",
        stop,
        "IndexError: list index out of range",
    )

    assert (found.stage, found.cause) == ("load", Cause.ENGINE_ASSERTION)


def test_a_call_that_is_named_keeps_its_words() -> None:
    found = of("TypeError: ModelConfig() got an unexpected keyword argument 'otter'")

    assert found.cause is not Cause.UNKNOWN
    assert "..." not in found.remedy
