"""Stands in for srun on the node of an allocation: the command becomes this process.

STANDIN_STATE is a folder: `commands.jsonl` in it records every call.
"""

import json
import os
import sys
from pathlib import Path

words = sys.argv[1:]
with (Path(os.environ["STANDIN_STATE"]) / "commands.jsonl").open("a") as record:
    record.write(json.dumps(words) + "\n")
while words[0].startswith("-"):
    words = words[1:]
os.execvp(words[0], words)  # noqa: S606 - what srun does
