"""Settings that an engine takes for one another: other words for a value, other places for a flag.

A candidate that sets what the baseline has already, in other words, would be measured against itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from assay.plan import spellings
from assay.records.base import Flags, FlagValue
from assay.records.machine import EngineBuild

FP8 = frozenset({"fp8", "fp8_e4m3"})
BF16 = frozenset({"bf16", "bfloat16"})
ON, OFF = frozenset({"on", "enabled", "true", "1"}), frozenset({"off", "disabled", "false", "0"})
SAME_VALUES: Mapping[str, Mapping[str, tuple[frozenset[str], ...]]] = {
    "vllm": {
        "--kv-cache-dtype": (FP8,),
        "--dtype": (frozenset({"half", "float16"}), frozenset({"float", "float32"})),
    },
    "sglang": {
        "--kv-cache-dtype": (BF16,),
        "--dtype": (frozenset({"half", "float16"}), frozenset({"float", "float32"})),
    },
    "llamacpp": {"--flash-attn": (ON, OFF, frozenset({"auto", "-1"}))},
}
"""Groups of values that are one, by engine and flag.

Sources: vLLM 0.20.0 and 0.33.0, config/cache.py ("fp8 (=fp8_e4m3)") and config/model.py (half, float16; float,
float32); SGLang 0.5.4 and later, srt/server_args.py (bf16, bfloat16) and srt/configs/model_config.py; llama.cpp,
common/arg.cpp (is_truthy, is_falsey, is_autoy).
"""
ANY_CASE: Mapping[str, frozenset[str]] = {"vllm": frozenset({"--attention-backend"})}
"""Flags whose values an engine reads in capitals and small letters alike.

Source: vLLM 0.20.0 and 0.33.0, config/attention.py (`AttentionBackendEnum[value.upper()]`)."""
ELSEWHERE: Mapping[str, Mapping[str, str]] = {"vllm": {"--attention-backend": "--attention-config.backend"}}
"""Other flags that say the same as a flag. Source: vLLM 0.20.0 and 0.33.0, engine/arg_utils.py."""


def stands(build: EngineBuild, baseline: Flags, name: str, wanted: FlagValue) -> bool:
    """Whether the baseline has a setting already, in whatever words it says so."""
    other = ELSEWHERE.get(build.engine, {}).get(name)
    given = _given(build, baseline, name)
    if given is None and other is not None:
        given = _given(build, baseline, other)
    return given is not None and means_the_same(build, name, given, wanted)


def _given(build: EngineBuild, baseline: Flags, name: str) -> FlagValue | None:
    """The baseline's value of a flag, or of a key of a flag that takes JSON (`--config.key`), however it is given."""
    found = next((baseline[place] for place in (name, *spellings.same_side(build, name)) if place in baseline), None)
    root, _, key = name.partition(".")
    if found is not None or not key:
        return found
    for place in (root, *spellings.same_side(build, root)):
        if f"{place}.{key}" in baseline:
            return baseline[f"{place}.{key}"]
        if place in baseline:
            return _inside(_read(build, baseline[place]), key.split("."))
    return None


def _inside(held: object, keys: list[str]) -> FlagValue | None:
    for key in keys:
        held = held.get(key) if isinstance(held, dict) else None
    return held if isinstance(held, bool | int | float | str) else None


def means_the_same(build: EngineBuild, name: str, one: FlagValue, other: FlagValue) -> bool:
    """Whether an engine takes two values of a flag for the same.

    Args:
        build: the engine.
        name: the flag, under any of its spellings.
        one: a value.
        other: another one.
    """
    if str(one) == str(other) or _read(build, one) == _read(build, other):
        return True
    told = {str(one).lower(), str(other).lower()}
    names = set(spellings.same_side(build, name)) | {name}
    if len(told) == 1:
        return bool(names & ANY_CASE.get(build.engine, frozenset()))
    groups = SAME_VALUES.get(build.engine, {})
    return any(told <= group for flag in names for group in groups.get(flag, ()))


def _read(build: EngineBuild, value: FlagValue) -> object:
    """A number as a number, JSON as what it holds; other texts as they are."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        with suppress(json.JSONDecodeError):
            return json.loads(value)
    return spellings.number_of(build, value)
