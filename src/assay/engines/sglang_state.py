"""What an SGLang server reports of itself, from two processes: the launcher's arguments, and the scheduler's.

`/server_info` repeats the arguments as the launcher resolved them. `internal_states` in it holds those of the process
that runs the model, which may have decided otherwise since (attention back end, graphs, type and reuse of the cache,
chunks): its word counts. It also tells what its memory went to.

Source: `get_internal_state` of SGLang 0.4.4 to 0.5.21 (managers/scheduler.py) and 0.5.23
(managers/scheduler_components/internal_state.py); what model_executor/model_runner.py of 0.4.9 to 0.5.12 assigns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from assay.engines import told

DROPPED = re.compile(
    r"(?:^|\.)(?:api_key|admin_api_key|launch_command|model_path|tokenizer_path|served_model_name|host|port|nccl_port|"
    r"random_seed|status|chat_template|log_requests\w*|crash_dump_folder|watermark\w*|startup_time|kv_events)(?:\.|$)|token$"
)
"""What says nothing of speed, or nobody's business."""
OFF = frozenset({"quantization", "speculative_algorithm"})
"""Arguments whose null says that something is off, and not that the engine chooses: told as `none`."""
STATE = ("effective_max_running_requests_per_dp", "max_total_num_tokens", "avg_spec_accept_length")
"""Of the scheduler's state: what came of the arguments."""
MEMORY = ("weight", "kvcache", "graph", "token_capacity")
"""Of its memory, in GB (the last in tokens): graphs as one number, or by phase, which is summed."""


def reported(info: Mapping[str, Any]) -> dict[str, Any]:
    """`/server_info` made flat: arguments under their own names, the scheduler's state after `state.`, `version`."""
    plain = {key: value for key, value in info.items() if key != "internal_states"}
    arguments, first = told.flatten(plain), _first_state(info.get("internal_states"))
    later = {key: value for key, value in told.flatten(first).items() if key in arguments and value is not None}
    whole = {key: "none" if value is None and key in OFF else value for key, value in {**arguments, **later}.items()}
    kept = {key: value for key, value in whole.items() if value is not None}
    return {key: value for key, value in kept.items() if not DROPPED.search(key)} | _state(first)


def _first_state(states: Any) -> dict[str, Any]:
    """Of several data-parallel ranks the first."""
    return states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}


def _state(first: Mapping[str, Any]) -> dict[str, Any]:
    memory = first.get("memory_usage")
    numbers = {key: first.get(key) for key in STATE}
    numbers |= {key: _sum(memory.get(key)) for key in MEMORY} if isinstance(memory, Mapping) else {}
    return {f"state.{key}": number for key, number in numbers.items() if isinstance(number, int | float)}


def _sum(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return sum(part for part in told.flatten(value).values() if isinstance(part, int | float))
