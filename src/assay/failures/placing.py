"""The stage of a match: its rule's own, or what its line, its traceback and the log around it tell."""

from __future__ import annotations

from assay.failures.found import Found
from assay.failures.rules import OOM, Meaning, load_meanings
from assay.failures.scan import Scan
from assay.failures.stages import Marker, first, load_stages
from assay.records.failure import Cause, Stage

FARTHEST_STACK = 200
"""Lines between what a process says as it dies and a function of its stack."""


def stage_of(scan: Scan, found: Found) -> tuple[Stage, Marker | None]:
    """The rule's own; else what the line says, the traceback, what the log said before, and what stands beside it."""
    if found.rule.stage:
        return found.rule.stage, found.frames
    words, line = load_stages().words, found.line.body
    said = first((marker for marker in words if not marker.is_weak), line)
    frames = found.frames
    if stage := _not_as_its_functions(scan, found):
        return stage, frames
    for marker in (said, None if frames and frames.is_weak else frames):
        if marker:
            return (marker.stage_of_oom if found.rule.cause == OOM else None) or marker.stage, marker
    stack = of_stack(scan, found)
    if wanted := _wanted_for(found) or (stack if stack and not stack.is_weak else None):
        return wanted.stage, wanted
    if found.milestone and found.milestone != "load":
        return _not_before(found, found.milestone), None
    if not frames and scan.frames and not scan.frames.is_weak:
        return scan.frames.stage, scan.frames
    if _says_that_it_served(scan, found):
        return "under-load", None
    weak = stack or frames or first(words, line) or _of_comments(scan)
    if weak:
        return weak.stage, weak
    milestone = None if found.milestone == "load" and _is_before_the_engine(found) else found.milestone
    return milestone or ("unknown" if _could_be_anywhere(scan, found) else _default_stage(found)), None


def _could_be_anywhere(scan: Scan, found: Found) -> bool:
    """Memory runs out at every stage: without a start, a milestone or a function nothing tells at which it did."""
    is_told = found.milestone or found.life or scan.milestone or scan.frames
    return found.rule.cause == OOM and found.rule.default_stage is None and not is_told


def _not_as_its_functions(scan: Scan, found: Found) -> Stage | None:
    """Where how far the log had come tells more than the functions, or less than an import."""
    frames = found.frames
    if frames and frames.stage == "under-load" and found.milestone == "kv-cache" and not scan.has_served:
        return "warm-up"  # the weights are there, and no cache yet: the model runs to see what it needs
    if frames and frames.is_of_import and (scan.has_served or found.milestone == "load"):
        return "load"  # what it is imported into may serve already
    return None


def _wanted_for(found: Found) -> Marker | None:
    """Native code complains innermost first; what its callers add in the next lines tells what it was wanted for."""
    after = "\n".join(each.text for each in found.around if each.number > found.line.number)
    return first(load_stages().callers, after) if after else None


def of_stack(scan: Scan, found: Found | None) -> Marker | None:
    """What the native stack below a line tells; None: of any in the log."""
    near = [
        each.marker
        for each in scan.natives
        if found is None or (each.file == found.file and 0 <= each.number - found.line.number <= FARTHEST_STACK)
    ]
    return min(near, key=load_stages().natives.index, default=None)


def _not_before(found: Found, milestone: Stage) -> Stage:
    """The last milestone, or the stage of the cause where that milestone cannot be its own."""
    return _meaning(found).stage_at.get(milestone, milestone)


def _says_that_it_served(scan: Scan, found: Found) -> bool:
    return scan.has_served or any(
        each.strength == "consequence" and each.rule.stage == "under-load" and each.life == found.life
        for each in scan.found
    )


def _of_comments(scan: Scan) -> Marker | None:
    noted = "\n".join(scan.comments)
    return first(load_stages().words, noted) or first(load_stages().frames, noted) if noted else None


def _default_stage(found: Found) -> Stage:
    """Where nothing tells: what fails in vLLM's API server fails before the engine is started."""
    default = found.rule.default_stage or _meaning(found).stage
    return "arguments" if default == "load" and _is_before_the_engine(found) else default


def _meaning(found: Found) -> Meaning:
    """Of its rule's cause, before the stage tells which kind of exhausted memory it is."""
    cause = Cause.OOM_AT_LOAD if found.rule.cause == OOM else Cause(found.rule.cause)
    return load_meanings()[cause]


def _is_before_the_engine(found: Found) -> bool:
    return found.line.who.startswith("APIServer")


def which_oom(stage: Stage, marker: Marker | None, found: Found) -> Cause:
    """At load, at capture, or under load; where nothing tells the stage at load, where it does most often."""
    if stage == "warm-up":
        pools = first((each for each in load_stages().words if each.oom), found.line.body)
        return (marker and marker.oom) or (pools and pools.oom) or Cause.OOM_AT_LOAD
    return {"graph-capture": Cause.OOM_AT_CAPTURE, "under-load": Cause.OOM_UNDER_LOAD}.get(stage, Cause.OOM_AT_LOAD)
