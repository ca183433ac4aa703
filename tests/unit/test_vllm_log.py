"""vLLM's log: facts, the configuration it began with, and where the engine changes its mind."""

from __future__ import annotations

from assay.engines.vllm_log import facts, fallbacks, moe_plugin

STAMP = "(EngineCore pid=7) {level} 11-30 14:18:25 [file.py:12] {body}"


def line(body: str, level: str = "INFO") -> str:
    return STAMP.format(level=level, body=body)


def test_arguments_configuration_and_facts_are_read() -> None:
    text = "\n".join(
        [
            line("non-default args: {'model_tag': '/m', 'port': 81, 'enforce_eager': True}"),
            line("Initializing a V1 LLM engine (v0.32.0) with config: model='/m', dtype=torch.bfloat16, seed=0, "
                 "compilation_config={'mode': <CompilationMode.NONE: 0>, 'pass_config': {'fuse_norm_quant': True}}"),
            line("Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'TRITON_ATTN']."),
            line("Using TRITON Unquantized MoE backend out of potential backends: ['TRITON']."),
            line("GPU KV cache size: 6,849,648 tokens"),
            line("Maximum concurrency for 8,192 tokens per request: 836.14x"),
            line("Model loading took 3.85 GiB memory and 0.448511 seconds"),
        ]
    )  # fmt: skip
    found = facts(text)
    assert found["args.enforce_eager"] is True
    assert (found["engine.dtype"], found["engine.compilation_config.mode"]) == ("torch.bfloat16", "NONE")
    assert found["engine.compilation_config.pass_config.fuse_norm_quant"] is True
    assert (found["log.attention_backend"], found["log.moe_backend"]) == ("FLASH_ATTN", "TRITON")
    assert (found["log.kv_cache_tokens"], found["log.kv_cache_requests"]) == (6849648, 836.14)
    assert found["log.weights_gib"] == 3.85


def test_the_line_of_an_old_version_without_a_process_is_read() -> None:
    text = "INFO 05-02 10:00:00 [cuda.py:1] Using Flash Attention backend on V1 engine."
    assert facts(text)["log.attention_backend"] == "Flash Attention"


def test_second_thoughts_are_told_once_and_chatter_is_not() -> None:
    text = "\n".join(
        [
            line("Async scheduling is not supported with pipeline parallelism and will be disabled.", "WARNING"),
            line("Async scheduling is not supported with pipeline parallelism and will be disabled.", "WARNING"),
            line("FlashInfer is not available. Falling back to the PyTorch-native implementation.", "INFO"),
            line("Cannot use AttentionBackendEnum.FLASHINFER backend on CPU.", "INFO"),
            line("Loading weights took 0.04 seconds", "INFO"),
            line("Found ulimit of 20000 and failed to automatically increase: ignored", "WARNING"),
            line("SECURITY WARNING: Development endpoints are enabled! This should NOT be used", "WARNING"),
            "a line without a stamp is falling back on nothing",
        ]
    )
    assert fallbacks(text) == [
        "Async scheduling is not supported with pipeline parallelism and will be disabled.",
        "FlashInfer is not available. Falling back to the PyTorch-native implementation.",
        "Cannot use AttentionBackendEnum.FLASHINFER backend on CPU.",
    ]


ACTIVE = line("assay_moe: active for E=256 N=256 K=6144 bfloat16, tiles from /t.json; every batch runs this kernel")
FELL_BACK = line("assay_moe: falling back to vLLM's TritonExperts: activation gelu is not silu", "WARNING")
NOT_IN_FORCE = line("assay_moe: not in force: vLLM chose FlashInferExperts; `--moe-backend triton` lets it", "WARNING")
REGISTERED = line("assay_moe: registered")


def test_assays_expert_kernel_is_proved_by_its_own_word_and_one_layer_without_it_is_too_many() -> None:
    def state(*lines: str) -> str:
        return moe_plugin("\n".join(lines), asked=True)["log.assay_moe"]

    assert state(REGISTERED, ACTIVE) == "active"
    assert state(REGISTERED, FELL_BACK, ACTIVE) == "falling back"
    assert state(REGISTERED, ACTIVE, NOT_IN_FORCE) == "not in force"


def test_an_expert_kernel_that_was_asked_for_and_never_saw_a_layer_is_not_active() -> None:
    assert moe_plugin(REGISTERED, asked=True) == {"log.assay_moe": "registered"}
    assert moe_plugin(line("loading"), asked=True) == {"log.assay_moe": "silent"}
    assert moe_plugin(line("loading"), asked=False) == {}


def test_advice_to_raise_a_limit_is_no_second_thought_about_what_was_asked() -> None:
    text = (
        "(APIServer pid=7) WARNING 11-30 16:19:31 [vllm.py:2276] max_num_scheduled_tokens is set to 2048 based on the "
        "speculative decoding settings. Consider increasing max_num_batched_tokens, or fewer draft tokens.\n"
        "(APIServer pid=7) WARNING 11-30 16:19:31 [vllm.py:9] Chunked prefill is disabled for this model.\n"
    )
    assert fallbacks(text) == ["Chunked prefill is disabled for this model."]
