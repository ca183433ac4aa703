"""File systems: what they lie on, and what is left of them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from assay.probes.files import Files
from assay.records.snapshot import Disk
from assay.units import GIB_BYTES

_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs", "9p", "virtiofs"}
_MEMORY = {"tmpfs", "ramfs", "devtmpfs"}
_LARGE_BYTES = 20 * GIB_BYTES
"""Disks that nothing of ours lies on are listed from this size on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of /proc/self/mountinfo."""

    device: str
    """Major and minor number: `259:1`."""
    path: str
    filesystem: str
    source: str


def read_disks(files: Files, folder: Path) -> list[Disk]:
    """The disks of the campaign, of models and of temporary files, then other large ones."""
    mounts = parse_mountinfo(files.text("proc/self/mountinfo") or "")
    roles: dict[str, list[str]] = {}
    for role, path in _places(folder, os.environ).items():
        if mount := _mount_of(path, mounts):
            roles.setdefault(mount.path, []).append(role)
    disks, seen = [], set()
    for mount in sorted(mounts.values(), key=lambda mount: (mount.path not in roles, len(mount.path), mount.path)):
        disk = None if mount.device in seen else _disk(files, mount, roles.get(mount.path, []))
        if disk and (disk.roles or (mount.source.startswith("/dev/") and disk.total_bytes >= _LARGE_BYTES)):
            disks.append(disk)
            seen.add(mount.device)
    return disks


def parse_mountinfo(text: str) -> dict[str, Mount]:
    """The mounts by their paths; of several on one path, the last, which hides the others."""
    mounts = {}
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if separator and len(fields) > 4 and len(kinds) > 1:  # noqa: PLR2004 - id, parent, device, root, path
            path = fields[4].replace("\\040", " ")
            mounts[path] = Mount(device=fields[2], path=path, filesystem=kinds[0], source=kinds[1])
    return mounts


def kind_of(files: Files, mount: Mount) -> str:
    """nvme, ssd, hdd, virtual, network, memory, overlay or unknown."""
    if mount.filesystem in _NETWORK or mount.filesystem.startswith("fuse."):
        return "network"
    if mount.filesystem in _MEMORY:
        return "memory"
    if mount.filesystem == "overlay":
        return "overlay"
    block = (files.root / "sys/dev/block" / mount.device).resolve()
    name = block.parent.name if (block / "partition").exists() else block.name
    if name.startswith("nvme"):
        return "nvme"
    if name.startswith(("vd", "xvd")):
        return "virtual"
    for disk in (block, block.parent):
        if rotates := files.text(disk / "queue/rotational"):
            return "hdd" if rotates == "1" else "ssd"
    return "unknown"


def free_bytes(folder: Path) -> int | None:
    """What is left on the disk of a folder; None when there is no such folder."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _places(folder: Path, environment: Mapping[str, str]) -> dict[str, Path]:
    cache = environment.get("HF_HOME") or Path(environment.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    models = Path(os.path.expanduser(cache))  # noqa: PTH111 - of an unknown user it leaves the path as it is
    return {"campaign": folder, "models": models, "temporary": Path(tempfile.gettempdir())}


def _mount_of(path: Path, mounts: Mapping[str, Mount]) -> Mount | None:
    resolved = path.resolve()
    return next((mounts[str(one)] for one in (resolved, *resolved.parents) if str(one) in mounts), None)


def _disk(files: Files, mount: Mount, roles: list[str]) -> Disk | None:
    try:
        usage = shutil.disk_usage(mount.path)
    except OSError:
        return None
    shown = mount.path if not mount.path.startswith("/home/") else "/home/..."  # names of users stay here
    return Disk(
        mount=shown,
        kind=kind_of(files, mount),
        filesystem=mount.filesystem,
        total_bytes=usage.total,
        free_bytes=usage.free,
        roles=roles,
    )
