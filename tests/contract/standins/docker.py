"""Stands in for docker and podman: `run`, `ps`, `stop`, `rm` on processes, which see the variables that were named.

STANDIN_STATE is a folder: `commands.jsonl` in it records every call, `<name>.pid` is a container's process, and
`image` holds what its PATH is.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

STATE = Path(os.environ["STANDIN_STATE"])
WITH_VALUE = {"--name", "--network", "--mount", "--env", "--gpus", "--device", "--entrypoint", "--ipc", "--shm-size"}


def alive(name: str) -> int | None:
    try:
        pid = int((STATE / f"{name}.pid").read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    state = Path(f"/proc/{pid}/stat")
    return None if state.exists() and state.read_text().split(") ")[1].startswith("Z") else pid


def run(words: list[str]) -> int:
    values: dict[str, str] = {}
    env = {"PATH": (STATE / "image").read_text().strip(), "HOME": "/root"}
    while words[0].startswith("-"):
        word = words.pop(0)
        if word in WITH_VALUE:
            values[word] = words.pop(0)
            if word == "--env" and values[word] in os.environ:
                env[values[word]] = os.environ[values[word]]
    name = values["--name"]
    if alive(name):
        sys.exit("docker: Error response from daemon: Conflict. The container name is already in use")
    child = subprocess.Popen([values["--entrypoint"], *words[1:]], env=env, start_new_session=True)
    (STATE / f"{name}.pid").write_text(str(child.pid))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda caught, _: os.kill(child.pid, caught))
    code = child.wait()
    with contextlib.suppress(ProcessLookupError):  # what is left ends with the first process of a container
        os.killpg(child.pid, signal.SIGKILL)
    (STATE / f"{name}.pid").unlink()
    return code if code >= 0 else 128 - code


def stop(words: list[str]) -> int:
    patience_s, name = float(words[1]), words[2]
    pid = alive(name)
    if pid is None:
        return 1
    os.kill(pid, signal.SIGTERM)
    deadline_s = time.monotonic() + patience_s
    while alive(name) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return 0


def main() -> int:
    with (STATE / "commands.jsonl").open("a") as record:
        record.write(json.dumps(sys.argv[1:]) + "\n")
    command, words = sys.argv[1], sys.argv[2:]
    if (STATE / "down").exists():
        print("docker: Cannot connect to the Docker daemon. Is the docker daemon running?")  # noqa: T201 - what it says
        return 125 if command == "run" else 1
    if command == "run":
        return run(words)
    if command == "ps":
        name = words[-1].removeprefix("name=^").removesuffix("$")
        print("c0ffee" if alive(name) else "", end="")  # noqa: T201 - what the program says
        return 0
    if command == "stop":
        return stop(words)
    if command == "rm":
        if pid := alive(words[-1]):
            os.killpg(pid, signal.SIGKILL)
        return 0
    sys.exit(f"unknown command {command}")


sys.exit(main())
