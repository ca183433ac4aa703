"""One live vLLM server that we started.

Its API server, EngineCore and workers are processes of one session; kill -9 on the first leaves the others, SIGTERM is
ignored while it starts. `stop` ends all of them and returns when they are gone, and with them their GPU memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.engines import told
from assay.engines.http_client import NOT_SERVED
from assay.engines.launch_prefix_server import PrefixedServer
from assay.engines.vllm_log import MOE_PLUGIN, facts, fallbacks, moe_plugin
from assay.errors import MeasurementError

MODEL_NAME = "model"
KEPT = (
    "model_config", "cache_config", "parallel_config", "scheduler_config", "compilation_config", "attention_config",
    "kernel_config", "offload_config", "speculative_config", "quant_config", "lora_config", "kv_transfer_config",
)  # fmt: skip
"""Sections of the configuration that say something of speed."""
PLACES = frozenset(
    {"model_config.model", "model_config.tokenizer", "model_config.hf_token", "instance_id", "args.model",
     "args.model_tag", "args.host", "args.port", "args.served_model_name"}
)  # fmt: skip
"""What differs from run to run, or is nobody's business."""
REPEATED = ("target_model_config.", "target_parallel_config.", "draft_parallel_config.")
"""What a speculative configuration says of the target once more."""
OFF = frozenset({"model_config.quantization"})
"""Whose null says that something is off, and not that the engine chooses: told as `none`."""
ADDRESS = re.compile(r" object at 0x[0-9a-f]+")
"""Where an object lies in memory, in what stands for it: otherwise in every run."""
PROFILE_TIMEOUT_S = 600.0
"""Writing a trace of many steps takes minutes."""


class VllmServer(PrefixedServer):
    """Implements `assay.ports.Server`; what goes beyond it needs development endpoints or a profiler configuration."""

    engine = "vllm"
    model_name = MODEL_NAME
    extra_body: Mapping[str, bool | int | float | str] = {"return_token_ids": True}
    """What is no text (a forced length goes on beyond the end-of-text token) is content all the same."""
    poll_s = 0.25
    fatal = re.compile(
        r"^vllm(?: serve)?: error: |EngineCore failed to start|Engine core initialization failed|"
        r"WorkerProc (?:initialization failed|failed to start)"
    )
    lost = re.compile(r"EngineCore encountered a fatal error|EngineDeadError|AsyncLLM output_handler failed")

    ready = re.compile(r"Application startup complete")

    def __init__(
        self, argv: list[str], env: dict[str, str], log: Path, log_name: str, port: int, *, without: str | None = None
    ) -> None:
        """Start it; does not wait. Arguments: `PrefixedServer`."""
        self._plugins = [name.strip() for name in env.get("VLLM_PLUGINS", "").split(",")]
        super().__init__(argv, env, log, log_name, port, without=without)

    def effective(self) -> dict[str, Any]:
        """`/server_info` (with VLLM_SERVER_DEV_MODE), else the log's configuration; `/version`; facts of the log.

        Keys: `cache_config.block_size` as `/server_info` has them, `engine.` from the log, `args.` what was not
        default, `cache_info.` from the metric `vllm:cache_config_info`, `log.`.
        """
        info = self.http.get("/server_info?config_format=json", absent={}).get("vllm_config", {})
        reported = kept(told.flatten(info))
        text = self.log.text()
        said = {key: value for key, value in facts(text).items() if key not in PLACES}
        said |= moe_plugin(text, asked=MOE_PLUGIN in self._plugins)
        if reported:
            said = {key: value for key, value in said.items() if not key.startswith("engine.")}
        else:
            labels = told.labels(self.http.text("/metrics"), "vllm:cache_config_info")
            said |= {f"cache_info.{key}": value for key, value in labels.items() if value != "None"}
        return {"version": self.http.get("/version", absent={}).get("version"), **reported, **said}

    def fallbacks(self) -> list[str]:
        """Lines of the log in which the engine says that it does something else than asked."""
        return fallbacks(self.log.text())

    def reset_prefix_cache(self) -> bool:
        """Forget what earlier prompts left; False where this server cannot be told to (no development endpoints).

        Raises:
            MeasurementError: it refuses, because requests are running.
        """
        status, content = self.http.exchange("POST", "/reset_prefix_cache", None)
        if status in NOT_SERVED:
            return False
        if status >= 400 or b"false" in content:  # noqa: PLR2004 - HTTP's errors
            raise MeasurementError(
                f"POST /reset_prefix_cache: HTTP {status}: {content[:300]!r}", hint="wait until no request is running"
            )
        return True

    def start_profile(self) -> bool:
        """Begin a trace; False where the server was not started with --profiler-config."""
        return self.http.act("/start_profile", timeout_s=PROFILE_TIMEOUT_S)

    def stop_profile(self) -> bool:
        """End the trace and wait until it is written; False where there is no profiler."""
        return self.http.act("/stop_profile", timeout_s=PROFILE_TIMEOUT_S)


def kept(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Of a flat configuration what says something of speed, and nothing that is otherwise in every run."""
    whole = {key: "none" if value is None and key in OFF else value for key, value in configuration.items()}
    found = {key: value for key, value in whole.items() if _is_kept(key, value)}
    return {key: ADDRESS.sub("", value) if isinstance(value, str) else value for key, value in found.items()}


def _is_kept(key: str, value: Any) -> bool:
    section, _, name = key.partition(".")
    if value is None or value in ("", [], {}) or key in PLACES or name.startswith(REPEATED):
        return False
    return not name.startswith("_") and (section in KEPT or not name)
