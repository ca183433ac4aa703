"""Stands in for ssh and the machine behind it: joins the words as ssh does and gives them to a shell, as sshd does.

The other side has the variables PATH and HOME and no others. STANDIN_STATE is a folder: `commands.jsonl` records every
call, `remote` holds what PATH is over there. Ports are not forwarded: the other side is this machine.
"""

import json
import os
import sys
from pathlib import Path

STATE = Path(os.environ["STANDIN_STATE"])


def main() -> None:
    with (STATE / "commands.jsonl").open("a") as record:
        record.write(json.dumps(sys.argv[1:]) + "\n")
    words = sys.argv[sys.argv.index("--") + 1 :]
    host, command = words[0], " ".join(words[1:])
    if host == "unreachable":
        print("ssh: connect to host unreachable port 22: No route to host", file=sys.stderr)  # noqa: T201 - what the program says
        sys.exit(255)
    env = {"PATH": (STATE / "remote").read_text().strip(), "HOME": str(STATE)}
    os.execve("/bin/sh", ["sh", "-c", command], env)  # noqa: S606 - what sshd does


main()
