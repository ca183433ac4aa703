"""Which inference server answers on a port: each engine has an endpoint that only it has.

Sources: each project's HTTP reference: vLLM `/version`, SGLang `/server_info` (before: `/get_server_info`), llama.cpp
`/props`, text-generation-inference `/info`, Ollama `/api/version`; `/v1/models` of the OpenAI protocol is the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from assay.probes.listening import Listener
from assay.probes.server_ask import Answer, ask
from assay.records.snapshot import Server

BUDGET_S = 1.5
"""For all questions to one server together."""
_BY_OWNER = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp", "library": "ollama", "tensorrt_llm": "trtllm"}
_BY_PROGRAM = {
    "llama-server": "llamacpp",
    "vllm": "vllm",
    "vllm.entrypoints.openai.api_server": "vllm",
    "sglang.launch_server": "sglang",
    "llama_cpp.server": "llamacpp",
    "trtllm-serve": "trtllm",
    "ollama": "ollama",
    "text-generation-launcher": "tgi",
}
Get = Callable[[str], Answer | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one engine is recognized."""

    engine: str
    path: str
    recognizes: Callable[[Mapping[str, Any]], bool]
    version: Callable[[Mapping[str, Any]], Any]
    settings: tuple[str, ...] = ()
    """Keys of its answer that are worth keeping; nothing else is: some answers hold keys of another kind."""


_SGLANG_SETTINGS = ("tp_size", "dp_size", "ep_size", "max_running_requests", "max_total_num_tokens", "quantization",
                    "kv_cache_dtype", "attention_backend", "moe_runner_backend")  # fmt: skip
DIALECTS = (
    Dialect(
        engine="llamacpp",
        path="/props",
        recognizes=lambda said: "default_generation_settings" in said,
        version=lambda said: said.get("build_info"),
        settings=("total_slots",),
    ),
    Dialect(
        engine="sglang",
        path="/server_info",
        recognizes=lambda said: {"model_path", "tp_size"} <= said.keys(),
        version=lambda said: said.get("version"),
        settings=_SGLANG_SETTINGS,
    ),
    Dialect(
        engine="sglang",
        path="/get_server_info",
        recognizes=lambda said: {"model_path", "tp_size"} <= said.keys(),
        version=lambda said: said.get("version"),
        settings=_SGLANG_SETTINGS,
    ),
    Dialect(
        engine="tgi",
        path="/info",
        recognizes=lambda said: {"model_id", "max_concurrent_requests"} <= said.keys(),
        version=lambda said: said.get("version"),
        settings=("max_concurrent_requests", "max_total_tokens", "max_input_tokens"),
    ),
    Dialect(
        engine="ollama",
        path="/api/version",
        recognizes=lambda said: set(said) == {"version"},
        version=lambda said: said["version"],
    ),
)


def identify(listener: Listener, program: str | None, budget_s: float = BUDGET_S) -> Server | None:
    """What serves there; None when it is no inference server.

    Args:
        listener: where it listens.
        program: what its process is, when that is known to be an inference server.
        budget_s: for all questions together.
    """
    known = Server(port=listener.port, pid=listener.pid, program=program, engine=_BY_PROGRAM.get(program or ""))
    host = listener.host
    if host is None:
        reason = "not asked: it does not listen on the loopback address"
        return known.model_copy(update={"problem": reason}) if program else None
    until_s = time.monotonic() + budget_s
    models = ask(host, listener.port, "/v1/models", until_s=until_s)
    if models is None:
        return known.model_copy(update={"problem": "does not answer (yet)"}) if program else None
    return _identified(known, models, lambda path: ask(host, listener.port, path, until_s=until_s))


def _identified(known: Server, models: Answer, get: Get) -> Server | None:
    names, owner = _models(models)
    engine = _BY_OWNER.get(owner or "") or known.engine
    for dialect in sorted(DIALECTS, key=lambda dialect: dialect.engine != engine):
        answer = get(dialect.path)
        if answer and answer.ok and isinstance(answer.document, dict) and dialect.recognizes(answer.document):
            return known.model_copy(update={"models": names, **_told(dialect, answer.document)})
        if engine in ("vllm", "trtllm"):  # they have none of the others' endpoints
            break
    version = get("/version") if engine else None
    told = version.document.get("version") if version and version.ok and isinstance(version.document, dict) else None
    if engine or names:
        return known.model_copy(
            update={
                "engine": engine or "openai",
                "version": str(told) if told else None,
                "models": names,
                "problem": "wants an API key" if models.wants_key else None,
            }
        )
    return None


def _told(dialect: Dialect, said: Mapping[str, Any]) -> dict[str, Any]:
    version = dialect.version(said)
    kept = {name: said.get(name) for name in dialect.settings}
    settings = {name: value for name, value in kept.items() if isinstance(value, str | int | float | bool)}
    told: dict[str, Any] = {"engine": dialect.engine, "version": str(version) if version else None}
    return {**told, "settings": settings}


def _models(answer: Answer) -> tuple[list[str], str | None]:
    """Names of the models, without folders, and who the first one is said to belong to."""
    data = answer.document.get("data") if answer.ok and isinstance(answer.document, dict) else None
    if not isinstance(data, list):
        return [], None
    entries = [entry for entry in data if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    names = [PurePosixPath(entry["id"]).name if entry["id"].startswith("/") else entry["id"] for entry in entries]
    owner = entries[0].get("owned_by") if entries else None
    return names, owner if isinstance(owner, str) else None
