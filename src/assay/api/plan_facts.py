"""What the plan is decided on: shape, box and step of a target."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError

if TYPE_CHECKING:
    from assay.plan.situation import Situation
    from assay.plan.target_step import Served
    from assay.records.base import FlagValue
    from assay.records.device import Box
    from assay.records.estimate import Host
    from assay.records.machine import EngineBuild, Machine, ModelFacts
    from assay.records.model_shape import ModelShape
    from assay.records.snapshot import MachineSnapshot
    from assay.records.spec import CampaignSpec

MEMORY_FRACTION = 0.9
"""Part of the memory that engines use where nothing is said."""
SETTINGS: dict[str, dict[str, str]] = {
    "sglang": {
        "tp": "--tp-size", "pp": "--pp-size", "ep": "--ep-size", "memory": "--mem-fraction-static",
        "running": "--max-running-requests", "cache": "--kv-cache-dtype",
    },
    "vllm": {
        "tp": "--tensor-parallel-size", "pp": "--pipeline-parallel-size", "dp": "--data-parallel-size",
        "memory": "--gpu-memory-utilization", "running": "--max-num-seqs", "cache": "--kv-cache-dtype",
    },
    "trtllm": {
        "tp": "--tensor_parallel_size", "pp": "--pipeline_parallel_size", "ep": "--moe_expert_parallel_size",
        "memory": "--free_gpu_memory_fraction", "running": "--max_batch_size",
    },
}  # fmt: skip
"""What each engine calls the settings that the estimate needs."""
SETTINGS["rehearsal"] = SETTINGS["sglang"]
PREFIX_CACHE = {"sglang": ("--disable-radix-cache", False), "vllm": ("--enable-prefix-caching", True)}
"""Switches of the prefix cache, which is on by default, and how each stands when it is. Sources: SGLang, its page
"Server Arguments"; vLLM, `vllm.config.CacheConfig.enable_prefix_caching`. The simulated engine has no such cache."""
ALL_EXPERTS = {"vllm": "--enable-expert-parallel"}
"""Switches that spread the experts over every rank."""
TUNED_MOE = Path("assay-tuned")
"""Where `assay tune moe`, called in a campaign's folder, writes its configurations."""


def situation_of(
    spec: CampaignSpec,
    machine: Machine,
    build: EngineBuild,
    model: ModelFacts,
    *,
    folder: Path | None = None,
    snapshot: MachineSnapshot | None = None,
    on: str | None = None,
    shape: ModelShape | None = None,
) -> Situation:
    """Everything that can be found out of a target without starting it.

    Args:
        spec: the campaign.
        machine: where it runs.
        build: the engine.
        model: what its file says.
        folder: the campaign's: tuned kernel configurations are looked for in it.
        snapshot: the machine as it is now.
        on: a box to plan for in place of this machine's GPUs.
        shape: the model's, where it is known already (a record has it); None: its files are read.
    """
    from assay.plan.situation import Situation
    from assay.plan.target_step import target_step

    missing: dict[str, str] = {}
    shape = shape or shape_of(model, spec, missing)
    served = served_of(spec, build)
    box = box_of(spec, machine, on, missing)
    step = None
    if shape is not None and box is not None and served is not None:
        from assay.roofline.layout_choice import used

        try:
            own = used(box, served.layout) if served.layout.devices <= box.count else box
            found = target_step(shape, own, served, spec.workload)
        except (AssayError, ValueError) as error:
            found = getattr(error, "message", str(error))
        step = None if isinstance(found, str) else found
        missing |= {"step": found} if isinstance(found, str) else {}
    elif served is None:
        missing["step"] = f"no estimate is made for {build.engine}"
    return Situation(
        spec=spec, machine=machine, build=build, model=model, snapshot=snapshot, shape=shape, box=box, served=served,
        step=step, missing=missing, tuned={"moe": _tuned(folder, build.engine)}, elsewhere=on is not None,
    )  # fmt: skip


def _tuned(folder: Path | None, engine: str) -> str | None:
    """VLLM looks for the files in the folder itself, SGLang below it by Triton's version."""
    found = folder / TUNED_MOE if folder else None
    pattern = "configs/triton_*/E=*.json" if engine == "sglang" else "E=*.json"
    return str(found.resolve()) if found and any(found.glob(pattern)) else None


def shape_of(model: ModelFacts, spec: CampaignSpec, missing: dict[str, str]) -> ModelShape | None:
    """The model's shape by its files, else by the names it goes by; None with the reason in `missing`."""
    from assay import models

    problem = ""
    for name in dict.fromkeys((model.path, spec.target.model, Path(spec.target.model).name.lower())):
        try:
            return models.load(name)
        except AssayError as error:
            problem = problem or error.message
    missing["shape"] = problem
    return None


def box_of(spec: CampaignSpec, machine: Machine, on: str | None, missing: dict[str, str]) -> Box | None:
    """The box of a target: as named, a rehearsal's, or the GPUs of the machine; None with the reason in `missing`."""
    from assay.probes.devices import box

    named = on or (str(spec.target.flags["--box"]) if "--box" in spec.target.flags else None)
    if named is None and not machine.gpus:
        missing["box"] = "ceilings by calculation are for GPUs, and none was found here"
        return None
    try:
        return box(named or f"{len(machine.gpus)}x{machine.gpus[0].name}")
    except AssayError as error:
        if on is not None:
            raise
        missing["box"] = error.message
        return None


def host_of(spec: CampaignSpec, build: EngineBuild) -> Host:
    """How the engine schedules and launches, by its version and the baseline's flags."""
    from assay.plan import spellings
    from assay.roofline import scheduling

    told = {name: spellings.value(build, spec.target.flags, name) for name in scheduling.READ}
    given = {name: value for name, value in told.items() if value is not None}
    return scheduling.host_of(build.engine, build.version, {**spec.target.flags, **given, **spec.target.env})


def served_of(spec: CampaignSpec, build: EngineBuild) -> Served | None:
    """Layout and limits that the baseline's flags name; None for engines whose steps are not estimated."""
    from assay.api.measured_loads import shares_steps
    from assay.plan import spellings
    from assay.plan.target_step import Served
    from assay.records.estimate import Layout
    from assay.roofline.experts import RANDOM_WEIGHTS

    names = SETTINGS.get(build.engine)
    if names is None:
        return None

    def given(what: str, default: Any = None) -> Any:
        return spellings.value(build, spec.target.flags, names[what], default) if what in names else default

    sizes = {key: _size(given(key)) for key in ("tp", "pp", "dp", "ep")}
    if (switch := ALL_EXPERTS.get(build.engine)) and spellings.value(build, spec.target.flags, switch, default=False):
        sizes["ep"] = sizes["tp"] * sizes["dp"]
    fraction, limit = given("memory"), given("running")
    return Served(
        layout=Layout(**sizes),
        memory_fraction=float(fraction) if isinstance(fraction, int | float) and 0 < fraction <= 1 else MEMORY_FRACTION,
        cache_bytes_per_element=1.0 if "fp8" in str(given("cache", "")) else 2.0,
        running_limit=limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else None,
        host=None if build.engine == "rehearsal" else host_of(spec, build),  # its own version is no engine's
        shares_steps=shares_steps(build, spec.target.flags),
        routing=RANDOM_WEIGHTS if spec.target.has_random_weights else None,
        caches_prefixes=_caches_prefixes(spec, build),
    )


def _caches_prefixes(spec: CampaignSpec, build: EngineBuild) -> bool:
    from assay.plan import spellings

    if build.engine not in PREFIX_CACHE:
        return build.engine != "rehearsal"
    switch, on = PREFIX_CACHE[build.engine]
    return bool(spellings.value(build, spec.target.flags, switch, default=on)) is on


def _size(value: FlagValue | None) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else 1


def snapshot_here(folder: Path) -> MachineSnapshot | None:
    """This machine as it is now; None where it cannot be read."""
    from assay.probes.machine import MachineProbe

    with suppress(OSError, AssayError):
        return MachineProbe(folder=folder).stock()
    return None
