"""How well `assay explain` does on a folder of labelled logs: the confusion, the misses, three accuracies.

    python benchmarks/failures.py FOLDER [--only LIST] [--without LIST] [--json]
    python benchmarks/failures.py tests/unit/failure_lookalikes.toml        # the project's own look-alikes

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
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

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
        return theirs[:100] in ours or (bool(ours) and ours[:100] in theirs)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--only", type=Path)
    arguments.add_argument("--without", type=Path)
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    logs = (
        read_toml(given.folder)
        if given.folder.suffix == ".toml"
        else read_folder(given.folder, given.only, given.without)
    )
    judged = [judge(each) for each in logs]
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


def read_toml(path: Path) -> list[Labelled]:
    """Look-alikes: stage and cause in the words of the record."""
    return [
        Labelled(
            name=each["id"],
            labels={"stage": each["stage"], "root-cause-class": each["cause"], "cause-line": each["quote"]},
            lines=each["text"].strip("\n").splitlines(),
            first=0,
        )
        for each in tomllib.loads(path.read_text(encoding="utf-8"))["logs"]
    ]


def read(path: Path) -> Labelled:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    end = lines.index(END) if END in lines else -1
    matches = (re.match(r"# ([\w-]+): (.*)", line) for line in lines[: end + 1])
    labels = {str(match[1]): str(match[2]) for match in matches if match}
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


def _names(path: Path | None) -> set[str]:
    return {Path(line).name for line in path.read_text().split()} if path else set()


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text.replace("\\n", ""))


if __name__ == "__main__":
    main()
