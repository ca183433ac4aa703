"""The messages of failures in an engine's C, C++ and CUDA sources, each in the line that the engine would write.

They are found by the calls that raise or write them. What is only known at run time is replaced, as in a format's `%s`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

SUFFIXES = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".m", ".mm"})
OTHERS = ("test", "bench", "example", "vendor/", "third", "quantize", "perplexity", "imatrix", "training", "convert")
"""Parts of a path that belongs to no server."""
TOLD = re.compile(
    r"\b(?P<name>(?:LLAMA|GGML)_LOG_(?:INFO|WARN|DEBUG)|LOG_(?:INF|WRN|DBG|TRC)|(?:SRV|SLT|QUE)_(?:INF|WRN|DBG|TRC)"
    r"|TLLM_LOG_(?:INFO|WARNING|DEBUG|TRACE))\s*\("
)
"""Calls that tell and go on."""
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
CALL = re.compile(
    r"\b(?P<name>throw std::\w+|LLAMA_LOG_ERROR|GGML_LOG_ERROR|LOG_ERR|SRV_ERR|SLT_ERR|GGML_ABORT|GGML_ASSERT"
    r"|TLLM_THROW|TLLM_LOG_ERROR|TLLM_CHECK_WITH_INFO|TLLM_CHECK|TORCH_CHECK\w{0,20}|RuntimeCheck|Panic)\s*\("
)
FORMAT = re.compile(r"%(?:l{0,2}|z|h)?[-+ #0]*[\d.*]*(?P<kind>l{0,2}[diuxXfgeEGpsc]|zu|zd|%)|\" PRI\w+ \"")
SHORTEST = 6
"""Letters of a message: less tells nothing."""
LONGEST = 300
MOST_OF_A_CALL = 1500

Line = Callable[[str, str], str]
"""From a file and a message to the line."""


def _thrown(file: str, message: str) -> str:
    if file.startswith("common/arg"):
        return f'error while handling argument "--otter": {message}'
    if file.startswith("src/"):
        return f"llama_model_load: error loading model: {message}"
    return f"  what():  {message}"


def _asserted(file: str, message: str) -> str:
    return f"[TensorRT-LLM][ERROR] Assertion failed: {message} (/src/{file}:7)"


LINES: dict[str, Line] = {
    "throw": _thrown,
    "LLAMA_LOG_ERROR": lambda _, message: message,
    "GGML_LOG_ERROR": lambda _, message: message,
    "LOG_ERR": lambda _, message: message,
    "SRV_ERR": lambda _, message: f"0.00.101.002 E srv    load_model: {message}",
    "SLT_ERR": lambda _, message: f"0.00.101.002 E slot   operator(): id  7 | task 7 | {message}",
    "GGML_ABORT": lambda file, message: f"/src/{file}:7: {message}",
    "GGML_ASSERT": lambda file, message: f"/src/{file}:7: GGML_ASSERT({message}) failed",
    "TLLM_THROW": lambda file, message: f"[TensorRT-LLM][ERROR] {message} (/src/{file}:7)",
    "TLLM_LOG_ERROR": lambda _, message: f"[TensorRT-LLM][ERROR] {message}",
    "TLLM_CHECK": _asserted,
    "TLLM_CHECK_WITH_INFO": _asserted,
    "TORCH_CHECK": lambda _, message: f"RuntimeError: {message}",
    "RuntimeCheck": lambda file, message: f"RuntimeError: Failed at /src/{file}:7: {message}",
    "Panic": lambda file, message: f"RuntimeError: Failed at /src/{file}:7: {message}",
}
CONDITIONS = frozenset({"GGML_ASSERT", "TLLM_CHECK"})
"""What they print is the condition itself."""


def raised(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each message of a failure once: its file, and its lines."""
    return _once(folder, _raised_in)


def logged(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Each message that tells and goes on, without its level, as builds without prefixes write it."""
    return _once(folder, _logged_in)


def _once(folder: Path, messages: Callable[[str, str], Iterator[str]]) -> Iterator[tuple[str, list[str]]]:
    seen: set[str] = set()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix in SUFFIXES and not any(each in name.lower() for each in OTHERS):
            for line in messages(name, path.read_text(encoding="utf-8", errors="replace")):
                if line not in seen:
                    seen.add(line)
                    yield name, [line]


def _logged_in(_: str, text: str) -> Iterator[str]:
    for found in TOLD.finditer(text):
        message = _literals(_arguments(text, found.end()))
        if len(re.sub(r"\W", "", message)) >= SHORTEST:
            yield f"[TensorRT-LLM][WARNING] {message}" if found["name"].startswith("TLLM") else message


def _raised_in(name: str, text: str) -> Iterator[str]:
    for found in CALL.finditer(text):
        call = found["name"]
        kind = "throw" if call.startswith("throw") else "TORCH_CHECK" if call.startswith("TORCH_CHECK") else call
        body = _arguments(text, found.end())
        message = " ".join(body.split()) if kind in CONDITIONS else _literals(body)
        if len(re.sub(r"\W", "", message)) >= SHORTEST:
            yield LINES[kind](name, message[:LONGEST])


def _arguments(text: str, start: int) -> str:
    """What stands between the brackets of a call."""
    depth, end = 1, start
    while end < min(len(text), start + MOST_OF_A_CALL) and depth:
        if text[end] == '"':
            literal = LITERAL.match(text, end)
            end = literal.end() if literal else end + 1
            continue
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[start : end - 1]


def _literals(body: str) -> str:
    """The strings of a call, one after the other, with words for what is filled in."""
    joined = "".join(each[1] for each in LITERAL.finditer(body))
    return " ".join(FORMAT.sub(_filled, joined).replace("\\n", " ").replace('\\"', '"').split())


def _filled(found: re.Match[str]) -> str:
    kind = found["kind"] or "d"
    return "%" if kind == "%" else "otter" if kind in "sc" else "7"
