"""CPU and memory limits of control groups, version 1 and 2: what a container may use of its host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_UNLIMITED_BYTES = 1 << 60
"""Version 1 writes "no limit" as the largest number of pages."""
USUAL_PERIOD_US = "100000"
"""Of a `cpu.max` that tells no period."""
MOST_DIGITS = 20
"""Of a number of 64 bits."""


def parse_membership(text: str) -> dict[str, str]:
    """/proc/self/cgroup as controller to group path; the unified hierarchy goes by "" ."""
    groups: dict[str, str] = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if number and colon:
            groups |= dict.fromkeys(controllers.split(","), path)
    return groups


def parse_cpu_max(text: str) -> float | None:
    """Cores that a version 2 `cpu.max` allows; None: no limit, or no such text."""
    quota, _, period = text.strip().partition(" ")
    return parse_cfs(quota, period or USUAL_PERIOD_US)


def parse_cfs(quota_text: str, period_text: str) -> float | None:
    """Cores that version 1 `cpu.cfs_quota_us` and `cpu.cfs_period_us` allow; None: no limit, or no such texts."""
    quota, period = _whole(quota_text), _whole(period_text)
    return quota / period if quota and period else None


def quota_cores(root: Path) -> float | None:
    """The tightest CPU quota over this process's group and the groups around it, in cores; None: no limit."""
    limits = [parse_cpu_max(text) for folder in _folders(root, "") if (text := _read(folder / "cpu.max"))]
    for folder in _folders(root, "cpu"):
        quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
        if quota and period:
            limits.append(parse_cfs(quota, period))
    return min((limit for limit in limits if limit is not None), default=None)


def memory_limit_bytes(root: Path) -> int | None:
    """The tightest memory limit over this process's group and the groups around it; None: no limit."""
    texts = [_read(folder / "memory.max") for folder in _folders(root, "")]
    texts += [_read(folder / "memory.limit_in_bytes") for folder in _folders(root, "memory")]
    limits = [limit for text in texts if text and (limit := _whole(text))]
    return min((limit for limit in limits if limit < _UNLIMITED_BYTES), default=None)


def usable_cores(logical: int, affinity: int, quota: float | None) -> int:
    """Whole cores that this process can keep busy, at least one."""
    allowed = min(logical, affinity)
    return max(1, allowed if quota is None else min(allowed, int(quota)))


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Folders of this process's group and of those around it, up to the controller's mount point.

    Inside a container the path may be the host's, of which only the mount point itself exists.
    """
    membership = _read(root / "proc/self/cgroup")
    path = parse_membership(membership).get(controller) if membership else None
    if path is None:
        return
    mount = root / "sys/fs/cgroup" / controller
    folder = mount / path.lstrip("/")
    while folder != mount and mount in folder.parents:
        yield folder
        folder = folder.parent
    yield mount


def _whole(text: str) -> int | None:
    """A whole number above zero; None for `max`, -1 and what is none."""
    plain = text.strip()
    return int(plain) or None if plain.isascii() and plain.isdecimal() and len(plain) <= MOST_DIGITS else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
