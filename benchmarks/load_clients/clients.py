"""The clients: how each is installed, called and read. What is asked of all of them is in `case.Case`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from case import Case, Place
from reports import Reported, from_aiperf, from_assay, from_flat, from_guidellm, from_stamps

HERE = Path(__file__).parent
ASSAY_WINDOWS = 3
MODEL = "null-model"
"""Any name will do for the server; a bare "null" is read as no name by some tools."""
CLIENT_ONLY = (
    "aiohttp",
    "numpy",
    "tqdm",
    "transformers",
    "requests",
    "regex",
    "pillow",
    "pybase64",
    "orjson",
    "msgspec",
    "psutil",
)
"""What the benchmark clients of vLLM and SGLang import at their top, beside the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One row of the table."""

    name: str
    environment: str | None
    """Name of its virtual environment, which clients may share; None: the one this script runs in."""
    packages: tuple[tuple[str, ...], ...] = ()
    """Arguments of `pip install`, one call each."""
    shows: tuple[str, ...] = ()
    """Distributions whose versions are stated."""
    needs: str = ""
    """A glob below the environment's site-packages that must match, for parts that not every wheel carries."""
    command: Callable[[Case, Place], list[str]]
    read: Callable[[Path, Case], Reported]
    environ_without: tuple[str, ...] = ()
    """Of `bench.ENVIRONMENT`, what it does not bear."""
    note: str = ""


def assay(case: Case, place: Place) -> list[str]:
    """Our own; warm-up and calibration come before its windows."""
    return [
        *(sys.executable, "-m", "assay", "bench", place.url, "--concurrency", str(case.streams), "--json"),
        *("--input", str(case.input_tokens), "--output", str(case.output_tokens)),
        *("--windows", str(ASSAY_WINDOWS), "--window", str(case.seconds / ASSAY_WINDOWS), "--warmup-max", "20"),
        *("--folder", str(place.folder / "bench")),
    ]


def plain(script: str, *flags: str) -> Callable[[Case, Place], list[str]]:
    """One of the scripts in `plain/`."""

    def command(case: Case, place: Place) -> list[str]:
        return [
            *(str(place.python), str(HERE / "plain" / script), "--url", place.url, "--streams", str(case.streams)),
            *("--seconds", str(case.seconds), "--output-tokens", str(case.output_tokens)),
            *("--input-tokens", str(case.input_tokens), "--stamps", str(place.folder / "stamps.bin"), *flags),
        ]

    return command


def vllm(case: Case, place: Place) -> list[str]:
    """`vllm bench serve`, without the engine (`without_engine.py`)."""
    return [
        *(str(place.python), str(HERE / "without_engine.py"), "vllm", "--backend", "openai"),
        *("--base-url", place.url, "--endpoint", "/v1/completions", "--model", MODEL),
        *("--tokenizer", str(place.tokenizer), "--dataset-name", "random"),
        *("--random-input-len", str(case.input_tokens), "--random-output-len", str(case.output_tokens)),
        *("--num-prompts", str(case.num_requests), "--max-concurrency", str(case.streams), "--ignore-eos"),
        *("--temperature", "0", "--disable-tqdm", "--percentile-metrics", "ttft,tpot,itl"),
        *("--metric-percentiles", "50,99", "--save-result", "--result-filename", str(place.report)),
    ]


def sglang(case: Case, place: Place) -> list[str]:
    """`python -m sglang.bench_serving`, without the engine."""
    return [str(place.python), str(HERE / "without_engine.py"), "sglang", *_sglang_flags(case, place)]


def sglang_rust(case: Case, place: Place) -> list[str]:
    """The Rust client that newer wheels carry, as its own command line."""
    return [str(place.python), str(HERE / "without_engine.py"), "sglang-rust", *_sglang_flags(case, place)]


def _sglang_flags(case: Case, place: Place) -> list[str]:
    return [
        *("--backend", "vllm", "--base-url", place.url, "--model", MODEL, "--tokenizer", str(place.tokenizer)),
        *("--dataset-name", "random-ids", "--random-range-ratio", "1", "--disable-tqdm"),
        *("--random-input-len", str(case.input_tokens), "--random-output-len", str(case.output_tokens)),
        *("--num-prompts", str(case.num_requests), "--max-concurrency", str(case.streams)),
        *("--warmup-requests", "0", "--output-file", str(place.report)),
    ]


def guidellm(case: Case, place: Place) -> list[str]:
    """`guidellm run` with as many concurrent streams."""
    return [
        *(place.script("guidellm"), "run"),
        *("--backend", f"kind=openai_http,target={place.url},model={MODEL},request_format=/v1/completions"),
        *("--data", f"kind=synthetic_text,prompt_tokens={case.input_tokens},output_tokens={case.output_tokens}"),
        *("--tokenizer", f"kind=huggingface_auto,model={place.tokenizer}"),
        *("--profile", f"kind=concurrent,streams={case.streams}"),
        *("--constraint", f"kind=max_duration,seconds={case.seconds}"),
        *("--output", f"kind=json,path={place.report}", "--disable-console-interactive"),
    ]


def aiperf(case: Case, place: Place) -> list[str]:
    """`aiperf profile` in a closed loop for a time."""
    return [
        *(place.script("aiperf"), "profile", "--model", MODEL, "--url", place.url, "--endpoint-type", "completions"),
        *("--streaming", "--concurrency", str(case.streams), "--benchmark-duration", str(case.seconds)),
        *("--isl", str(case.input_tokens), "--osl", str(case.output_tokens), "--tokenizer", str(place.tokenizer)),
        *("--extra-inputs", json.dumps({"ignore_eos": True}), "--ui", "none", "--use-server-token-count"),
        *("--artifact-dir", str(place.folder / "aiperf")),
    ]


CLIENTS = (
    Client(name="assay bench", environment=None, shows=("assay",), command=assay, read=from_assay),
    Client(
        name="epoll loop, kernel stamps",
        environment=None,
        command=plain("epoll_loop.py", "--kernel"),
        read=from_stamps,
        note="receives and stores, nothing else; parsed afterwards",
    ),
    Client(name="epoll loop", environment=None, command=plain("epoll_loop.py"), read=from_stamps),
    Client(
        name="aiohttp, plain",
        environment="aiohttp",
        packages=(("aiohttp",),),
        shows=("aiohttp",),
        command=plain("aiohttp_client.py"),
        read=from_stamps,
    ),
    Client(
        name="httpx, plain",
        environment="httpx",
        packages=(("httpx",),),
        shows=("httpx",),
        command=plain("httpx_client.py"),
        read=from_stamps,
    ),
    Client(
        name="vLLM bench serve",
        environment="vllm",
        packages=(("--no-deps", "vllm"), CLIENT_ONLY),
        shows=("vllm", "aiohttp"),
        command=vllm,
        read=from_flat,
        note="its client code unchanged, the engine's modules replaced by empty ones",
    ),
    Client(
        name="SGLang bench_serving",
        environment="sglang",
        packages=(("--no-deps", "sglang"), CLIENT_ONLY),
        shows=("sglang", "aiohttp"),
        command=sglang,
        read=from_flat,
        note="its client code unchanged, the engine's modules replaced by empty ones",
    ),
    Client(
        name="SGLang bench_serving, Rust",
        environment="sglang",
        packages=(("--no-deps", "sglang"), CLIENT_ONLY),
        shows=("sglang",),
        needs="sglang/srt/rust_extensions/_bench*",
        command=sglang_rust,
        read=from_flat,
    ),
    Client(
        name="GuideLLM",
        environment="guidellm",
        packages=(("guidellm",),),
        shows=("guidellm",),
        command=guidellm,
        read=from_guidellm,
    ),
    Client(
        name="AIPerf",
        environment="aiperf",
        packages=(("aiperf",),),
        shows=("aiperf",),
        command=aiperf,
        environ_without=("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"),  # with them it takes no tokenizer from a folder
        read=from_aiperf,
    ),
)
