"""Which scheduling an engine uses, by its version and flags; `assay.roofline.graphs` has its graphs.

Defaults, each with its source:

- vLLM: `--async-scheduling` came with 0.10.0, off; 0.14.0 made it the default ("Breaking Changes" of its release notes,
  vllm-project/vllm#27614). Left to the default it is dropped for what it does not support (`VllmConfig.__post_init__`,
  vllm/config/vllm.py): speculation other than EAGLE, MTP, a draft model or n-grams on the GPU, a drafter whose batches
  are not padded, an executor that does not support it (Ray); in 0.14 pipeline parallelism, too (0.15: #32359).
- SGLang: `--enable-overlap-schedule` since 0.3.4; the default since 0.3.6 (sgl-project/sglang#2067), with
  `--disable-overlap-schedule`. Dropped (server_args.py, 0.5.9) for pipeline parallelism, and for speculation, unless
  EAGLE or a draft model runs with `SGLANG_ENABLE_SPEC_V2`.
- TensorRT-LLM: the PyTorch backend's overlap scheduler is the default since 0.20 (NVIDIA/TensorRT-LLM#4174), with
  `disable_overlap_scheduler`; engines of the older runtime (`trtllm-engine`) wait for each step.
- llama.cpp, LMDeploy's TurboMind, gpt-fast: one loop that waits for each step.

Other engines, and versions that cannot be read, count as today's: overlapped.
"""

from __future__ import annotations

import re
from typing import Any

from packaging.version import InvalidVersion, Version

from assay.records.estimate import Host, Scheduling
from assay.roofline import graphs
from assay.roofline.efficiency import COMPILED
from assay.roofline.graphs import Settings, as_mapping

ASYNC, NO_ASYNC = "--async-scheduling", "--no-async-scheduling"
OVERLAP_OFF, OVERLAP_ON = "--disable-overlap-schedule", "--enable-overlap-schedule"
TRT_OFF = "disable_overlap_scheduler"
READ = (
    ASYNC, NO_ASYNC, OVERLAP_OFF, OVERLAP_ON, f"--config.{TRT_OFF}", "--speculative-config", "--speculative-algorithm",
    "--pipeline-parallel-size", "--pp-size", "--distributed-executor-backend", *graphs.READ,
)  # fmt: skip
"""Flags that decide anything here."""
ENGINES = ("vllm", "sglang", "trtllm", *COMPILED)
"""Whose scheduling is known."""
SPEC_V2, SPEC_V2_ALGORITHMS = "SGLANG_ENABLE_SPEC_V2", ("EAGLE", "EAGLE3", "STANDALONE")
SPECULATES_AHEAD = ("eagle", "mtp", "draft_model", "ngram_gpu", "dspark")
"""Parts of the names of vLLM's methods that its asynchronous scheduling supports."""
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:[a-z0-9.+]*)", re.IGNORECASE)


def host_of(engine: str, version: str | None, settings: Settings | None = None) -> Host:
    """Scheduling and graphs of an engine, and what they rest on.

    Args:
        engine: as adapters are called: `vllm`, `sglang`, `trtllm`, `llamacpp`; or `trtllm-engine`, `lmdeploy` ...
        version: as the engine says it, words around it allowed; None: of today.
        settings: flags of the launch command, and variables of its environment.
    """
    given, number = settings or {}, version_of(version)
    told = f"{engine} {number}" if number else engine
    if engine in COMPILED:
        return Host(engine=engine, scheduling="serial", why=f"the loop of {engine} waits for each step")
    if engine == "vllm":
        scheduling, why = _vllm(number, told, given)
        return graphs.with_vllm(Host(engine=engine, scheduling=scheduling, why=why), number, given)
    if engine in {"sglang", "rehearsal"}:
        scheduling, why = _sglang(number, told, given)
        return graphs.with_sglang(Host(engine=engine, scheduling=scheduling, why=why), given)
    if engine == "trtllm":
        scheduling, why = _trtllm(number, told, given)
        return Host(engine=engine, scheduling=scheduling, why=why)
    return Host(engine=engine, why="what engines of today do by default")


def of_words(said: str) -> Host:
    """The same of what a server says that it is (`vllm 0.26.0`, `tensorrt_llm 1.1.0`): no flag of it is known."""
    name = said.partition(" ")[0].lower()
    return host_of({"tensorrt_llm": "trtllm"}.get(name, name), said)


def version_of(text: str | None) -> Version | None:
    """The first version in the words; None where there is none."""
    found = _VERSION.search(text or "")
    try:
        return Version(found.group().rstrip(".")) if found else None
    except InvalidVersion:
        return None


def _before(number: Version | None, limit: str) -> bool:
    """Whether a known version is older; what is not known counts as today's."""
    return number is not None and number.release < Version(limit).release


def _vllm(number: Version | None, told: str, given: Settings) -> tuple[Scheduling, str]:
    asked = given.get(ASYNC)
    if asked is False or given.get(NO_ASYNC):
        return "serial", NO_ASYNC
    if asked and not _before(number, "0.10"):
        return "overlapped", ASYNC
    if _before(number, "0.14"):
        return "serial", f"{told} does it by default: asynchronous since 0.14"
    if reason := _vllm_drops(number, given):
        return "serial", reason
    return "overlapped", f"{told} does it by default"


def _vllm_drops(number: Version | None, given: Settings) -> str:
    """What makes vLLM drop asynchronous scheduling where nobody asked for it; empty: nothing."""
    speculation = as_mapping(given.get("--speculative-config"))
    method = str(speculation.get("method") or ("draft_model" if speculation.get("model") else ""))
    if speculation and not any(part in method.lower() for part in SPECULATES_AHEAD):
        return f"--speculative-config: not supported with {method or 'this'} speculation"
    if speculation.get("disable_padded_drafter_batch"):
        return "--speculative-config: disable_padded_drafter_batch"
    if str(given.get("--distributed-executor-backend", "")).lower() == "ray":
        return "--distributed-executor-backend ray"
    if _before(number, "0.15") and _number(given.get("--pipeline-parallel-size")) > 1:
        return "--pipeline-parallel-size: not supported before 0.15"
    return ""


def _sglang(number: Version | None, told: str, given: Settings) -> tuple[Scheduling, str]:
    if given.get(OVERLAP_OFF):
        return "serial", OVERLAP_OFF
    if _before(number, "0.3.6"):
        asked = bool(given.get(OVERLAP_ON)) and not _before(number, "0.3.4")
        return ("overlapped", OVERLAP_ON) if asked else ("serial", f"{told} does it by default: overlapped since 0.3.6")
    if _number(given.get("--pp-size")) > 1:
        return "serial", "--pp-size: pipeline parallelism forbids overlapping"
    algorithm = str(given.get("--speculative-algorithm") or "").upper()
    if algorithm and algorithm not in SPEC_V2_ALGORITHMS:
        return "serial", f"--speculative-algorithm {algorithm} forbids overlapping"
    if algorithm and str(given.get(SPEC_V2)).lower() not in {"1", "true"}:
        return "serial", f"--speculative-algorithm {algorithm} without {SPEC_V2}=1"
    return "overlapped", f"{told} does it by default"


def _trtllm(number: Version | None, told: str, given: Settings) -> tuple[Scheduling, str]:
    if given.get(f"--config.{TRT_OFF}") or given.get(TRT_OFF):
        return "serial", TRT_OFF
    if _before(number, "0.20"):
        return "serial", f"{told} does it by default: overlapped since 0.20"
    return "overlapped", f"{told} does it by default"


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 1
