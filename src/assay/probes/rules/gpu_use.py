"""Rules about the use of GPUs: power, heat, clocks, modes, and who else is on them."""

from __future__ import annotations

from assay.probes.rules.say import blocker, each, note, size, warning
from assay.records.gpu import Gpu
from assay.records.machine import Finding
from assay.records.snapshot import MachineSnapshot
from assay.units import GIB_BYTES

POWER_CAP_SHARE = 0.99
"""Of the default limit: drivers round."""
HOT_MARGIN_C = 5
HELD_BYTES = 2 * GIB_BYTES
"""Drivers and contexts of nobody's hold a few hundred MiB."""
CLOCK_SHARE = 0.99
_HOT_REASONS = {
    "sw-thermal": "too hot",
    "hw-thermal": "too hot",
    "hw-power-brake": "power brake",
    "hw-slowdown": "hardware slowdown",
}


def power_cap(seen: MachineSnapshot) -> Finding | None:
    """Somebody has lowered the limit."""
    capped = [
        gpu
        for gpu in seen.gpu.gpus
        if gpu.power.limit_w and gpu.power.default_limit_w
        and gpu.power.limit_w < POWER_CAP_SHARE * gpu.power.default_limit_w
    ]  # fmt: skip
    if not capped:
        return None
    return warning(
        "A power limit is below its default",
        each(capped, lambda gpu: f"{gpu.power.limit_w:.0f} W, default {gpu.power.default_limit_w:.0f} W"),
        "If it is not meant: `nvidia-smi -pl WATTS` (root). Prefill and large batches feel it first.",
    )


def throttled(seen: MachineSnapshot) -> Finding | None:
    """The clock is held down right now."""
    slowed = [gpu for gpu in seen.gpu.gpus if _slowed(gpu)]
    if not slowed:
        return None
    return warning(
        "A GPU is throttled",
        each(slowed, lambda gpu: f"{', '.join(_slowed(gpu))}{_at(gpu)}"),
        "Look after cooling and power; runs under throttling do not count.",
    )


def hot(seen: MachineSnapshot) -> Finding | None:
    """About to be throttled."""
    near = [
        gpu
        for gpu in seen.gpu.gpus
        if gpu.temperature_c is not None and gpu.slowdown_temperature_c
        and gpu.temperature_c >= gpu.slowdown_temperature_c - HOT_MARGIN_C and not _slowed(gpu)
    ]  # fmt: skip
    if not near:
        return None
    return warning(
        "A GPU is nearly too hot",
        each(near, lambda gpu: f"{gpu.temperature_c:.0f} \N{DEGREE SIGN}C, slows down at "
                               f"{gpu.slowdown_temperature_c:.0f} \N{DEGREE SIGN}C"),
        "Let it cool down, and look after the air flow, before measuring.",
    )  # fmt: skip


def clocks_set(seen: MachineSnapshot) -> Finding | None:
    """Somebody has fixed the clock."""
    told = [gpu for gpu in seen.gpu.gpus if _clock_below(gpu) or "application-clocks" in (gpu.throttle_reasons or [])]
    if not told:
        return None
    return note(
        "GPU clocks are set by hand",
        each(told, _clock_words),
        "Steadier, but not what others will see: `nvidia-smi -rgc` and `nvidia-smi -rac` (root) take it back.",
    )


def in_use(seen: MachineSnapshot) -> Finding | None:
    """Somebody else works on it."""
    used = [gpu for gpu in seen.gpu.gpus if any(process.kind == "compute" for process in gpu.processes or [])]
    if not used:
        return None
    return warning(
        "Another process uses a GPU",
        each(used, _process_words),
        "Stop it if it is yours, or leave that GPU out (CUDA_VISIBLE_DEVICES): its memory and time are missing.",
    )


def memory_held(seen: MachineSnapshot) -> Finding | None:
    """Memory is gone, and nobody to be seen has it."""
    held = [
        gpu
        for gpu in seen.gpu.gpus
        if not gpu.processes and gpu.memory_used_bytes is not None and gpu.memory_used_bytes > HELD_BYTES
    ]
    if not held:
        return None
    return warning(
        "GPU memory is held by something that cannot be seen from here",
        each(held, lambda gpu: f"{size(gpu.memory_used_bytes or 0)} of {size(gpu.memory_bytes or 0)} in use"),
        "Another container or user may run there, or a server died badly: ask on the host with `nvidia-smi`.",
    )


def mig(seen: MachineSnapshot) -> Finding | None:
    """Programs get a slice of the GPU."""
    sliced = [gpu for gpu in seen.gpu.gpus if gpu.mig_enabled]
    if not sliced:
        return None
    return warning(
        "MIG is on",
        each(sliced, lambda gpu: f"{gpu.mig_instances or 0} instances"),
        "Programs get a slice, without peer-to-peer or NVLink: `nvidia-smi -mig 0` (root) gives the whole GPU back.",
    )


def compute_mode(seen: MachineSnapshot) -> Finding | None:
    """Who may use it at all."""
    restricted = [gpu for gpu in seen.gpu.gpus if gpu.compute_mode not in (None, "default")]
    if not restricted:
        return None
    say = blocker if any(gpu.compute_mode == "prohibited" for gpu in restricted) else note
    return say(
        "The compute mode restricts who may use a GPU",
        each(restricted, lambda gpu: gpu.compute_mode or ""),
        "`nvidia-smi -c DEFAULT` (root) opens it; exclusive modes refuse a second process, such as a profiler.",
    )


def persistence(seen: MachineSnapshot) -> Finding | None:
    """The driver forgets settings whenever the GPU is idle."""
    off = [gpu for gpu in seen.gpu.gpus if gpu.persistence is False]
    if not off:
        return None
    return note(
        "Persistence mode is off",
        each(off, lambda _: "off"),
        "Starts are slower, and limits set by hand are lost between them: `nvidia-smi -pm 1` (root).",
    )


def _slowed(gpu: Gpu) -> list[str]:
    return [word for reason in gpu.throttle_reasons or [] if (word := _HOT_REASONS.get(reason))]


def _at(gpu: Gpu) -> str:
    return "" if gpu.temperature_c is None else f", {gpu.temperature_c:.0f} \N{DEGREE SIGN}C"


def _clock_below(gpu: Gpu) -> bool:
    told, default = gpu.clocks.sm_application_hz, gpu.clocks.sm_application_default_hz
    return bool(told and default and told < CLOCK_SHARE * default)


def _clock_words(gpu: Gpu) -> str:
    told, most = gpu.clocks.sm_application_hz, gpu.clocks.sm_max_hz
    now = "clock limited by a setting" if told is None else f"application clock {told / 1e6:.0f} MHz"
    return now if most is None else f"{now}, at most {most / 1e6:.0f} MHz possible"


def _process_words(gpu: Gpu) -> str:
    processes = [process for process in gpu.processes or [] if process.kind == "compute"]
    words = [
        f"{process.program or 'unknown'} (process {process.pid}"
        + (f", {size(process.memory_bytes)})" if process.memory_bytes is not None else ")")
        for process in processes[:3]
    ]
    return ", ".join(words) + (f" and {len(processes) - 3} more" if len(processes) > 3 else "")  # noqa: PLR2004
