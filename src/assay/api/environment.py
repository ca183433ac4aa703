"""Is what would be measured now still what the record is about? Machine, engine and model decide what a number is."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.records.spec import Target
    from assay.records.state import CampaignState

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def refuse_another(state: CampaignState, target: Target) -> None:
    """Numbers of different machines, engine builds or model files never pool: the campaign does not go on with them.

    Raises:
        UsageError: one of them is not what the record began with; nothing measured is touched.
    """
    if not state.runs:
        return
    from assay import wiring

    engine = wiring.engine(target.engine)
    machine, build, model = wiring.probe().machine(), engine.find(target), engine.model(target)
    now_and_then = {
        "machine": (machine.fingerprint, state.machine.fingerprint),
        f"{build.engine} build": (build.version, state.build.version),
        "model file": (model.sha256[:12], state.model.sha256[:12]),
    }
    differ = [f"{name} {now} (recorded: {then})" for name, (now, then) in now_and_then.items() if now != then]
    if differ:
        raise UsageError(
            f"this campaign was measured on something else: {'; '.join(differ)}",
            hint="carry on where it began, or copy assay.toml into a new folder and ask again here: numbers never pool",
        )


def host() -> str:
    """Which machine this is since it was last started, as eight hex digits: no bracket spans two of them."""
    boot = BOOT_ID.read_text(encoding="ascii").strip() if BOOT_ID.exists() else ""
    return hashlib.sha256(f"{socket.gethostname()}/{boot}".encode()).hexdigest()[:8]
