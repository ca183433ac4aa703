"""Whether flags are in force, by SGLang's own word: the arguments it reports, its second thoughts, and its source.

`/server_info` tells the arguments after SGLang has resolved them, so a value that was replaced shows. A deprecated flag
that it turns into another is in force where that one is. A flag that no code reads is reported as it was asked for: the
source of the version, recorded in `assay.flags`, tells that it does nothing. Values that leave the choice to the engine
cannot be contradicted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isclose
from typing import Any

from assay.engines.same_value import Spelling
from assay.engines.sglang_renamed import is_translated, meant
from assay.engines.told import flatten, json_object, shown
from assay.flags import versions
from assay.flags.history import History, history
from assay.records.base import Flags, FlagValue

ENGINE = "sglang"
NOT_COMPARED = frozenset(
    {
        "model_path",
        "tokenizer_path",
        "revision",
        "served_model_name",
        "load_format",
        "random_seed",
        "log_level",
        "config",
    }
)
"""Paths and names that the engine resolves, or that say nothing of speed."""
CHOSEN_BY_ENGINE = frozenset({"auto", "none", "", "null", "default"})
SAME = ({"half", "float16"}, {"float", "float32"}, {"nextn", "eagle"}, {"fp8_e4m3", "fp8"}, {"unquant", "none"})
"""Spellings of one value. NEXTN is EAGLE with the model's own heads.

`unquant` unsets the quantization. Source: SGLang's documentation of speculative decoding; 0.5.17, server_args.py."""
SUBJECTS = {
    "--enable-mixed-chunk": r"mixed[- _]chunk",
    "--enable-two-batch-overlap": r"two[- _]batch[- _]overlap|\bTBO\b",
    "--enable-single-batch-overlap": r"single[- _]batch[- _]overlap|\bSBO\b",
    "--enable-flashinfer-allreduce-fusion": r"all[- _]?reduce[- _]fusion",
    "--enable-symm-mem": r"symm(?:etric)?[- _]mem",
    "--enable-mscclpp": r"mscclpp|MSCCL\+\+",
    "--enable-eplb": r"\bEPLB\b",
    "--enable-torch-compile": r"torch[. _-]compile",
    "--enable-dp-attention": r"DP[- _]attention",
}
"""How warnings call what a switch turns on, where that is not the switch's own name."""
REASON = re.compile(r"\b(?:because|since|due to|when|with|if|requires?|needs?|you can|try to|please)\b", re.IGNORECASE)
"""What follows is the condition, or advice: not what was given up."""
CONFIRMED = re.compile(r"^[^.;]*?\bis (?:already )?enabled\b")
"""How a line begins that tells what follows from a switch: "DP attention is enabled. chunked prefill size is ..."."""
BOLDER = 0.3
"""By which data-parallel attention multiplies --schedule-conservativeness.

Source: SGLang 0.5.17, server_args.py, where it divides --chunked-prefill-size as well."""
DEPRECATED = re.compile(r"\bis deprecated\b", re.IGNORECASE)
INSTEAD = re.compile(r"\binstead\b|\bplease (?:use|set)\b", re.IGNORECASE)
RESOLVED = {
    f"cuda_graph_{part}_{phase}": f"cuda_graph_config.{phase}.{part}"
    for part in ("backend", "bs", "max_bs")
    for phase in ("decode", "prefill")
}
"""Where the value of an argument ends up that is one entry of a configuration.

Source: SGLang 0.5.14 to 0.5.23, server_args.py, later arg_groups/cuda_graph_hook.py."""
SPELLING = Spelling("sglang", SAME)


def contradiction(flags: Flags, effective: dict[str, Any], fallbacks: list[str]) -> str | None:
    """The first flag that does not act, with the word that says so; None when there is none."""
    past, version = history(ENGINE), str(effective.get("version") or "")
    for name, value in flags.items():
        said = _unread(name, version, past) or _reported_otherwise(name, value, effective, past)
        said = said or _warned_about(name, value, _without_translations(name, version, past, fallbacks))
        if said is not None:
            return f"{name} {shown(value)} is not in force: {said}"
    return None


def _unread(name: str, version: str, past: History) -> str | None:
    """A flag that the running version accepts and no code of it reads."""
    spec = past.takes(name, version)
    if spec is None or not spec.dead:
        return None
    stand = versions.standing_for(version, past.checked)
    return f"SGLang {version} accepts it, and no code outside argument handling reads it (source of the {stand} wheel)"


def _without_translations(name: str, version: str, past: History, lines: list[str]) -> list[str]:
    """Second thoughts that are none: that a flag is deprecated, where its version makes another of it."""
    translated = is_translated(past.takes(name, version))
    return [line for line in lines if not (DEPRECATED.search(line) and (translated or INSTEAD.search(line)))]


def _reported_otherwise(name: str, value: FlagValue, effective: Mapping[str, Any], past: History) -> str | None:
    for key, asked in _asked(name, value, effective, past):
        if key.partition(".")[0] in NOT_COMPARED or str(asked).lower() in CHOSEN_BY_ENGINE:
            continue
        if key in effective and not _same(effective[key], asked) and not _is_lowered(key, asked, effective):
            return f"the server reports {key} = {shown(effective[key])}"
    return None


def _is_lowered(key: str, asked: FlagValue, effective: Mapping[str, Any]) -> bool:
    """Whether data-parallel attention made of it what is reported: it shares chunks out and schedules more boldly."""
    try:
        number, reported = float(str(asked)), float(effective[key])
        if not effective.get("enable_dp_attention"):
            return False
        if key == "chunked_prefill_size":
            return number // int(effective["dp_size"]) == reported
        return key == "schedule_conservativeness" and isclose(number * BOLDER, reported)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return False


def _asked(name: str, value: FlagValue, effective: Mapping[str, Any], past: History) -> Iterator[tuple[str, Any]]:
    """What a flag asks for, under each name that the server may know it by; every key of a JSON value by itself."""
    instead = meant(name, value, str(effective.get("version") or ""), past)
    if instead:
        for one in instead:
            yield from _under_names(one.name, one.value, past) if one.value is not None else ()
    else:
        yield from _under_names(name, value, past)


def _under_names(name: str, value: FlagValue, past: History) -> Iterator[tuple[str, Any]]:
    spellings = {name} | {one for span in past.of(name) for one in span.spec.names}
    content = json_object(value)
    for field in sorted(one.lstrip("-").replace("-", "_") for one in spellings):
        if content is not None:
            yield from flatten(content, field).items()
        else:
            yield field, value
            yield from ((path, value) for path in (RESOLVED.get(field),) if path is not None)


def _same(reported: Any, asked: Any) -> bool:
    if isinstance(reported, list):
        return [SPELLING.plain(one) for one in reported] == [SPELLING.plain(one) for one in str(asked).split()]
    return SPELLING.same(reported, asked)


def _warned_about(name: str, value: FlagValue, fallbacks: list[str]) -> str | None:
    """A second thought about what a switch turns on.

    A value needs none: `/server_info` tells what became of it. A switch that turns something off is not contradicted by
    the line that says it is off.
    """
    if value is not True or name.startswith("--disable-"):
        return None
    words = re.escape(name.removeprefix("--").removeprefix("enable-")).replace(r"\-", "[-_ ]")
    subject = SUBJECTS.get(name) or rf"(?<![\w-]){words}(?![\w-])"
    pattern = re.compile(rf"{re.escape(name)}\b|{subject}", re.IGNORECASE)
    return next((line for line in fallbacks if pattern.search(REASON.split(CONFIRMED.sub("", line))[0])), None)
