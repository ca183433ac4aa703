"""A simulated inference server: `python -m assay.rehearsal.server --model glm-5-nvfp4 --box 8xRTX-PRO-6000 ...`.

A real process that speaks OpenAI's protocol over loopback. It has no model and no GPU: how long its steps take is
calculated (`assay.roofline`), then changed by the hidden truth and the noise of a world file. SIMULATED, as everything
it says of itself repeats.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version

from assay.errors import AssayError
from assay.rehearsal import log
from assay.rehearsal.flags import ERROR_EXIT, PROGRAM, Refused, read

VERSION = f"rehearsal {version('assay')} (simulated)"


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line, launch, and serve until SIGINT or SIGTERM; the exit code."""
    words = sys.argv[1:] if words is None else words
    if "--version" in words:
        log.bare(VERSION)
        return 0
    try:
        line = read(words)
        log.say(f"SIMULATED: {VERSION}; no model, no GPU. World: {line.world.title}")
        log.say(f"server_args={line.given}")
        from assay.rehearsal.launching import live  # noqa: PLC0415 - `--help` is asked often, and needs no roofline

        return live(line, VERSION)
    except Refused as refused:
        log.bare(f"{PROGRAM}: error: {refused}")
    except AssayError as error:
        log.bare(f"{PROGRAM}: error: {error.message}")
    return ERROR_EXIT


if __name__ == "__main__":
    sys.exit(main())
