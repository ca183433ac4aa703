"""The life of the simulated server after its command line was read: the stages of a launch, then serving."""

from __future__ import annotations

import asyncio
import gc
import signal
import time

from assay.rehearsal import faults, log
from assay.rehearsal.flags import CommandLine
from assay.rehearsal.machine import Machine, build
from assay.rehearsal.service import Service

BACKLOG = 4096
TURNS_OFF = (signal.SIGINT, signal.SIGTERM)


def live(line: CommandLine, version: str) -> int:
    """Launch and serve until SIGINT or SIGTERM; the exit code.

    Raises:
        UsageError: no such model or box, or an impossible layout.
    """
    machine = build(line)
    _launch(line, machine)
    return asyncio.run(_serve(line, machine, version))


def _launch(line: CommandLine, machine: Machine) -> None:
    """The stages before it listens, each with its scaled time, its lines, and its faults."""
    scale, times = line.given["time_scale"], line.world.launch
    for number in TURNS_OFF:
        signal.signal(number, signal.SIG_DFL)  # still starting: nothing to end in good order
    log.say("Load weight begin.")
    time.sleep(times.weights_s / scale)
    faults.at_launch(line, "fails-load")
    log.say(f"Load weight end. elapsed={times.weights_s:.2f} s (simulated), "
            f"weights={machine.budget.weight_bytes / 1e9:.2f} GB a device")  # fmt: skip
    faults.tell_fallbacks(line)
    time.sleep(times.memory_s / scale)
    faults.at_launch(line, "fails-kv-allocation")
    if not machine.budget.fits:
        faults.end(f"RuntimeError: Not enough memory for the KV cache: {machine.budget.notes[0]}")
    log.say(f"Memory pool end. max_total_num_tokens={machine.budget.cache_tokens}")
    log.say("Capture cuda graph begin.")
    time.sleep(times.capture_s / scale)
    faults.at_launch(line, "fails-graph-capture")
    log.say(f"Capture cuda graph end. elapsed={times.capture_s:.2f} s (simulated)")


async def _serve(line: CommandLine, machine: Machine, version: str) -> int:
    service = Service(line, machine, version)
    loop = asyncio.get_running_loop()
    try:
        listener = await loop.create_server(service.connection, line.given["host"], line.given["port"], backlog=BACKLOG)
    except OSError as error:
        log.say(f"cannot listen on {line.given['host']}:{line.given['port']}: {error}", "ERROR")
        return 1
    port = listener.sockets[0].getsockname()[1]
    log.say(f"The server is ready on http://{line.given['host']}:{port} (simulated, x{line.given['time_scale']:g})")
    over = asyncio.Event()
    for number in TURNS_OFF:
        loop.add_signal_handler(number, over.set)
    gc.freeze()
    work = asyncio.ensure_future(service.serve())
    stop = asyncio.ensure_future(over.wait())
    await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()  # a malfunction of ours: let it be seen
    log.say("shutting down")
    return 0
