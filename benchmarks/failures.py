"""How well `assay explain` does on a folder of labelled logs: the confusion, the misses, three accuracies.

    python benchmarks/failures.py FOLDER [--only LIST] [--without LIST] [--json]
    python benchmarks/failures.py FOLDER --fuzz 100000      # any logs: mutated, none may crash or take long

A labelled log starts with lines `# stage: ...`, `# root-cause-class: ...`, `# cause-line: ...` and maybe `# note: ...`,
up to `# ---- log ----`; what follows is the log, and all that the classifier sees. LIST is a file of log names, one a
line: it splits a folder into logs that rules were written with and logs that were held out.

Two accuracies are printed of stage and cause: strict, against the label; and lenient, which also takes a stage or cause
that the log's own note names as equally right, and `unknown` where the note says that a cause must not be claimed.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from assay.failures import Log, explain
from assay.records.failure import Explanation

STAGES = {
    "argument parsing": "arguments",
    "model load": "load",
    "weight load": "weights",
    "kernel compile": "compile",
    "cuda graph capture": "graph-capture",
    "kv-cache allocation": "kv-cache",
    "warm-up": "warm-up",
    "under load": "under-load",
    "shutdown": "shutdown",
}
CAUSES = {
    "unknown flag": "unknown-flag",
    "bad value": "bad-value",
    "incompatible combination": "incompatible-combination",
    "unsupported arch (e.g. SM120)": "unsupported-architecture",
    "unsupported model architecture": "unsupported-model-architecture",
    "missing dependency": "missing-dependency",
    "JIT/compile failure": "jit-compile-failure",
    "torch.compile graph break": "graph-break",
    "CUDA OOM at load": "oom-at-load",
    "CUDA OOM at graph capture": "oom-at-capture",
    "CUDA OOM under load": "oom-under-load",
    "host OOM killed": "host-oom",
    "KV cache too small": "kv-cache-too-small",
    "NCCL/communication failure": "communication",
    "illegal memory access": "illegal-memory-access",
    "watchdog/timeout/hang": "hang",
    "port in use": "port-in-use",
    "wrong model path": "model-not-found",
    "weights missing in checkpoint": "missing-weights",
    "weight shape mismatch": "weight-shape-mismatch",
    "tokenizer/chat template": "tokenizer-template",
    "driver/CUDA mismatch": "driver-mismatch",
    "host memory limit (mlock)": "memory-lock-limit",
    "engine assertion": "engine-assertion",
    "kernel assertion (backend vs shape)": "kernel-assertion",
    "workspace buffer too small": "workspace-too-small",
    "disk full/quota (JIT/compile cache)": "disk-full",
}
NO_CLAIM = re.compile(r"must not claim|can be claimed|may be claimed|only symptoms here|NOT a host OOM", re.IGNORECASE)
END = "# ---- log ----"


@dataclass(frozen=True)
class Labelled:
    """A log and what a person says of it."""

    name: str
    labels: dict[str, str]
    lines: list[str]
    first: int
    """Number of the log's first line in the file, less one."""


@dataclass(frozen=True)
class Judged:
    """A log, its label and what was found."""

    log: Labelled
    found: Explanation
    stage: str
    cause: str

    @property
    def note(self) -> str:
        return self.log.labels.get("note", "")

    @property
    def is_stage(self) -> bool:
        return self.found.stage == self.stage

    @property
    def is_cause(self) -> bool:
        return self.found.cause == self.cause

    @property
    def is_stage_leniently(self) -> bool:
        named = {
            value for name, value in STAGES.items() if name.replace("-", " ") in self.note.lower().replace("-", " ")
        }
        return self.is_stage or self.found.stage in named

    @property
    def is_cause_leniently(self) -> bool:
        named = {value for name, value in CAUSES.items() if f"'{name}'" in self.note}
        refuses = self.found.cause == "unknown" and bool(NO_CLAIM.search(self.note))
        return self.is_cause or self.found.cause in named or refuses

    @property
    def is_quote(self) -> bool:
        """One holds the other, apart from white space; the label may be cut."""
        ours, theirs = _squeezed(self.found.quote or ""), _squeezed(self.log.labels["cause-line"])
        return bool(ours) and (ours[:100] in theirs or theirs[:100] in ours)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--only", type=Path)
    arguments.add_argument("--without", type=Path)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--fuzz", type=int, metavar="N")
    given = arguments.parse_args()
    if given.fuzz:
        fuzz(given.folder, given.fuzz)
        return
    judged = [judge(each) for each in read_folder(given.folder, given.only, given.without)]
    if given.json:
        print(json.dumps(figures(judged), indent=2))
        return
    print_misses(judged)
    for what in ("stage", "cause"):
        print_confusion(judged, what)
    for name, value in figures(judged).items():
        print(f"{name:>16}  {value}")


def read_folder(folder: Path, only: Path | None, without: Path | None) -> list[Labelled]:
    wanted, refused = _names(only), _names(without)
    logs = [read(path) for path in sorted(folder.glob("*.log"))]
    return [each for each in logs if each.labels and (not only or each.name in wanted) and each.name not in refused]


def read(path: Path) -> Labelled:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    end = lines.index(END) if END in lines else -1
    labels = dict(match.groups() for line in lines[: end + 1] if (match := re.match(r"# ([\w-]+): (.*)", line)))
    return Labelled(path.name, labels, lines[end + 1 :], end + 1)


def judge(log: Labelled) -> Judged:
    found = explain([Log(log.name, log.lines)])
    cause = log.labels["root-cause-class"]
    return Judged(log, found, STAGES.get(log.labels["stage"], log.labels["stage"]), CAUSES.get(cause, cause))


def figures(judged: list[Judged]) -> dict[str, str]:
    def share(kind: str) -> str:
        right = sum(getattr(each, kind) for each in judged)
        return f"{right}/{len(judged)} = {right / max(len(judged), 1):.1%}"

    kinds = {
        "stage, strict": "is_stage",
        "stage, lenient": "is_stage_leniently",
        "cause, strict": "is_cause",
        "cause, lenient": "is_cause_leniently",
        "quote": "is_quote",
    }
    return {name: share(kind) for name, kind in kinds.items()}


def print_misses(judged: list[Judged]) -> None:
    for each in judged:
        if each.is_stage and each.is_cause and each.is_quote:
            continue
        print(each.log.name)
        print(f"    stage {each.stage} -> {each.found.stage}{'' if each.is_stage else '   <--'}")
        print(f"    cause {each.cause} -> {each.found.cause} ({each.found.rule}){'' if each.is_cause else '   <--'}")
        if not each.is_quote:
            print(f"    quote {each.log.labels['cause-line'][:110]}\n       -> {(each.found.quote or 'nothing')[:110]}")


def print_confusion(judged: list[Judged], what: str) -> None:
    counts = Counter((getattr(each, what), str(getattr(each.found, what))) for each in judged)
    print(f"\n{what}: label -> found, number of logs")
    for (label, found), count in sorted(counts.items()):
        print(f"  {count:>3}  {label} -> {found}{'' if label == found else '   <--'}")
    print()


def fuzz(folder: Path, count: int) -> None:
    """Mutate the folder's logs; an exception ends it, and the slowest is told."""
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.log"))]
    random = Random(20_260_101)
    slowest, causes = 0.0, Counter[str]()
    for _ in range(count):
        text = mutated(random, texts)
        start = time.perf_counter()
        found = explain([Log("fuzzed", text.splitlines(keepends=True))], random.choice([None, 1, -9, 139]))
        slowest = max(slowest, time.perf_counter() - start)
        causes[str(found.cause)] += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{count} mutated logs, slowest {1000 * slowest:.0f} ms, peak memory {peak:.0f} MiB, {len(causes)} causes seen"
    )


def mutated(random: Random, texts: list[str]) -> str:
    """One to four mutations of one log."""
    text = random.choice(texts)[:20_000]
    for _ in range(random.randint(1, 4)):
        place = random.randint(0, len(text))
        other = random.choice(texts)
        start = random.randint(0, len(other))
        piece = other[start : start + random.randint(1, 400)]
        noise = "".join(
            chr(random.choice([0, 9, 10, 13, 27, 34, 39, 40, 91, 92, 123, 0x2028, 0x1F600])) for _ in range(9)
        )
        match random.randint(0, 5):
            case 0:
                text = text[:place]
            case 1:
                text = text[place:]
            case 2:
                text = text[:place] + piece + text[place:]
            case 3:
                text = text[:place] + noise + text[place:]
            case 4:
                text = text.replace(random.choice(" :([\n'\"0e"), random.choice(["", "  ", "((", "\n"]))
            case _:
                text = text[:place] + piece * random.randint(2, 30) + text[place:]
    return text


def _names(path: Path | None) -> set[str]:
    return {Path(line).name for line in path.read_text().split()} if path else set()


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text.replace("\\n", ""))


if __name__ == "__main__":
    main()
