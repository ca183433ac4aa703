"""What `assay assess` found, for the terminal: compact sections, the findings last, readable without colour."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from assay.records.assessment import Assessment
from assay.records.machine import Finding
from assay.render.gpu_view import gpu_section
from assay.render.machine_view import facts, machine_sections, section
from assay.render.words import NOTHING
from assay.units import MIB_BYTES

SEVERITY_STYLE = {"blocker": "bold red", "warning": "bold yellow", "note": "bold"}


def assessment_view(found: Assessment) -> RenderableType:
    """Machine, GPUs, software, servers, engine, model; then the findings."""
    seen = found.snapshot
    parts: list[RenderableType] = [_head(found)]
    if seen:
        sections = machine_sections(seen)
        parts += [*sections.before_gpus, *gpu_section(seen), *sections.after_gpus]
    else:
        parts.append(section("machine", _identity(found)))
    if found.machine_file is None:
        parts.append(section("campaign", _target(found)))
    return Group(*parts, *_findings(found.findings))


def _head(found: Assessment) -> RenderableType:
    seen = found.snapshot
    when = f", {seen.taken_at[:16].replace('T', ' ')} UTC" if seen else ""
    where = f"machine in {found.machine_file}" if found.machine_file else "this machine"
    return Text.assemble((where, "bold"), f"{when}, fingerprint {found.machine.fingerprint}")


def _identity(found: Assessment) -> RenderableType:
    machine = found.machine
    return facts(
        [
            ("cpu", f"{machine.cpu_model}, {machine.physical_cores} cores, {machine.usable_cores} usable"),
            ("system", f"{machine.os}, {machine.kernel}, Python {machine.python}"),
        ]
    )


def _target(found: Assessment) -> RenderableType:
    build, model = found.build, found.model
    size = f", {model.size_bytes / MIB_BYTES:.0f} MiB" if model and model.size_bytes is not None else ""
    return facts(
        [
            ("engine", f"{build.version} from {build.source}" if build else f"none: {found.build_problem}"),
            ("flags", f"{len(build.flags)} in its own help" if build else NOTHING),
            ("model", f"{model.name}, {model.quantization}{size}" if model else f"none: {found.model_problem}"),
            ("record", found.record or "none here"),
        ]
    )


def _findings(found: Sequence[Finding]) -> list[RenderableType]:
    if not found:
        return [Text(""), Text("nothing found that would spoil a measurement", style="green")]
    counts = [(kind, sum(finding.severity == kind for finding in found)) for kind in SEVERITY_STYLE]
    told = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts if count)
    head = Text.assemble(("findings", "bold"), f" ({told})")
    return [Text(""), head, *(_finding(finding) for finding in found)]


def _finding(finding: Finding) -> RenderableType:
    head = (f"{finding.severity}: ", SEVERITY_STYLE.get(finding.severity, "bold"))
    first = Text.assemble(head, f"{finding.title} ({finding.evidence})")
    return Group(
        Padding(first, (0, 0, 0, 2), expand=False),
        Padding(Text(f"remedy: {finding.remedy}"), (0, 0, 0, 6), expand=False),
    )
