"""What `assay doctor` found, for the terminal: worst first, and one line for all flags that are as they should be."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from assay.records.doctor import SEVERITIES, DoctorReport, Finding, Undecided

STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold"}
TITLES = {"sglang": "SGLang", "vllm": "vLLM", "trtllm": "TensorRT-LLM", "llamacpp": "llama.cpp"}
VERBS = frozenset({"is", "takes", "say", "says", "asks", "does", "has", "was", "needs", "belongs", "names", "stands"})
"""A problem that begins with one of these has the flag for its subject."""
SHOWN = 8
"""Names of flags that are listed, of those that are in order and of those not decided; the rest are counted."""


def doctor_view(report: DoctorReport) -> RenderableType:
    """Head, findings with their evidence, then what is in order and what could not be decided."""
    parts: list[RenderableType] = [_head(report)]
    parts += [Padding(Text(f"note: {note}", style="dim"), (0, 0, 0, 2), expand=False) for note in report.notes]
    parts += _findings(report)
    parts += _clean(report)
    parts += _undecided(report.undecided)
    return Group(*parts)


def _head(report: DoctorReport) -> RenderableType:
    launch = report.launch
    program = shlex.join(launch.program) or (f"image {launch.image}" if launch.image else "flags alone")
    inside = f" in {launch.image}" if launch.image and launch.program else ""
    facts = [f"{program}{inside}", _flags_words(launch.num_given), report.model, report.box]
    return Group(
        Text.assemble((f"{TITLES[report.engine]} {report.version}", "bold"), f" ({report.version_from})"),
        Padding(Text(", ".join(fact for fact in facts if fact)), (0, 0, 0, 2), expand=False),
    )


def _flags_words(count: int) -> str:
    return f"{count} flag{'' if count == 1 else 's'}"


def _findings(report: DoctorReport) -> list[RenderableType]:
    if not report.findings:
        return []
    counts = [(kind, sum(found.severity == kind for found in report.findings)) for kind in SEVERITIES]
    told = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts if count)
    head = Text.assemble(("findings", "bold"), f" ({told})")
    return [Text(""), head, *(_finding(finding) for finding in _gathered(report.findings))]


def _gathered(findings: list[Finding]) -> list[Finding]:
    """Flags that only say the default become one finding."""
    defaults = [finding for finding in findings if finding.kind == "default"]
    if len(defaults) < 2:  # noqa: PLR2004 - one is told as it is
        return findings
    values = ", ".join(f"{one.flags[0]}{one.what.rpartition(':')[2]}" for one in defaults)
    together = defaults[0].model_copy(
        update={
            "flags": [f"{len(defaults)} flags"],
            "what": f"say what is the default anyway: {values}",
            "remedy": "leave them out, or keep them to hold their values over an upgrade",
        }
    )
    return [*(finding for finding in findings if finding.kind != "default"), together]


def _finding(finding: Finding) -> RenderableType:
    """Flag and problem, the remedy, the sources."""
    others = f" (with {', '.join(finding.flags[1:])})" if len(finding.flags) > 1 else ""
    head = Text.assemble(
        (f"{finding.severity}: ", STYLES[finding.severity]),
        (finding.flags[0], "bold"),
        f"{others}{_joint(finding)}{finding.what}",
    )
    sources = "; ".join(one.source for one in finding.evidence)
    return Group(
        Padding(head, (0, 0, 0, 2), expand=False),
        Padding(Text.assemble("do: ", finding.remedy), (0, 0, 0, 6), expand=False),
        Padding(Text(f"source: {sources}", style="dim"), (0, 0, 0, 6), expand=False),
    )


def _joint(finding: Finding) -> str:
    return " " if finding.what.partition(" ")[0] in VERBS else ": "


def _clean(report: DoctorReport) -> list[RenderableType]:
    count = len(report.clean)
    if not count:
        return [] if report.findings or report.undecided else [Text(""), Text("no flags were given")]
    words = "1 flag is as it should be" if count == 1 else f"{count} flags are as they should be"
    return [Text(""), Text.assemble((words, "green"), f": {_some(report.clean)}")]


def _some(names: Collection[str]) -> str:
    """The first names, and how many more there are."""
    most = SHOWN if len(names) > SHOWN + 1 else len(names)  # "1 more" is longer than most names
    return ", ".join(list(names)[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _undecided(undecided: list[Undecided]) -> list[RenderableType]:
    if not undecided:
        return []
    by_reason: dict[str, list[str]] = {}
    for one in undecided:
        by_reason.setdefault(one.reason, []).append(one.flags[0])
    told = "; ".join(f"{_some(dict.fromkeys(flags))}: {reason}" for reason, flags in by_reason.items())
    missing = " and ".join(flag for flag, part in (("--model", "model"), ("--gpu and --gpus", "gpu")) if part in told)
    head = f"not decided{f' without {missing}' if missing else ''}"
    return [Text(""), Text.assemble((head, "dim"), (f": {told}", "dim"))]
