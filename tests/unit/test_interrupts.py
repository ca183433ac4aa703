"""What ends a command from outside."""

from __future__ import annotations

import subprocess
import sys

LOSES_IT = """
import os, signal, time, weakref
from assay.__main__ import heed_interrupts

class Thing:
    pass

def interrupted(_):
    os.kill(os.getpid(), signal.SIGINT)
    [None for _ in range(1000)]  # bytecode in which the signal arrives: what it raises here, Python drops

heed_interrupts()
thing = Thing()
watcher = weakref.ref(thing, interrupted)
try:
    del thing
    print("went on", flush=True)
    time.sleep(30)
except KeyboardInterrupt:
    print("ended")
"""


def test_a_ctrl_c_that_python_drops_in_a_callback_still_ends_the_command() -> None:
    done = subprocess.run([sys.executable, "-c", LOSES_IT], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n") == ["went on", "ended", ""]
    assert done.stderr == ""
