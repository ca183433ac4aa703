"""Which steps an engine replays from captured graphs, and whether it compiles, by its version and flags.

Sources: vLLM's `CompilationConfig` and `VllmConfig.__post_init__` (vllm/config/compilation.py, vllm/config/vllm.py) and
`CudagraphDispatcher` (vllm/v1/cudagraph_dispatcher.py):

- `FULL_DECODE_ONLY` has no graph for a step that holds a prompt: all of its kernels are launched by Python.
- Piecewise graphs, and so the default, need the compilation in pieces (mode 3): with another mode they become `NONE`.
- `-O0` (`--optimization-level` since 0.12) neither compiles nor captures; `-O1` to `-O3` do both. Before 0.12, `-O` was
  the mode itself. What `--compilation-config` says goes before it.
- A step of more tokens than the largest captured size is launched, too.

SGLang's flags are of server_args.py (0.5.17); its sizes for decode are sequences, those for prompts tokens.

Sizes that no flag tells are taken to be large enough: an engine's defaults (512 tokens in vLLM) leave longer prompts to
launches, but of compiled kernels behind long ones, and what these cost was not measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from assay.records.estimate import Graphs, Host

Settings = Mapping[str, Any]
"""Flags by the names that the engine's documentation gives them; absent ones have their defaults."""
EAGER, COMPILATION, LEVEL = "--enforce-eager", "--compilation-config", "--optimization-level"
VLLM_SIZES = ("--cudagraph-capture-sizes", "--cuda-graph-sizes", "--max-cudagraph-capture-size")
DECODE_SIZES = ("--cuda-graph-bs-decode", "--cuda-graph-bs", "--cuda-graph-max-bs-decode", "--cuda-graph-max-bs")
PROMPT_SIZES = (
    "--cuda-graph-bs-prefill", "--piecewise-cuda-graph-tokens", "--cuda-graph-max-bs-prefill",
    "--piecewise-cuda-graph-max-tokens",
)  # fmt: skip
"""Of SGLang. Lists before largest sizes: a list decides."""
READ = (
    EAGER, COMPILATION, LEVEL, *VLLM_SIZES, "--disable-cuda-graph", "--disable-decode-cuda-graph",
    "--disable-prefill-cuda-graph", "--disable-piecewise-cuda-graph", *DECODE_SIZES, *PROMPT_SIZES,
)  # fmt: skip
"""Flags that decide anything here; keys of `COMPILATION` come as flags of their own, too (`COMPILATION.mode`)."""
COMPILED_IN_PIECES = ("", "3", "VLLM_COMPILE")
"""Values of vLLM's `mode`; the first: its default."""
COMPILATIONS = (COMPILATION, "--compilation_config", "-cc")
WITH_KEYS = (*COMPILATIONS, "-O")
"""What vLLM takes `.key value` after; `-O.mode` before 0.12."""
LEVELS_SINCE = Version("0.12")
_LEVEL = re.compile(r"-O=?(\d?)")
"""`-O3` and `-O 3`, where nobody resolved them to a flag of that version."""


def with_vllm(host: Host, number: Version | None, given: Settings) -> Host:
    """The host with what vLLM's flags say of graphs and compilation."""
    config = compilation(number, given)
    mode = str(config.get("mode", config.get("level", ""))).upper()
    is_lowest = _level(given) == "0"
    compiles = not given.get(EAGER) and mode not in {"0", "NONE"} and not (is_lowest and not mode)
    asked = config.get("cudagraph_mode")
    captures = str(asked if asked is not None else "NONE" if is_lowest else "FULL_AND_PIECEWISE").upper()
    in_pieces = compiles and mode in COMPILED_IN_PIECES
    graphs: Graphs = "all"
    if given.get(EAGER) or captures in {"NONE", "0"} or ("PIECEWISE" in captures and not in_pieces):
        graphs = "none"
    elif captures == "FULL_DECODE_ONLY":
        graphs = "decode"
    sizes = [config.get("cudagraph_capture_sizes"), *map(given.get, VLLM_SIZES)]
    largest = _largest(*sizes, config.get("max_cudagraph_capture_size"))
    return host.model_copy(
        update={
            "graphs": graphs, "compiles": compiles, "captured_decode_tokens": largest,
            "captured_prompt_tokens": largest,
        }
    )  # fmt: skip


def with_sglang(host: Host, given: Settings) -> Host:
    """The host with what SGLang's flags say of graphs."""
    graphs: Graphs = "all"
    if given.get("--disable-cuda-graph") or given.get("--disable-decode-cuda-graph"):
        graphs = "none"
    elif given.get("--disable-prefill-cuda-graph") or given.get("--disable-piecewise-cuda-graph"):
        graphs = "decode"
    return host.model_copy(
        update={
            "graphs": graphs,
            "captured_decode_tokens": _largest(*map(given.get, DECODE_SIZES)),
            "captured_prompt_tokens": _largest(*map(given.get, PROMPT_SIZES)),
        }
    )


def compilation(number: Version | None, given: Settings) -> Mapping[str, Any]:
    """The compilation config of vLLM: the JSON object, and the keys that are given as flags of their own."""
    whole = next((given[name] for name in COMPILATIONS if name in given), None)
    found = {"mode": whole} if str(whole).isdecimal() else dict(as_mapping(whole))
    if number is not None and number < LEVELS_SINCE and (mode := _level(given)):
        found.setdefault("mode", mode)
    keys = {flag.partition(".")[2]: value for flag, value in given.items() if flag.partition(".")[0] in WITH_KEYS}
    return found | keys


def _level(given: Settings) -> str:
    """The number of `-O`, under any of its spellings; empty where it is not given."""
    if LEVEL in given:
        return str(given[LEVEL])
    for flag, value in given.items():
        if found := _LEVEL.fullmatch(flag):
            return found.group(1) or str(value)
    return ""


def as_mapping(value: Any) -> Mapping[str, Any]:
    """A flag's value that is a JSON object, or text of one; empty where it is none."""
    if isinstance(value, Mapping):
        return value
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _largest(*values: Any) -> int | None:
    """The largest number of the first value that holds any: a list, or text of one; None: no value does."""
    for value in values:
        if found := [int(one) for one in re.findall(r"[0-9]{1,18}", "" if value is None else str(value))]:
            return max(found)
    return None
