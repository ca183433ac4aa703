"""Whatever people hand to Assay, mutated: nothing may crash, hang, or eat the machine's memory.

    python benchmarks/fuzz.py                       # 100,000 inputs, from what the package ships
    python benchmarks/fuzz.py --count 20000 --logs FOLDER --only logs

Logs go through `assay.failures.explain`, help texts through both parsers of `assay.flags.help_text`, configurations of
models through `assay.models.load`, questions (assay.toml) through `assay.store.spec_file.read_spec`, catalogue entries
through `assay.catalogue.entry_file.read_entry`, improvement documents through `assay.catalogue.front_matter.parse`, and
lines with secrets through `assay.store.redact.redact`. An input may be refused with an AssayError, which tells a person
what to do; any other exception is a defect. An alarm bounds the time of each input. The seed fixes every input, and a
defect is kept in a file, so that it can be shown again.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from random import Random

from assay.catalogue.entry_file import read_entry
from assay.catalogue.front_matter import parse
from assay.errors import AssayError
from assay.failures import Log, explain
from assay.flags.help_text import parse_argparse, parse_click
from assay.models import load
from assay.store.redact import redact
from assay.store.spec_file import read_spec

SEED = 20_260_101
MOST_S = 2.0
"""Longest that one input may take, of processor time: a busy machine is no defect."""
MOST_MEMORY_BYTES = 3 << 30
"""Address space of the whole process: an input that asks for more ends it."""
LONGEST = 30_000
"""Characters of an input; logs of any length are read line by line, and a line is cut."""
MOST_KEPT = 20
"""Of each kind, of the inputs that are defects."""
GENTLE = 0.6
"""Share of inputs with a structure of which only values are changed."""
SHARES = {
    "logs": 40,
    "help texts": 20,
    "model configs": 15,
    "questions": 10,
    "catalogue": 6,
    "documents": 6,
    "secrets": 3,
}
"""Percent of the inputs."""
STRANGE = "\x00\t\n\r\x1b\"'()[]{}\\:=#-,.\u2028\u00e9\U0001f600\ud800"
HOSTILE = (
    *("1e999", "-1", "0", "99999999999999999999999", "NaN", "true", "null", "[]", "{}", '""', "\x00", "0.0000001"),
    *("--", "---\n", "'''", '"""', "$(reboot)", "../../etc/passwd", "!!python/object/apply:os.system", "&a [*a, *a]"),
)
VALUES = (
    "1e300",
    "-1",
    "0",
    '""',
    '"x"',
    "true",
    "[]",
    "{}",
    "nan",
    "-inf",
    "9223372036854775807",
    "[[1]]",
    "1",
    "0.5",
)
"""Hostile too, and yet values to a reader of TOML or YAML."""
LOG = """INFO 01-01 10:00:00 [api_server.py:1] vLLM API server version 0.14.0
(EngineCore_DP0 pid=7) ERROR 01-01 10:00:09 [core.py:718] Traceback (most recent call last):
(EngineCore_DP0 pid=7) ERROR 01-01 10:00:09 [core.py:718]   File "/x/vllm/worker/gpu_worker.py", line 1, in load_model
(EngineCore_DP0 pid=7) ERROR 01-01 10:00:09 [core.py:718]     self.model_runner.load_model()
(EngineCore_DP0 pid=7) ERROR 01-01 10:00:09 [core.py:718] torch.OutOfMemoryError: CUDA out of memory.
"""
ARGPARSE = """usage: launch_server.py [-h] [--tp-size TP_SIZE]

options:
  -h, --help            show this help message and exit
  --tp-size TP_SIZE, --tensor-parallel-size TP_SIZE
                        The tensor parallelism size. (default: 1)
  --kv-cache-dtype {auto,fp8_e5m2,fp8_e4m3}
                        Data type for kv cache storage. (default: auto)
"""
CLICK = """Usage: trtllm-serve [OPTIONS] MODEL

Options:
  --backend [pytorch|tensorrt]    The backend.  [default: pytorch]
  --max_batch_size INTEGER        Maximum number of requests.  [default: 2048]
"""
DOCUMENT = """---
id: try-this
flags: {--parallel: 8, --swa-full: true}
predicted: [0.0, 0.1]
approved: no
---

# Try this

Because.
"""
QUESTION = """name = "chat"

[target]
engine = "llamacpp"
model = "x.gguf"
start_timeout_s = 60.0

[target.flags]
"--ctx-size" = 4096

[target.env]
HF_HOME = "/models"

[workload]
concurrency = 4
input_tokens = [24, 256]
output_tokens = [16, 128]

[objective]
metric = "output_tokens_per_s"
min_effect = 0.02

[budget]
total_s = 3600.0

[policy]
ask_before_tier = 3
"""
SECRETS = """{'api_key': ['Zq7-made-up'], "hf_token": "hf_madeupmadeupmadeup12"} --api-key Zq7 TOKEN=abc9
Bearer abc123def X-Api-Key: made9up https://user:pass@host/?token=abc sk-proj-made-up-9 MAX_TOKENS=4096
"""


class TooLong(BaseException):
    """An input took longer than it may; no `except Exception` of ours can swallow it."""


@dataclass
class Told:
    """What one kind of input did."""

    num_inputs: int = 0
    num_refused: int = 0
    slowest_s: float = 0.0
    total_s: float = 0.0
    defects: Counter[str] = field(default_factory=Counter)


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--count", type=int, default=100_000)
    arguments.add_argument("--seconds", type=float, help="stop then; the table says how many inputs there were")
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument("--logs", type=Path, action="append", default=[], help="folder of logs to mutate besides")
    arguments.add_argument("--only", choices=SHARES)
    arguments.add_argument("--keep", type=Path, help="folder that inputs which are defects are written to")
    given = arguments.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    told = fuzz(given.count, given.seed, given.logs, given.only, given.keep, given.seconds)
    print_table(told)
    return 1 if any(each.defects for each in told.values()) else 0


def fuzz(
    count: int,
    seed: int = SEED,
    logs: Sequence[Path] = (),
    only: str | None = None,
    keep: Path | None = None,
    seconds: float | None = None,
) -> dict[str, Told]:
    """Give so many mutated inputs to everything that reads what people hand in."""
    random, told = Random(seed), {kind: Told() for kind in SHARES}
    end = time.perf_counter() + (seconds if seconds is not None else float("inf"))
    with tempfile.TemporaryDirectory() as scratch, alarms():
        readers, corpus = readers_in(Path(scratch)), corpus_with(logs)
        kinds = random.choices(list(SHARES), list(SHARES.values()), k=count) if only is None else [only] * count
        with suppress(KeyboardInterrupt):  # what was done by then is told
            for number, kind in enumerate(kinds):
                if time.perf_counter() > end:
                    break
                text = mutated(random, corpus[kind])
                if try_one(told[kind], readers[kind], text, random.randrange(1 << 30)) or keep is None:
                    continue
                if sum(told[kind].defects.values()) <= MOST_KEPT:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{kind.replace(' ', '-')}-{number}.txt").write_bytes(text.encode("utf-8", "surrogatepass"))
    return told


def try_one(told: Told, reader: Callable[[str, int], None], text: str, dice: int, most_s: float = MOST_S) -> bool:
    """Read one input under the clock; False: that is a defect."""
    num_defects = sum(told.defects.values())
    began = time.perf_counter()
    signal.setitimer(signal.ITIMER_PROF, most_s)
    try:
        reader(text, dice)
    except AssayError:
        told.num_refused += 1
    except TooLong:
        told.defects["took too long"] += 1
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        told.defects[f"{type(error).__name__}: {str(error)[:90]}"] += 1
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    took = time.perf_counter() - began
    told.num_inputs += 1
    told.total_s += took
    told.slowest_s = max(told.slowest_s, took)
    return sum(told.defects.values()) == num_defects


@contextmanager
def alarms() -> Iterator[None]:
    """The alarm raises where the program is."""

    def raise_it(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, raise_it)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)


def readers_in(scratch: Path) -> dict[str, Callable[[str, int], None]]:
    """What reads each kind of input, told by a number that is drawn for it."""
    (scratch / "model").mkdir()

    def written(name: str, text: str) -> Path:
        path = scratch / name
        path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
        return path

    def read_log(text: str, dice: int) -> None:
        parts = text.split("\n", dice % 3)
        logs = [Log(f"{number}.log", part.splitlines(keepends=True)) for number, part in enumerate(parts)]
        explain(logs, (None, 0, 1, -9, 137, 139)[dice % 6]).model_dump_json()

    def read_help(text: str, dice: int) -> None:
        (parse_argparse if dice % 2 else parse_click)(text)

    def read_model(text: str, _: int) -> None:
        written("model/config.json", text)
        load(str(scratch / "model"))

    return {
        "logs": read_log,
        "help texts": read_help,
        "model configs": read_model,
        "questions": lambda text, _: _drop(read_spec(written("assay.toml", text))),
        "catalogue": lambda text, _: _drop(read_entry(written("entry.toml", text))),
        "documents": lambda text, _: _drop(parse(text, "document")),
        "secrets": lambda text, _: _drop(redact({"text": text, "list": text.split()})),
    }


def corpus_with(logs: Sequence[Path]) -> dict[str, list[str]]:
    """Whole inputs of each kind, from the package's own data and a folder of logs."""
    data = files("assay.data")
    told = [path.read_text(encoding="utf-8", errors="replace") for each in logs for path in sorted(each.rglob("*.log"))]
    names = ("arguments", "build", "combination", "communication", "device", "memory", "model", "zz_consequences")
    rules = [tomllib.loads((data / "failures" / f"{name}.toml").read_text(encoding="utf-8"))["rules"] for name in names]
    examples = "\n".join(example for file in rules for rule in file for example in rule["examples"])
    models = sorted((each for each in (data / "models").iterdir()), key=lambda each: each.name)
    entries = sorted((each for each in (data / "optimizations").iterdir()), key=lambda each: each.name)
    return {
        "logs": [LOG, examples, *told],
        "help texts": [ARGPARSE, CLICK],
        "model configs": [each.read_text(encoding="utf-8") for each in models],
        "questions": [QUESTION],
        "catalogue": [each.read_text(encoding="utf-8") for each in entries],
        "documents": [DOCUMENT],
        "secrets": [SECRETS],
    }


def mutated(random: Random, texts: Sequence[str]) -> str:
    """One text with one to five mutations; of what has a structure, most often only values are changed."""
    text = random.choice(texts)
    start = random.randrange(max(1, len(text) - LONGEST))
    text = text[start : start + LONGEST]
    if text.lstrip().startswith("{") and random.random() < GENTLE:
        return mutated_json(random, text)
    if (" = " in text or text.startswith("---")) and random.random() < GENTLE:
        return mutated_values(random, text)
    for _ in range(random.randint(1, 5)):
        text = MUTATIONS[random.randrange(len(MUTATIONS))](random, text, texts)
    return text[: 2 * LONGEST]


def mutated_values(random: Random, text: str) -> str:
    """Other values at some lines that have one (`name = value`, `name: value`): what follows is still read."""
    lines = text.split("\n")
    places = [number for number, line in enumerate(lines) if "=" in line or ": " in line]
    for number in random.choices(places, k=random.randint(1, 4)) if places else ():
        mark = "=" if "=" in lines[number] else ":"
        lines[number] = (
            f"{lines[number].partition(mark)[0]}{mark} {random.choice(VALUES if random.random() < GENTLE else HOSTILE)}"
        )
    return "\n".join(lines)


def mutated_json(random: Random, text: str) -> str:
    """Another value at some place of the tree."""
    try:
        tree = json.loads(text)
    except ValueError:
        return text
    for _ in range(random.randint(1, 3)):
        place = tree
        while isinstance(place, dict | list) and place:
            key = random.choice(list(place)) if isinstance(place, dict) else random.randrange(len(place))
            if not isinstance(place[key], dict | list) or random.random() < 0.3:
                place[key] = random.choice([None, -1, 0, 1e308, 10**30, "", "x" * 100, [], {}, [[]], True, 0.5, "fp8"])
                break
            place = place[key]
    return json.dumps(tree)


def _cut(random: Random, text: str, _: Sequence[str]) -> str:
    return text[: random.randint(0, len(text))]


def _begin_later(random: Random, text: str, _: Sequence[str]) -> str:
    return text[random.randint(0, len(text)) :]


def _splice(random: Random, text: str, texts: Sequence[str]) -> str:
    other, place = random.choice(texts), random.randint(0, len(text))
    start = random.randint(0, len(other))
    return text[:place] + other[start : start + random.randint(1, 400)] + text[place:]


def _repeat(random: Random, text: str, _: Sequence[str]) -> str:
    place = random.randint(0, len(text))
    return text[:place] + text[place : place + random.randint(1, 60)] * random.randint(2, 400) + text[place:]


def _noise(random: Random, text: str, _: Sequence[str]) -> str:
    place = random.randint(0, len(text))
    return text[:place] + "".join(random.choices(STRANGE, k=random.randint(1, 12))) + text[place:]


def _hostile(random: Random, text: str, _: Sequence[str]) -> str:
    place = random.randint(0, len(text))
    return text[:place] + random.choice(HOSTILE) + text[place + random.randint(0, 12) :]


def _replace(random: Random, text: str, _: Sequence[str]) -> str:
    return text.replace(random.choice(" :([\n'\"0e-=,"), random.choice(["", "  ", "((", "\n", "\t"]), 200)


def _nest(random: Random, text: str, _: Sequence[str]) -> str:
    place, opened = random.randint(0, len(text)), random.choice("([{\"'")
    return text[:place] + opened * random.randint(2, 3000) + text[place:]


MUTATIONS = (_cut, _begin_later, _splice, _repeat, _noise, _hostile, _replace, _nest)


def print_table(told: dict[str, Told]) -> None:
    print(f"{'input':<15}{'number':>9}{'refused':>9}{'mean ms':>9}{'slowest ms':>12}{'defects':>9}")
    for kind, each in told.items():
        if not each.num_inputs:
            continue
        mean_ms = 1000 * each.total_s / each.num_inputs
        print(
            f"{kind:<15}{each.num_inputs:>9}{each.num_refused:>9}{mean_ms:>9.2f}{1000 * each.slowest_s:>12.0f}"
            f"{sum(each.defects.values()):>9}"
        )
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak_mib:.0f} MiB")
    for kind, each in told.items():
        for defect, number in each.defects.most_common(10):
            print(f"  {kind}: {number} x {defect}")


def _drop(_: object) -> None:
    """The value is not looked at: that it was read is enough."""


if __name__ == "__main__":
    sys.exit(main())
