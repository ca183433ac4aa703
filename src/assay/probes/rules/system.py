"""Rules about disks, limits, other servers and software versions."""

from __future__ import annotations

from assay.probes.rules.say import blocker, note, size, warning
from assay.probes.software import torch_cuda
from assay.records.machine import Finding
from assay.records.snapshot import MachineSnapshot, Server
from assay.units import GIB_BYTES, MIB_BYTES

DISK_WANTED_BYTES = GIB_BYTES
DISK_NEEDED_BYTES = 64 * MIB_BYTES
FULL_SHARE = 0.05
FULL_BYTES = 20 * GIB_BYTES
SHM_WANTED_BYTES = GIB_BYTES
OPEN_FILES_WANTED = 4096
LOCKED_WANTED_BYTES = GIB_BYTES
DRIVER_FOR_CUDA = {11: 450, 12: 525, 13: 580}
"""Oldest driver by CUDA's major version. Source: CUDA Compatibility, "Minor Version Compatibility", table 1."""


def campaign_disk(seen: MachineSnapshot) -> Finding | None:
    """No room for the record."""
    disk = next((disk for disk in seen.disks if "campaign" in disk.roles), None)
    if disk is None or disk.free_bytes >= DISK_WANTED_BYTES:
        return None
    say = blocker if disk.free_bytes < DISK_NEEDED_BYTES else warning
    return say(
        "Little disk space is left",
        f"free for the campaign, at {disk.mount}: {size(disk.free_bytes)}",
        "Free some space, or put the campaign elsewhere (`--folder`).",
    )


def disk_full(seen: MachineSnapshot) -> Finding | None:
    """Models and compile caches will not fit."""
    full = [
        disk
        for disk in seen.disks
        if {"models", "temporary"} & set(disk.roles)
        and "campaign" not in disk.roles
        and disk.free_share < FULL_SHARE
        and disk.free_bytes < FULL_BYTES
    ]
    if not full:
        return None
    return warning(
        "A disk is nearly full",
        "; ".join(f"{disk.mount} ({', '.join(disk.roles)}): {size(disk.free_bytes)} free" for disk in full),
        "Free some: engines write compile caches there, and stop in mid-download when it is full.",
    )


def slow_model_disk(seen: MachineSnapshot) -> Finding | None:
    """Weights come slowly."""
    disk = next((disk for disk in seen.disks if "models" in disk.roles), None)
    if disk is None or disk.kind not in ("hdd", "network"):
        return None
    return note(
        "Models lie on a slow disk",
        f"{disk.mount}: {disk.kind}, {disk.filesystem}",
        "Every start of a server reads them: copy the model to a local SSD to save time in each run.",
    )


def shm(seen: MachineSnapshot) -> Finding | None:
    """NCCL and the workers of an engine exchange data there."""
    limits = seen.limits
    if not seen.gpu.gpus or limits.shm_bytes is None or limits.shm_bytes >= SHM_WANTED_BYTES:
        return None
    return warning(
        "/dev/shm is small",  # noqa: S108 - words
        f"its size: {size(limits.shm_bytes)}",
        "Workers and NCCL fail or fall back when it is full: `--shm-size=16g` or `--ipc=host` with docker.",
    )


def open_files(seen: MachineSnapshot) -> Finding | None:
    """Each request in flight is a socket."""
    limit, hard = seen.limits.open_files, seen.limits.open_files_hard
    if limit is None or limit >= OPEN_FILES_WANTED:
        return None
    return note(
        "Few files may be open at once",
        f"ulimit -n: {limit}, hard limit: {'none' if hard is None else hard}",
        "Each request in flight is one: `ulimit -n 65536` in the shell that starts Assay and the server.",
    )


def locked_memory(seen: MachineSnapshot) -> Finding | None:
    """Neither `--mlock` nor RDMA gets what it asks for."""
    limit = seen.limits.locked_bytes
    if "locked_bytes" in seen.limits.unknown or limit is None or limit >= LOCKED_WANTED_BYTES:
        return None
    return note(
        "Little memory may be locked",
        f"ulimit -l: {size(limit)}",
        "Matters for `--mlock` and RDMA between machines: `ulimit -l unlimited`, or `--ulimit memlock=-1` (docker).",
    )


def servers(seen: MachineSnapshot) -> Finding | None:
    """Others use the same memory bandwidth."""
    if not seen.servers:
        return None
    return warning(
        "Another inference server is running",
        "; ".join(_server(server) for server in seen.servers),
        "Stop it if it is yours: it competes for memory and its bandwidth even when it is idle on the CPU meter.",
    )


def driver_for_torch(seen: MachineSnapshot) -> Finding | None:
    """The installed torch will not find the GPUs."""
    wanted, driver = torch_cuda(seen.software), seen.machine.gpu_driver_major
    oldest = DRIVER_FOR_CUDA.get(wanted[0]) if wanted else None
    is_nvidia = any(gpu.vendor == "nvidia" for gpu in seen.gpu.gpus)
    if not is_nvidia or wanted is None or oldest is None or driver is None or driver >= oldest:
        return None
    return warning(
        "The driver is older than the installed torch wants",
        f"driver {seen.gpu.driver}, torch {seen.software['torch']} is for CUDA {wanted[0]}.{wanted[1]}: "
        f"driver {oldest} or later",
        "Update the driver, or install a torch for an older CUDA; cuda-compat helps on data-centre GPUs only.",
    )


def _server(server: Server) -> str:
    name = " ".join(part for part in (server.engine or server.program or "unknown", server.version) if part)
    where = [f"process {server.pid}" if server.pid else "", f"port {server.port}" if server.port else ""]
    return f"{', '.join(part for part in where if part)}: {name}"
