"""What is known of a target when it is planned, and the names under which conditions may ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from assay.errors import UsageError
from assay.plan import spellings
from assay.plan.expression import ABSENT
from assay.plan.target_step import Served, TargetStep, shares
from assay.records.base import FlagValue
from assay.records.device import Box
from assay.records.machine import EngineBuild, Machine, ModelFacts
from assay.records.model_shape import Attention, ModelShape
from assay.records.snapshot import MachineSnapshot
from assay.records.spec import CampaignSpec

GPU = ("count", "name", "vendor", "compute_capability", "nvlink", "memory_bytes", "smem_per_block_bytes", "sms")
OF_A_SHAPE = (
    "hidden", "layers", "is_moe", "is_mla", "has_indexer", "top_k", "has_shared_experts", "heads", "kv_heads",
    "max_positions", "weight_bytes", "weight_bits", "kv_bytes_per_token", "has_draft_layers", "parameters",
)  # fmt: skip
"""Facts of a model that only its shape tells."""
OF_A_STEP = (
    "running", "waiting", "kv_tokens", "tokens_each", "tokens_per_expert", "all_reduce_bytes", "prompt_share",
    "experts_share", "dense_share", "attention_share", "communication_share", "host_share", "time_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A target as it was found: what was measured and read of it, and what follows by calculation."""

    spec: CampaignSpec
    machine: Machine
    build: EngineBuild
    model: ModelFacts
    snapshot: MachineSnapshot | None = None
    shape: ModelShape | None = None
    box: Box | None = None
    served: Served | None = None
    step: TargetStep | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    """What is not known (`shape`, `box`, `step`), and why."""
    elsewhere: bool = False
    """The box is somewhere else: nothing is known of its processors and memory, and `machine` is not it."""
    tuned: Mapping[str, str | None] = field(default_factory=dict)
    """Folders of tuned kernel configurations that exist here, by kind (`moe`)."""


def facts_of(situation: Situation) -> dict[str, Any]:
    """The names that expressions may use; docs/catalogue-entry.md lists them."""
    spec, build = situation.spec, situation.build
    workload, flags = spec.workload, spec.target.flags

    def flag(name: str, default: FlagValue | None = None) -> Any:
        return spellings.value(build, flags, name, default)

    def has(name: str) -> bool:
        info = build.flag(name)
        return info is not None and not info.removed

    return {
        "machine": _machine(situation),
        "gpu": _gpu(situation),
        "model": _model(situation),
        "layout": _layout(situation),
        "step": _step(situation.step),
        "build": {
            "engine": build.engine,
            "version": build.version,
            "has": has,
            "is_version": _version_test(build.version),
        },
        "target": {"flags": dict(flags), "model": spec.target.model, "env": dict(spec.target.env)},
        "workload": {
            "concurrency": workload.concurrency,
            "input_tokens_min": workload.prompt_tokens[0],
            "input_tokens_max": workload.prompt_tokens[1],
            "output_tokens_min": workload.output_tokens[0],
            "output_tokens_max": workload.output_tokens[1],
            "tokens_max": workload.prompt_tokens[1] + workload.output_tokens[1],
            "shared_prefix": workload.shared_prefix_tokens > 0,
            "shared_prefix_tokens": workload.shared_prefix_tokens,
            "shared_prefix_groups": workload.shared_prefix_groups if workload.shared_prefix_tokens else 0,
            "shared_share": workload.shared_share,
        },
        "objective": {"metric": spec.objective.metric, "min_effect": spec.objective.min_effect},
        "tuned": {"moe": situation.tuned.get("moe")},
        "flag": flag,
        "has": has,
        "env": spec.target.env.get,
    }


def within(version: str, specifier: str) -> bool | None:
    """Whether a version lies in a PEP 440 specifier; None for a version that is none (`b8234`, `unknown`).

    >>> within("vLLM 0.32.0+cpu", ">=0.17"), within("0.5.3", ">=0.5.4"), within("b8234", ">=1")
    (True, False, None)
    """
    words = version.split()
    try:
        return SpecifierSet(specifier).contains(Version(words[-1] if words else ""), prereleases=True)
    except InvalidVersion:
        return None


def _version_test(version: str) -> Callable[[str], bool | None]:
    def is_version(specifier: str) -> bool | None:
        try:
            return within(version, specifier)
        except InvalidSpecifier as error:
            raise UsageError(f"{specifier!r} is no version specifier", hint='such as ">=0.5.4"') from error

    return is_version


def _machine(situation: Situation) -> dict[str, Any]:
    seen, whole = situation.snapshot, situation.machine.model_dump()
    return {
        **(dict.fromkeys(whole) if situation.elsewhere else whole),
        "sockets": seen.cpu.sockets if seen else None,
        "affinity": seen.cpu.affinity if seen else None,
        "available_memory_bytes": seen.memory.available_bytes if seen else None,
        "locked_memory_bytes": seen.limits.locked_bytes if seen else None,
        "swap_used_bytes": seen.memory.swap_used_bytes if seen else None,
    }


def _gpu(situation: Situation) -> dict[str, Any]:
    """Of the box that is named, else of the GPUs that were found; where there are none, that is known of all of it."""
    box, found = situation.box, situation.machine.gpus
    if box is None and not found:
        return dict.fromkeys(GPU, ABSENT) | {"count": 0, "nvlink": False}
    if box is None:
        first = found[0]
        known = {
            "count": len(found),
            "name": first.name,
            "compute_capability": first.compute_capability,
            "nvlink": None if first.nvlinks is None else first.nvlinks > 0,
            "memory_bytes": first.memory_bytes,
            "vendor": "nvidia" if first.compute_capability else None,
        }
        return dict.fromkeys(GPU) | known
    link = box.device.link.lower()
    numbers: dict[str, Any] = {name: fact.value if (fact := box.device.fact(name)) else None for name in GPU}
    vendor = "amd" if box.device.id.startswith("mi") else "nvidia" if box.device.kind == "gpu" else ABSENT
    if vendor != "nvidia" and numbers["compute_capability"] is None:
        numbers["compute_capability"] = ABSENT  # it is NVIDIA's word
    return numbers | {
        "count": box.count if box.device.kind == "gpu" else 0,
        "name": box.device.name,
        "nvlink": ("nvlink" in link or "xgmi" in link) if link else None,
        "vendor": vendor,
    }


def _model(situation: Situation) -> dict[str, Any]:
    shape, told = situation.shape, situation.model.model_dump()
    if shape is None:
        return dict.fromkeys(OF_A_SHAPE) | told
    attention = _attention(shape)
    weights = shape.weight_bytes
    found = {
        "hidden": shape.hidden,
        "layers": shape.num_layers,
        "is_moe": shape.is_moe,
        "is_mla": attention is not None and attention.kind == "mla",
        "has_indexer": any(group.attention and group.attention.indexer for group in shape.layers),
        "top_k": shape.top_k,
        "has_shared_experts": bool(shape.parameters_by_part().get("shared_experts")),
        "heads": attention.heads if attention else None,
        "kv_heads": attention.kv_heads if attention else None,
        "max_positions": shape.max_positions,
        "weight_bytes": weights,
        "weight_bits": 8 * weights / shape.parameters,
        "kv_bytes_per_token": shape.cache_bytes_per_token(),
        "has_draft_layers": bool(shape.draft_layers),
        "parameters": shape.parameters,
    }
    experts = told["num_experts"] if told["num_experts"] is not None else shape.num_experts
    context = told["context_length"] if told["context_length"] is not None else shape.max_positions
    return found | told | {"num_experts": experts, "context_length": context}


def _attention(shape: ModelShape) -> Attention | None:
    return next((group.attention for group in shape.layers if group.attention), None)


def _layout(situation: Situation) -> dict[str, Any]:
    if situation.served is None:
        return dict.fromkeys(("tp", "pp", "dp", "ep", "devices", "name"))
    layout = situation.served.layout
    return {**layout.model_dump(), "devices": layout.devices, "name": layout.name}


def _step(step: TargetStep | None) -> dict[str, Any]:
    if step is None:
        return dict.fromkeys(OF_A_STEP)
    decode = step.point.decode
    message = max((op.message_bytes or 0.0 for op in decode.ops if op.collective == "all_reduce"), default=0.0)
    return {
        **{f"{name}_share": share for name, share in shares(decode).items() if name != "other"},
        "running": step.point.running,
        "waiting": step.point.asked - step.point.running,
        "kv_tokens": step.memory.cache_tokens,
        "tokens_each": step.tokens_each,
        "tokens_per_expert": decode.tokens_per_expert,
        "all_reduce_bytes": message,
        "prompt_share": step.point.prompt_share,
        "time_s": decode.time_s.mid,
    }
